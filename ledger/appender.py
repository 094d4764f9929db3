"""Group commit: what waits is appended in one transaction, by one connection of the process.

There is no timer.  While one batch is being committed the next one gathers, so an idle appender
commits at once and a busy one commits many saves with one flush.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from ledger.connection import RECONNECT_SECONDS_MAX, LastingConnection
from ledger.database import Connector
from ledger.errors import AppenderBusyError, LedgerError, OutcomeUnknownError

# Half of what many agents have waiting: while one half is committed the other half decides.
BATCH_SAVES_MAX = 128
BATCH_BYTES_MAX = 2**20
WAITING_SAVES_MAX = 20_000
WAITING_BYTES_MAX = 64 * 2**20

APPEND = """
    SELECT verdict, first_position, last_position, command_digest, answer
      FROM ledger.append(
        %(chain_ids)b::uuid[], %(versions)b::int8[], %(counts)b::int4[],
        %(actors)s::text[], %(session_ids)s::text[],
        %(request_keys)b::uuid[], %(digests)b::bytea[], %(answers)b::bytea[],
        %(topics)s::text[], %(states)b::bytea[], %(recorded_ats)b::timestamptz[]
    )
"""

APPEND_ONE = """
    SELECT verdict, position, position, NULL, NULL
      FROM ledger.append_one(
        %(chain_id)b, %(version)b::int8, %(topic)s, %(state)b,
        %(recorded_at)b, %(actor)s, %(session_id)s
    )
"""


class AppendRefusedError(LedgerError):
    """The database refused an append; nothing of it was recorded."""

    def __init__(self, error: psycopg.Error) -> None:
        if isinstance(error, psycopg.errors.DiskFull):
            sentence = "the disk of the database is full, and nothing was recorded; make room"
        else:
            reason = error.diag.message_primary or type(error).__name__
            sentence = f"the database refused to record this ({reason}); nothing was recorded"
        super().__init__(sentence)
        self.sqlstate = error.sqlstate


@dataclass(frozen=True, slots=True)
class Request:
    """A client's name for one command, and what the command was and is answered with."""

    key: UUID
    command_digest: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class Save:
    """The consecutive events of one chain that one command decided."""

    chain_id: UUID
    first_version: int
    topics: list[str]
    states: list[bytes]
    recorded_at: list[datetime]
    actor: str
    session_id: str | None = None
    request: Request | None = None

    @property
    def size(self) -> int:
        """Bytes of its stored states."""
        return sum(map(len, self.states))


class Verdict(NamedTuple):
    """What became of a save: stored, known (recorded before) or conflict.

    Positions are of its first and last event.  ``command_digest`` and ``answer`` are those of
    the first time, when a request id was known.
    """

    verdict: str
    first_position: int
    last_position: int
    command_digest: bytes | None
    answer: bytes | None


