"""The bodies of requests, read whole and mended before anything else reads them."""

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_server.frames import mended

SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class MendedBodies:
    """Hands bodies on as text: half a character in a thought is no reason to refuse it.

    The SDK's parser would.  And it would put on stderr, with a traceback, that a client left
    before it had sent all; here that request is forgotten.
    """

    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        """A body of more than *bytes_max* is handed on as it comes, to be refused."""
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        # One that says that it is too large is not waited for.
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > self._bytes_max:
            await self._app(scope, receive, send)
            return
        body, more = bytearray(), True
        while more and len(body) <= self._bytes_max:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        content = bytes(body) if more else _mended(bytes(body))
        await self._app(scope, _after(content, receive, more=more), send)


def _mended(body: bytes) -> bytes:
    try:
        body.decode()
    except UnicodeDecodeError:
        return mended(body).encode()
    return mended(body).encode() if SURROGATE_ESCAPE.search(body) else body


def _after(body: bytes, receive: Receive, *, more: bool) -> Receive:
    """Receives what was read already, then what comes."""
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": more}]

    async def receive_on() -> Message:
        return read.pop() if read else await receive()

    return receive_on
