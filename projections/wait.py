"""Waiting until readers see a position of the log: by push, not by asking again and again."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier

from ledger.background import FAULTS, Outage, in_background
from ledger.database import Connector
from projections.follower import channel_of

# In case a notification is lost, or the read model was not there when first asked for.
POLL_SECONDS = 1.0
RECONNECT_PAUSE_SECONDS = 0.1

SELECT_POSITION = "SELECT position FROM live.{checkpoint}"


class PositionWaiter:
    """Waits, for many at once, on one connection, for the live read models of projections."""

    def __init__(self, connector: Connector, *projection_names: str) -> None:
        """*connector* is of any role that may read; it is used from the first ``wait`` on."""
        self._connector = connector
        self._positions = dict.fromkeys(projection_names, -1)
        self._waiting: dict[asyncio.Future[None], tuple[int, tuple[str, ...]]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._is_closed = False
        self._outage = Outage("waiting for read models")

    async def wait(self, position: int, timeout_seconds: float, *projection_names: str) -> bool:
        """Whether readers see everything up to *position*, after so long at most.

        In the read models of *projection_names*, by default in all it was made for.
        """
        if not self._is_closed and (self._listening is None or self._listening.done()):
            self._listening = in_background(self._listen())
        names = projection_names or tuple(self._positions)
        if self._is_seen(position, names):
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[reached] = position, names
        try:
            async with asyncio.timeout(timeout_seconds):
                await reached
        except TimeoutError:
            return False
        finally:
            del self._waiting[reached]
        return True

    async def close(self) -> None:
        """Stop listening; who still waits times out."""
        self._is_closed = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        while True:
            # Whatever is wrong with the database, those who wait get their answer at their time.
            try:
                async with await self._connector.connect_async() as connection:
                    await self._follow(connection)
            except FAULTS as fault:
                self._outage.say(fault)
            await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            with suppress(*FAULTS):
                await asyncio.to_thread(self._connector.revive)

    async def _follow(self, connection: AsyncConnection[TupleRow]) -> None:
        channels = {channel_of(name): name for name in self._positions}
        for name in self._positions:
            await connection.execute(_listen_to(name))
        while True:
            for name in self._positions:
                await self._look(connection, name)
            self._outage.end()
            async for notify in connection.notifies(timeout=POLL_SECONDS):
                self._reach(channels[notify.channel], int(notify.payload))

    async def _look(self, connection: AsyncConnection[TupleRow], name: str) -> None:
        with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            cursor = await connection.execute(_position_of(name))
            row = await cursor.fetchone()
            self._reach(name, row[0] if row else 0)

    def _reach(self, name: str, position: int) -> None:
        # Not the greatest seen: a read model that was dropped starts from the front.
        self._positions[name] = position
        for reached, (wanted, names) in self._waiting.items():
            if not reached.done() and self._is_seen(wanted, names):
                reached.set_result(None)

    def _is_seen(self, position: int, names: Sequence[str]) -> bool:
        return all(self._positions[name] >= position for name in names)


def wait_for(
    connection: Connection[TupleRow],
    projection_name: str,
    position: int,
    timeout_seconds: float,
) -> bool:
    """The same for one who has nothing else to do.  *connection* listens while it waits."""
    deadline = time.monotonic() + timeout_seconds
    connection.execute(_listen_to(projection_name))
    try:
        while True:
            if seen_position(connection, projection_name) >= position:
                return True
            seconds = min(deadline - time.monotonic(), POLL_SECONDS)
            if seconds <= 0:
                return False
            for notify in connection.notifies(timeout=seconds):
                if int(notify.payload) >= position:
                    return True
    finally:
        if not connection.closed:
            connection.execute(SQL("UNLISTEN {}").format(Identifier(channel_of(projection_name))))


def seen_position(connection: Connection[TupleRow], projection_name: str) -> int:
    """The position readers see; 0 when no worker has built the read model."""
    with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        row = connection.execute(_position_of(projection_name)).fetchone()
        return row[0] if row else 0
    return 0


def _listen_to(projection_name: str) -> Composed:
    return SQL("LISTEN {}").format(Identifier(channel_of(projection_name)))


def _position_of(projection_name: str) -> Composed:
    return SQL(SELECT_POSITION).format(checkpoint=Identifier(f"{projection_name}_checkpoint"))
