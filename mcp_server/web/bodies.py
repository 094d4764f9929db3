"""The bodies of requests to MCP's path, read whole, and mended or refused as lines of stdio are."""

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pydantic_core
from mcp_types import INVALID_REQUEST, JSONRPCRequest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledger.errors import LedgerError
from mcp_server.frames import Refusal, mended, read_frame

# Of arrays and objects within each other, the message itself included.
DEPTH_MAX = 200
SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


# From the headers until all of a body is here.
BODY_SECONDS = 30
# Of bodies that were begun and whose answers were not, all of them together.
BODIES_BYTES_MAX = 64 * 2**20
# Of these there is always room: who fills it with large ones keeps no small ones out.
SMALL_BYTES_MAX = 64 * 2**10
RETRY_SECONDS = 1


class NoRoomError(LedgerError):
    """The bodies of others are in the way."""


class Room:
    """The memory for bodies, no more than *bytes_max* for all of them beside the small ones."""

    def __init__(self, bytes_max: int = BODIES_BYTES_MAX, small_bytes_max: int = SMALL_BYTES_MAX):
        self._bytes_free = bytes_max
        self._small_bytes_max = small_bytes_max

    @contextmanager
    def share(self) -> Generator["Share"]:
        """That of one body, given back at the end."""
        share = Share(self, self._small_bytes_max)
        try:
            yield share
        finally:
            share.give_back()

    def take(self, count: int) -> None:
        """Raises NoRoomError."""
        if count > self._bytes_free:
            raise NoRoomError("there is no room for a message of this size now; send it again")
        self._bytes_free -= count

    def give_back(self, count: int) -> None:
        self._bytes_free += count


class Share:
    """What one body takes of the room."""

    def __init__(self, room: Room, small_bytes_max: int) -> None:
        self._room = room
        self._small_bytes_max = small_bytes_max
        self._taken = 0

    def grow_to(self, count: int) -> None:
        """Raises NoRoomError."""
        more = count - self._small_bytes_max - self._taken
        if more > 0:
            self._room.take(more)
            self._taken += more

    def give_back(self) -> None:
        self._room.give_back(self._taken)
        self._taken = 0


class TooLargeError(LedgerError):
    """A body is larger than any message may be."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"a message has at most {bytes_max} bytes here; send less at once")


class Bodies:
    """Hands on what is a message, and answers what is none under the id it has.

    The SDK would refuse a thought for half a character in it, answer under no id and in the words
    of its parser, and put a traceback on stderr when a client leaves before it has sent all.
    """

    def __init__(
        self, app: ASGIApp, path: str, bytes_max: int, room: Room, seconds: float = BODY_SECONDS
    ) -> None:
        """A body of more than *bytes_max* is refused, without being read to its end."""
        self._app = app
        self._path = path
        self._bytes_max = bytes_max
        self._room = room
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_message(scope):
            await self._app(scope, receive, send)
            return
        with self._room.share() as share:
            await self._answer(scope, receive, _first(share.give_back, send), share)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, share: Share) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(scope, receive, share)
        except (TooLargeError, NoRoomError, TimeoutError) as error:
            await self._refusal_of(error)(scope, receive, send)
            return
        if body is None:
            return
        content = _mended(body)
        if (refusal := _refusal(content)) is not None:
            response = Response(refusal.encode(), 400, media_type="application/json")
            await response(scope, receive, send)
            return
        await self._app(scope, _after(content, receive), send)

    async def _read(self, scope: Scope, receive: Receive, share: Share) -> bytes | None:
        """All of it, or nothing from a client that left.  Raises TooLargeError and NoRoomError."""
        if self._is_too_large(scope):
            raise TooLargeError(self._bytes_max)
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._bytes_max:
                raise TooLargeError(self._bytes_max)
            share.grow_to(len(body))
        return bytes(body)

    def _refusal_of(self, error: TooLargeError | NoRoomError | TimeoutError) -> Response:
        if isinstance(error, TooLargeError):
            return PlainTextResponse(f"{error}\n", 413)
        if isinstance(error, NoRoomError):
            return PlainTextResponse(f"{error}\n", 503, {"Retry-After": str(RETRY_SECONDS)})
        sentence = f"a message must be here within {self._seconds} seconds; send it again\n"
        # The rest of it must not be taken for another request.
        return PlainTextResponse(sentence, 408, {"Connection": "close"})

    def _is_message(self, scope: Scope) -> bool:
        return (scope["type"], scope.get("method"), scope.get("path")) == (
            "http",
            "POST",
            self._path,
        )

    def _is_too_large(self, scope: Scope) -> bool:
        """Whether it says so itself, so that it is not waited for."""
        declared = Headers(scope=scope).get("content-length", "")
        return declared.isdecimal() and int(declared[:20]) > self._bytes_max


def _refusal(body: bytes) -> Refusal | None:
    frame = read_frame(body)
    if isinstance(frame, Refusal):
        return frame
    # Few are worth parsing once more, to find what is too deep for the SDK's parser only.
    may_be_deep = body.count(b"[") + body.count(b"{") >= DEPTH_MAX
    if may_be_deep and isinstance(frame, JSONRPCRequest):
        try:
            pydantic_core.from_json(body)
        except ValueError:
            reason = f"this is nested too deep; at most {DEPTH_MAX} levels can be read"
            return Refusal(frame.id, INVALID_REQUEST, reason)
    return None


def _mended(body: bytes) -> bytes:
    try:
        body.decode()
    except UnicodeDecodeError:
        return mended(body).encode()
    return mended(body).encode() if SURROGATE_ESCAPE.search(body) else body


def _first(act: Callable[[], None], send: Send) -> Send:
    """Sends, but acts before."""

    async def send_after(message: Message) -> None:
        act()
        await send(message)

    return send_after


def _after(body: bytes, receive: Receive) -> Receive:
    """Receives what was read already, then what comes."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_on() -> Message:
        return read.pop() if read else await receive()

    return receive_on
