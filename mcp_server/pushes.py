"""Tells subscribers that a resource was updated, whoever updated it, in whatever process.

Of the 2026-07-28 protocol a client opens a stream with ``subscriptions/listen``.  Older clients
subscribe to one resource at a time, which takes a connection that lasts.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from mcp import MCPError
from mcp.server.session import ServerSession
from mcp_types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from ledger.background import in_background
from ledger.display import shortened
from ledger.growth import GrowthWatch
from mcp_server.requests import Request, Requests
from mcp_server.resources.resource import (
    EVENTS_PATH,
    STATUS_URI,
    ResourceNotFoundError,
    uri_of,
)
from mcp_server.streams import (
    TELLS_AT_ONCE_MAX,
    TELLS_PER_SECOND_MAX,
    Pace,
    Seldom,
    Streams,
    Subscriber,
)

# Resources that one stream, or the one client of an older protocol, may name.
URIS_MAX = 1_000
# The status changes with whatever is recorded.
STATUS_PAUSE_SECONDS = 1.0


class Pushes:
    """The subscribers of a server.  The log is watched only while there are any."""

    def __init__(self, requests: Requests, is_told: Callable[[str], bool]) -> None:
        """*is_told*: whether updates of an address are told at all."""
        self._requests = requests
        self._is_told = is_told
        pace = Pace(TELLS_PER_SECOND_MAX, TELLS_AT_ONCE_MAX)
        self._streams = Streams(pace)
        self._older = Subscriber(pace)
        self._telling_older: asyncio.Task[None] | None = None
        self._status = Seldom(STATUS_PAUSE_SECONDS, lambda: self._publish([STATUS_URI]))
        self._wanted: Counter[str] = Counter()
        self._watch: asyncio.Task[GrowthWatch] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def listen(
        self, request: Request, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Tell of the resources asked for, until the client ends the stream.

        Of what was asked only what can come is acknowledged: no list of ours is announced.
        """
        asked = params.notifications.resource_subscriptions or []
        uris = [uri for uri in dict.fromkeys(asked) if self._is_told(uri)][:URIS_MAX]
        honoured = SubscriptionFilter(resource_subscriptions=uris or None)
        self._want(uris)
        try:
            with self._requests.reading(request):
                await self._watching()
            return await self._streams.serve(request, honoured)
        finally:
            self._unwant(uris)

    async def subscribe(self, request: Request, params: SubscribeRequestParams) -> EmptyResult:
        """Tell the one client of this connection of one more resource."""
        uri = str(params.uri)
        with self._requests.reading(request):
            if not self._is_told(uri):
                raise ResourceNotFoundError(uri, _nothing_told_of(uri))
            if uri not in self._older.uris and len(self._older.uris) >= URIS_MAX:
                raise MCPError(INVALID_PARAMS, f"over {URIS_MAX} subscriptions; end some first")
            if uri not in self._older.uris:
                self._older.uris.add(uri)
                self._want([uri])
            if self._telling_older is None:
                self._telling_older = in_background(self._tell_older(request.session))
            try:
                await self._watching()
            except BaseException:
                self._forget(uri)
                raise
        return EmptyResult()

    async def unsubscribe(self, _: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        self._forget(str(params.uri))
        return EmptyResult()

    @asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncGenerator[dict[str, Any]]:
        """As long as the server serves; at the end nothing is watched any more."""
        try:
            yield {}
        finally:
            for uri in list(self._older.uris):
                self._forget(uri)
            if self._telling_older is not None:
                self._telling_older.cancel()
                await asyncio.wait([self._telling_older])
                self._telling_older = None
            if self._ending:
                await asyncio.wait(self._ending)

    def _want(self, uris: Sequence[str]) -> None:
        self._wanted.update(uris)

    def _unwant(self, uris: Sequence[str]) -> None:
        self._wanted -= Counter(uris)
        if not self._wanted and self._watch is not None:
            ending = asyncio.create_task(_end(self._watch))
            self._watch = None
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _forget(self, uri: str) -> None:
        if uri in self._older.uris:
            self._older.forget(uri)
            self._unwant([uri])

    async def _watching(self) -> None:
        """Whatever is recorded after this is told.  Raises LedgerError."""
        if not self._wanted:
            return
        if self._watch is None or (self._watch.done() and _failed(self._watch)):
            self._watch = asyncio.create_task(self._begin())
        elif self._watch.done() and not self._watch.result().is_watching:
            self._watch = asyncio.create_task(_begin_again(self._watch.result()))
        await asyncio.shield(self._watch)

    async def _begin(self) -> GrowthWatch:
        await self._requests.source.get()
        watch = GrowthWatch(self._requests.source.reader(), self._tell)
        await watch.start()
        return watch

    async def _tell(self, chain_ids: Sequence[UUID]) -> None:
        uris = (uri for id_ in chain_ids for uri in (uri_of(id_), uri_of(id_, EVENTS_PATH)))
        self._publish([uri for uri in uris if uri in self._wanted])
        self._status.ask()

    def _publish(self, uris: Sequence[str]) -> None:
        self._streams.add(uris)
        self._older.add(uris)

    async def _tell_older(self, session: ServerSession) -> None:
        while True:
            await session.send_resource_updated(await self._older.take())


async def _begin_again(watch: GrowthWatch) -> GrowthWatch:
    await watch.start()
    return watch


async def _end(watch: "asyncio.Task[GrowthWatch]") -> None:
    watch.cancel()
    await asyncio.wait([watch])
    if not _failed(watch):
        await watch.result().stop()


def _failed(watch: "asyncio.Task[GrowthWatch]") -> bool:
    return watch.cancelled() or watch.exception() is not None


def _nothing_told_of(uri: str) -> str:
    return (
        f"no updates are told of {shortened(uri)}; subscribe to thought-chain://CHAIN_ID, to "
        f"thought-chain://CHAIN_ID{EVENTS_PATH} or to {STATUS_URI}"
    )
