"""Turns on a chain, first come first served, over a bounded cache of chains."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from ledger.aggregate import ThoughtChain
from ledger.errors import ChainNotFoundError, VersionNotFoundError
from ledger.events import ChainEvent
from ledger.log import check_next
from ledger.reader import Reader
from ledger.serialization import Recorded, decode

# A cached thought costs about 400 bytes, a cached chain about 2 KiB.
CACHED_CHAINS_MAX = 2_000
CACHED_THOUGHTS_MAX = 50_000
LOAD_EVENTS_MAX = 2_000

SELECT_STREAM = """
    SELECT notification_id, originator_version, topic, state
      FROM ledger.events
     WHERE originator_id = %(chain_id)s
       AND originator_version > %(after)s
     ORDER BY originator_version
     LIMIT %(limit)s
"""

SELECT_VERSIONS = """
    SELECT notification_id, originator_version, topic, state
      FROM (SELECT notification_id, originator_version, topic, state,
                   sum(octet_length(state)) OVER (
                       ORDER BY originator_version ROWS UNBOUNDED PRECEDING
                   ) - octet_length(state) AS bytes_before
              FROM ledger.events
             WHERE originator_id = %(chain_id)s
               AND originator_version = ANY (%(versions)b::int8[])) AS sized
     WHERE bytes_before < %(bytes_max)s
     ORDER BY originator_version
"""


class Turn:
    """One command's time on one chain.  ``fresh``: the chain was read from the log in this turn."""

    def __init__(self, chains: "Chains", chain_id: UUID) -> None:
        self._chains = chains
        self.chain_id = chain_id
        self.fresh = False

    async def chain(self) -> ThoughtChain:
        """The chain, as cached.  Raises ChainNotFoundError."""
        cached = self._chains.cached(self.chain_id)
        return cached if cached is not None else await self.refresh()

    async def refresh(self) -> ThoughtChain:
        """The chain with everything recorded by now.  Raises ChainNotFoundError."""
        self.fresh = True
        return await self._chains.read(self.chain_id)


class Chains:
    """The chains this process works on: one command at a time each, and a bounded cache."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cache: OrderedDict[UUID, ThoughtChain] = OrderedDict()
        self._cached_thoughts = 0
        self._sizes: dict[UUID, int] = {}
        self._locks: dict[UUID, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, chain_id: UUID) -> AsyncGenerator[Turn]:
        """Wait for the chain's earlier commands of this process; asyncio locks are fair."""
        lock, users = self._locks.get(chain_id) or (asyncio.Lock(), 0)
        self._locks[chain_id] = lock, users + 1
        try:
            async with lock:
                yield Turn(self, chain_id)
        finally:
            lock, users = self._locks[chain_id]
            if users == 1:
                del self._locks[chain_id]
            else:
                self._locks[chain_id] = lock, users - 1

    def cached(self, chain_id: UUID) -> ThoughtChain | None:
        return self._cache.get(chain_id)

    async def read(self, chain_id: UUID) -> ThoughtChain:
        """The chain by its log, from where the cache ends.  Raises ChainNotFoundError."""
        chain = self._cache.get(chain_id)
        while True:
            after = 0 if chain is None else chain.version
            events = await self.events(chain_id, after, LOAD_EVENTS_MAX)
            for event in events:
                chain = _mutated(event, chain)
            if len(events) < LOAD_EVENTS_MAX:
                break
        if chain is None:
            raise ChainNotFoundError(chain_id)
        self.keep(chain)
        return chain

    async def read_at(self, chain_id: UUID, version: int) -> ThoughtChain:
        """The chain as it was at a version, not cached.

        Raises ChainNotFoundError, VersionNotFoundError.
        """
        chain: ThoughtChain | None = None
        while (after := 0 if chain is None else chain.version) < version:
            events = await self.events(chain_id, after, min(LOAD_EVENTS_MAX, version - after))
            for event in events:
                chain = _mutated(event, chain)
            if not events:
                break
        if chain is None:
            raise ChainNotFoundError(chain_id)
        if chain.version < version:
            raise VersionNotFoundError(chain_id, version, chain.version)
        return chain

    async def recorded(self, chain_id: UUID, versions: list[int], bytes_max: int) -> list[Recorded]:
        """The events at some versions, verified: the first, and more as *bytes_max* allows."""
        rows = await self._reader.fetch(
            SELECT_VERSIONS,
            {"chain_id": chain_id, "versions": versions, "bytes_max": bytes_max},
        )
        return [
            decode(position, StoredEvent(chain_id, version, topic, state))
            for position, version, topic, state in rows
        ]

    async def events(self, chain_id: UUID, after: int, limit: int) -> list[ChainEvent]:
        """Up to *limit* events of a chain after a version, verified."""
        rows = await self._reader.fetch(
            SELECT_STREAM, {"chain_id": chain_id, "after": after, "limit": limit}
        )
        events: list[ChainEvent] = []
        for position, version, topic, state in rows:
            recorded = decode(position, StoredEvent(chain_id, version, topic, state))
            check_next(recorded, after)
            after = version
            events.append(cast("ChainEvent", recorded.event))
        return events

    def keep(self, chain: ThoughtChain) -> None:
        """Cache the chain as the one used last; let go of those used longest ago."""
        self._cache[chain.id] = chain
        self._cache.move_to_end(chain.id)
        self._cached_thoughts += chain.thought_count - self._sizes.get(chain.id, 0)
        self._sizes[chain.id] = chain.thought_count
        while len(self._cache) > 1 and (
            len(self._cache) > CACHED_CHAINS_MAX or self._cached_thoughts > CACHED_THOUGHTS_MAX
        ):
            self.drop(next(iter(self._cache)))

    def drop(self, chain_id: UUID) -> None:
        """Forget the cached chain, so that the next command reads it again."""
        if self._cache.pop(chain_id, None) is not None:
            self._cached_thoughts -= self._sizes.pop(chain_id)


def _mutated(event: ChainEvent, chain: ThoughtChain | None) -> ThoughtChain:
    mutated: ThoughtChain | None = event.mutate(chain)
    assert mutated is not None
    return mutated
