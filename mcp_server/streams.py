"""Streams of ``subscriptions/listen``: told at a pace that leaves the server to those who call.

The SDK's own would put every update into every stream, and a client that lags behind would be
sent thousands of times what it has been told already.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any

import anyio
from mcp import MCPError
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RequestId,
    ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
    ServerNotification,
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenResult,
)

from mcp_server.requests import Request

# Streams at once, of all clients.
STREAMS_MAX = 500
# To tell one subscriber takes about half a millisecond of the one thread that answers calls, too.
TELLS_PER_SECOND_MAX = 200
TELLS_AT_ONCE_MAX = 20
# A client that does not read for so long has its stream ended, and another can have the place.
TELL_SECONDS_MAX = 60.0


class Pace:
    """Turns for all in the order they came: some at once after a rest, then so many a second."""

    def __init__(self, per_second: float, at_once: int) -> None:
        self._pause = 1 / per_second
        self._rest = at_once / per_second
        self._next = 0.0

    async def turn(self) -> None:
        now = asyncio.get_running_loop().time()
        self._next = max(self._next + self._pause, now - self._rest + self._pause)
        if self._next > now:
            await asyncio.sleep(self._next - now)


class Seldom:
    """Does something at once, and after that so often at most; what is asked for last is done."""

    def __init__(self, pause_seconds: float, work: Callable[[], None]) -> None:
        self._pause_seconds = pause_seconds
        self._work = work
        self._resting: asyncio.TimerHandle | None = None
        self._is_asked = False

    def ask(self) -> None:
        if self._resting is not None:
            self._is_asked = True
            return
        loop = asyncio.get_running_loop()
        self._resting = loop.call_later(self._pause_seconds, self._wake)
        self._work()

    def _wake(self) -> None:
        self._resting = None
        if self._is_asked:
            self._is_asked = False
            self.ask()


class Subscriber:
    """What one subscriber wants to know of, and has yet to be told: each address once."""

    def __init__(self, pace: Pace, uris: Iterable[str] = ()) -> None:
        self.uris = set(uris)
        self._pace = pace
        # A dict for its order.
        self._untold: dict[str, None] = {}
        self._is_behind = asyncio.Event()

    def add(self, changed: Iterable[str]) -> None:
        """Have it told; of what it has not been told yet a repeat costs nothing."""
        self._untold.update(dict.fromkeys(uri for uri in changed if uri in self.uris))
        if self._untold:
            self._is_behind.set()

    def forget(self, uri: str) -> None:
        """Of this it is told no more."""
        self.uris.discard(uri)
        self._told(uri)

    async def take(self) -> str:
        """The next to tell, when there is one and it is this subscriber's turn."""
        while True:
            await self._is_behind.wait()
            await self._pace.turn()
            # It may have been forgotten meanwhile.
            if uri := next(iter(self._untold), None):
                self._told(uri)
                return uri

    def _told(self, uri: str) -> None:
        self._untold.pop(uri, None)
        if not self._untold:
            self._is_behind.clear()


class Streams:
    """The streams that are open."""

    def __init__(self, pace: Pace, tell_seconds_max: float = TELL_SECONDS_MAX) -> None:
        self._pace = pace
        self._tell_seconds_max = tell_seconds_max
        self._open: set[Subscriber] = set()

    def add(self, changed: Collection[str]) -> None:
        for subscriber in self._open:
            subscriber.add(changed)

    async def serve(
        self, request: Request, honoured: SubscriptionFilter
    ) -> SubscriptionsListenResult:
        """Acknowledge what is *honoured* and tell of it, until the client leaves or does not read.

        Raises MCPError when there are STREAMS_MAX.
        """
        number = request.request_id
        if number is None:
            raise MCPError(INVALID_REQUEST, "subscriptions/listen needs a request id")
        if len(self._open) >= STREAMS_MAX:
            raise MCPError(INTERNAL_ERROR, f"{STREAMS_MAX} streams are open; end one, or wait")
        subscriber = Subscriber(self._pace, honoured.resource_subscriptions or ())
        # Before it is acknowledged, so that nothing is missed meanwhile.
        self._open.add(subscriber)
        try:
            await self._send(request, number, _acknowledged(honoured, _stamp(number)))
            while True:
                uri = await subscriber.take()
                await self._send(request, number, _updated(uri, _stamp(number)))
        except TimeoutError:
            return SubscriptionsListenResult(_meta=_stamp(number))
        finally:
            self._open.discard(subscriber)

    async def _send(
        self, request: Request, number: RequestId, notification: ServerNotification
    ) -> None:
        """Raises TimeoutError when the client does not take it."""
        with anyio.fail_after(self._tell_seconds_max):
            await request.session.send_notification(notification, related_request_id=number)


def _acknowledged(
    honoured: SubscriptionFilter, stamp: Any
) -> SubscriptionsAcknowledgedNotification:
    params = SubscriptionsAcknowledgedNotificationParams(notifications=honoured, _meta=stamp)
    return SubscriptionsAcknowledgedNotification(params=params)


def _updated(uri: str, stamp: Any) -> ResourceUpdatedNotification:
    params = ResourceUpdatedNotificationParams(uri=uri, _meta=stamp)
    return ResourceUpdatedNotification(params=params)


def _stamp(number: RequestId) -> dict[str, Any]:
    return {SUBSCRIPTION_ID_META_KEY: number}
