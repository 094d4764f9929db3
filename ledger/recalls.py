"""Recalls: that a chain was read again, recorded in the background, in streams of their own.

Whoever reads waits for nothing of it and never hears of its faults.  What is noted within half a
second goes into one event for each chain, tool and caller.  Killed, a process takes the recalls of
its last moment along: they are counts, and no reasoning is lost with them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID, uuid5

from ledger.appender import Appender, Save
from ledger.background import FAULTS, Outage, in_background
from ledger.events import ChainRecalled
from ledger.header import Context
from ledger.reader import Reader
from ledger.serialization import encode

RECALLS_NAMESPACE = UUID("3f1d2c86-5b0e-5a77-9d0c-7c8e3a1b6f42")

BATCH_SECONDS = 0.5
RETRY_SECONDS = 1.0
# A process that ends has other things to finish.
CLOSE_SECONDS_MAX = 0.5
# Of 36 bytes each.
EVENT_THOUGHTS_MAX = 10_000
WAITING_THOUGHTS_MAX = 200_000

SELECT_VERSION = """
    SELECT coalesce(max(originator_version), 0)
      FROM ledger.events
     WHERE originator_id = %(stream_id)s
"""


def recalls_of(chain_id: UUID) -> UUID:
    """The stream of a chain's recalls: not the chain's, whose version they never move."""
    return uuid5(RECALLS_NAMESPACE, str(chain_id))


class _Recalled(NamedTuple):
    """What one event tells: it has one header, and names one tool."""

    chain_id: UUID
    tool: str
    context: Context


class Recalls:
    """Notes recalls and records them, while there are any; one object a process."""

    def __init__(self, reader: Reader, appender: Appender) -> None:
        self._reader = reader
        self._appender = appender
        self._waiting: defaultdict[_Recalled, list[str]] = defaultdict(list)
        self._waiting_thoughts = 0
        self._closing = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._outage = Outage("counting recalls")
        self.stored = 0
        """How many events it has recorded."""

    def note(
        self, context: Context, chain_id: UUID, tool: str, thought_ids: Sequence[UUID]
    ) -> None:
        """*tool* returned these thoughts of a chain; each counts as often as it was returned.

        With too many waiting, as in a long outage of the database, it is forgotten.
        """
        full = self._waiting_thoughts + len(thought_ids) > WAITING_THOUGHTS_MAX
        if not thought_ids or full or self._closing.is_set():
            return
        key = _Recalled(chain_id, tool, replace(context, request_id=None))
        self._waiting[key] += map(str, thought_ids)
        self._waiting_thoughts += len(thought_ids)
        if self._working is None or self._working.done():
            self._working = in_background(self._work())

    async def close(self) -> None:
        """Record what waits, unless that takes too long."""
        self._closing.set()
        if self._working is not None and not self._working.done():
            await asyncio.wait([self._working], timeout=CLOSE_SECONDS_MAX)
            self._working.cancel()
            await asyncio.wait([self._working])

    async def _work(self) -> None:
        while self._waiting:
            await self._rest(BATCH_SECONDS)
            waiting, self._waiting = self._waiting, defaultdict(list)
            self._waiting_thoughts = 0
            streams: defaultdict[UUID, list[tuple[_Recalled, list[str]]]] = defaultdict(list)
            for recalled, thought_ids in waiting.items():
                streams[recalls_of(recalled.chain_id)].append((recalled, thought_ids))
            await asyncio.gather(*(self._record(*stream) for stream in streams.items()))

    async def _record(self, stream_id: UUID, noted: Iterable[tuple[_Recalled, list[str]]]) -> None:
        for recalled, thought_ids in noted:
            for start in range(0, len(thought_ids), EVENT_THOUGHTS_MAX):
                await self._append(
                    stream_id, recalled, thought_ids[start : start + EVENT_THOUGHTS_MAX]
                )

    async def _append(self, stream_id: UUID, recalled: _Recalled, thought_ids: list[str]) -> None:
        """Append one event to its stream, to which others append as well."""
        save: Save | None = None
        while True:
            try:
                # The same bytes again after a fault: should they be there already, they are known.
                save = save or await self._next(stream_id, recalled, thought_ids)
                verdict = await self._appender.append(save)
            except FAULTS as fault:
                if self._closing.is_set():
                    return
                self._outage.say(fault)
                await self._rest(RETRY_SECONDS)
                continue
            self._outage.end()
            if verdict.verdict != "conflict":
                self.stored += verdict.verdict == "stored"
                return
            save = None

    async def _next(self, stream_id: UUID, recalled: _Recalled, thought_ids: list[str]) -> Save:
        ((version,),) = await self._reader.fetch(SELECT_VERSION, {"stream_id": stream_id})
        return _save(stream_id, version + 1, recalled, thought_ids)

    async def _rest(self, seconds: float) -> None:
        """Wait a while, or until there is no time left."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            pass


def _save(stream_id: UUID, version: int, recalled: _Recalled, thought_ids: list[str]) -> Save:
    said = {
        "chain_id": recalled.chain_id,
        "tool": recalled.tool,
        "thought_ids": thought_ids,
    }
    event = ChainRecalled(
        originator_id=stream_id,
        originator_version=version,
        timestamp=ChainRecalled.create_timestamp(),
        **said,
    )
    return Save(
        chain_id=stream_id,
        first_version=version,
        topics=[event.TOPIC],
        states=[encode(event, recalled.context)],
        recorded_at=[event.timestamp],
        actor=recalled.context.actor,
    )
