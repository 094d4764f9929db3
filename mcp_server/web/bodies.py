"""The bodies of requests to MCP's path, read whole, and mended or refused as lines of stdio are."""

import re

import pydantic_core
from mcp_types import INVALID_REQUEST, JSONRPCRequest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server.frames import Refusal, mended, read_frame

# Of arrays and objects within each other, the message itself included.
DEPTH_MAX = 200
SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class Bodies:
    """Hands on what is a message, and answers what is none under the id it has.

    The SDK would refuse a thought for half a character in it, answer under no id and in the words
    of its parser, and put a traceback on stderr when a client leaves before it has sent all.
    """

    def __init__(self, app: ASGIApp, path: str, bytes_max: int) -> None:
        """A body of more than *bytes_max* is refused, without being read to its end."""
        self._app = app
        self._path = path
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_message(scope):
            await self._app(scope, receive, send)
            return
        if self._is_too_large(scope):
            await self._refuse_size(scope, receive, send)
            return
        body, more = bytearray(), True
        while more and len(body) <= self._bytes_max:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if len(body) > self._bytes_max:
            await self._refuse_size(scope, receive, send)
            return
        content = _mended(bytes(body))
        if (refusal := _refusal(content)) is not None:
            response = Response(refusal.encode(), 400, media_type="application/json")
            await response(scope, receive, send)
            return
        await self._app(scope, _after(content, receive), send)

    async def _refuse_size(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = f"a message has at most {self._bytes_max} bytes here; send less at once\n"
        await PlainTextResponse(sentence, 413)(scope, receive, send)

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


def _after(body: bytes, receive: Receive) -> Receive:
    """Receives what was read already, then what comes."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_on() -> Message:
        return read.pop() if read else await receive()

    return receive_on