class Appender:
    """Appends saves in the order they are given; one object and one connection a process."""

    def __init__(self, connector: Connector) -> None:
        self._connection = LastingConnection(connector)
        self._waiting: deque[tuple[Save, asyncio.Future[Verdict]]] = deque()
        self._waiting_bytes = 0
        self._flushing: asyncio.Task[None] | None = None
        # Saves stored since the start, for whoever counts.
        self.stored = 0

    async def append(self, save: Save) -> Verdict:
        """Record *save* durably: when this returns ``stored`` it is committed and flushed.

        Raises DatabaseUnavailableError and AppendRefusedError when nothing was recorded,
        OutcomeUnknownError when that is not known, AppenderBusyError when too many wait.
        """
        if len(self._waiting) >= WAITING_SAVES_MAX or self._waiting_bytes > WAITING_BYTES_MAX:
            raise AppenderBusyError(len(self._waiting))
        future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.append((save, future))
        self._waiting_bytes += save.size
        if self._flushing is None or self._flushing.done():
            self._start_flush()
        return await future

    async def close(self) -> None:
        """Finish what waits, then let the connection go."""
        while self._flushing is not None and not self._flushing.done():
            await asyncio.wait([self._flushing])
        await self._connection.close()

    def _start_flush(self) -> None:
        self._flushing = asyncio.create_task(self._flush())
        self._flushing.add_done_callback(_retrieve)

    async def _flush(self) -> None:
        while self._waiting:
            batch = self._take()
            saves = [save for save, _ in batch]
            try:
                verdicts = await self._record(saves)
            except LedgerError as error:
                await self._fail(batch, error)
                continue
            except BaseException as error:
                # A bug, and theirs to raise who wait for this batch; the others go on.
                for _, future in batch:
                    _set_exception(future, error)
                if self._waiting:
                    self._start_flush()
                raise
            for (_, future), verdict in zip(batch, verdicts, strict=True):
                if not future.cancelled():
                    future.set_result(verdict)

    def _take(self) -> list[tuple[Save, asyncio.Future[Verdict]]]:
        batch = [self._waiting.popleft()]
        size = batch[0][0].size
        while self._waiting and len(batch) < BATCH_SAVES_MAX:
            size += self._waiting[0][0].size
            if size > BATCH_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        self._waiting_bytes -= sum(save.size for save, _ in batch)
        return batch

    async def _fail(
        self, batch: list[tuple[Save, asyncio.Future[Verdict]]], error: LedgerError
    ) -> None:
        """Let only the save that was refused fail: the others of its batch are tried alone."""
        if len(batch) > 1 and isinstance(error, AppendRefusedError):
            for save, future in batch:
                try:
                    (verdict,) = await self._record([save])
                except LedgerError as refusal:
                    _set_exception(future, refusal)
                else:
                    if not future.cancelled():
                        future.set_result(verdict)
            return
        for _, future in batch:
            _set_exception(future, error)

    async def _record(self, saves: list[Save]) -> list[Verdict]:
        """Append in one transaction, through lost connections.

        After a lost answer the same bytes are sent again, which the database recognises.  It
        takes the lock first, so it judges after the lost transaction has ended one way or other.
        """
        deadline = time.monotonic() + RECONNECT_SECONDS_MAX
        sent = False
        while True:
            try:
                connection = await self._connection.get(deadline)
            except LedgerError as error:
                raise (
                    OutcomeUnknownError(getattr(error, "reason", str(error))) if sent else error
                ) from error
            try:
                sent = True
                verdicts = await _execute(connection, saves)
            except psycopg.Error as error:
                if not connection.closed:
                    raise AppendRefusedError(error) from error
                if time.monotonic() > deadline:
                    raise OutcomeUnknownError(type(error).__name__) from error
            else:
                self.stored += sum(verdict.verdict == "stored" for verdict in verdicts)
                return verdicts


async def _execute(connection: AsyncConnection[TupleRow], saves: list[Save]) -> list[Verdict]:
    statement, parameters = _statement(saves)
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(statement, parameters, prepare=True)
        return [Verdict(*row) for row in await cursor.fetchall()]


def _statement(saves: list[Save]) -> tuple[Any, dict[str, Any]]:
    if len(saves) == 1 and len(saves[0].states) == 1 and saves[0].request is None:
        (save,) = saves
        return APPEND_ONE, {
            "chain_id": save.chain_id,
            "version": save.first_version,
            "topic": save.topics[0],
            "state": save.states[0],
            "recorded_at": save.recorded_at[0],
            "actor": save.actor,
            "session_id": save.session_id,
        }
    return APPEND, append_parameters(saves)


def append_parameters(saves: list[Save]) -> dict[str, Any]:
    """What ``APPEND`` is given to append *saves* in order."""
    requests = [save.request for save in saves]
    return {
        "chain_ids": [save.chain_id for save in saves],
        "versions": [save.first_version for save in saves],
        "counts": [len(save.states) for save in saves],
        "actors": [save.actor for save in saves],
        "session_ids": [save.session_id for save in saves],
        "request_keys": [request and request.key for request in requests],
        "digests": [request and request.command_digest for request in requests],
        "answers": [request and request.answer for request in requests],
        "topics": [topic for save in saves for topic in save.topics],
        "states": [state for save in saves for state in save.states],
        "recorded_ats": [moment for save in saves for moment in save.recorded_at],
    }


def _set_exception(future: asyncio.Future[Verdict], error: BaseException) -> None:
    if not future.cancelled():
        future.set_exception(error)


def _retrieve(flush: asyncio.Task[None]) -> None:
    # Those who waited for its batch were told, so asyncio need not tell of it again.
    if not flush.cancelled():
        flush.exception()
