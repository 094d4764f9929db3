"""How many connections may be open at once, and how long one may say nothing.

Whoever finds the port can open connections, with or without a token: so one that serves nobody
keeps no other out, and does not stay for long.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from mcp_server.web.descriptors import connections_max

# From the connection, or the first byte of a further request, until its headers are there.
HEADERS_SECONDS = 10
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 52\r\n\r\n"
    b"this server has no room for another connection now.\n"
)


class Places:
    """The connections there are, no more than *count_max* at once."""

    def __init__(self, count_max: Callable[[], int] = connections_max) -> None:
        self._count_max = count_max
        self._taken: set[LimitedProtocol] = set()
        # Those that serve nobody at the moment, in the order in which they began to.
        self._idle: dict[LimitedProtocol, None] = {}

    def take(self, connection: "LimitedProtocol") -> bool:
        """Whether there is a place, if need be that of one that serves nobody."""
        while len(self._taken) >= self._count_max() and self._idle:
            # Strangers first: who never asked anything can have lost nothing.
            strangers = (idle for idle in self._idle if idle.is_stranger)
            idle = next(strangers, None) or next(iter(self._idle))
            self.leave(idle)
            idle.transport.abort()
        if len(self._taken) >= self._count_max():
            return False
        self._taken.add(connection)
        return True

    def mark(self, connection: "LimitedProtocol", *, idle: bool) -> None:
        """Whether its place is another's if it is needed."""
        if not idle:
            self._idle.pop(connection, None)
        elif connection in self._taken:
            self._idle.setdefault(connection)

    def leave(self, connection: "LimitedProtocol") -> None:
        self._taken.discard(connection)
        self._idle.pop(connection, None)


@dataclass(frozen=True)
class Limits:
    """What connections share."""

    places: Places
    headers_seconds: float = HEADERS_SECONDS


class LimitedProtocol(H11Protocol):
    """uvicorn's connection, which has a place and a deadline.

    uvicorn's own limit refuses requests, and keeps each connection that has sent none for ever.
    """

    limits: Limits

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def is_stranger(self) -> bool:
        """Whether no request ever came."""
        # uvicorn's annotation leaves out that there is none at first.
        return self.cycle is None  # pyright: ignore[reportUnnecessaryComparison]

    def connection_made(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, transport: asyncio.Transport
    ) -> None:
        if self.limits.places.take(self):
            super().connection_made(transport)
            self._look()
        else:
            self.transport = transport
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.limits.places.leave(self)
        self._forget_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look()

    def _look(self) -> None:
        """Note whether anybody is served here, and how long we wait if not."""
        serves = not self.is_stranger and not self.cycle.response_complete
        # Who does not read may take his time, until somebody else needs the place.
        self.limits.places.mark(self, idle=not serves or self.flow.write_paused)
        if serves or self.transport.is_closing():
            self._forget_deadline()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            # uvicorn waits for a next request, but no more after the first byte of anything.
            self._deadline = self.loop.call_later(self.limits.headers_seconds, self.transport.abort)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_with(shared: Limits) -> type[LimitedProtocol]:
    """The protocol as uvicorn takes it, a class, with what all of its connections share."""

    class Protocol(LimitedProtocol):
        limits = shared

    return Protocol
