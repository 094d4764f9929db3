"""Which chains grow, whoever writes to them: told by push, on one connection while it is wanted."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from ledger.background import FAULTS, Outage, in_background
from ledger.connection import RECONNECT_PAUSE_SECONDS, RECONNECT_SECONDS_MAX, connect_until
from ledger.database import Connector, DatabaseUnavailableError
from ledger.log import LISTEN_TO_APPENDS, SELECT_HEAD

PAGE_EVENTS_MAX = 500
# In case a notification is lost.
POLL_SECONDS = 1.0
# A log that never rests is looked at so often and no oftener; one at rest at once.
LOOK_PAUSE_SECONDS = 0.02

# Of a recall this tells the stream of its own, which is no chain and which nobody asks about.
SELECT_GROWN = """
    SELECT notification_id, originator_id
      FROM ledger.events
     WHERE notification_id > %(after)s
     ORDER BY notification_id
     LIMIT %(limit)s
"""

OnGrowth = Callable[[Sequence[UUID]], Awaitable[None]]


class GrowthWatch:
    """Tells which chains have grown, each once a look, from ``start`` to ``stop``.

    A lost connection is made anew and the log read on from where it was, so that nothing is missed.
    Only a bug of *on_growth* ends it before; then it can be started again.
    """

    def __init__(self, connector: Connector, on_growth: OnGrowth) -> None:
        """*connector* is of any role that may read.  *on_growth* is waited for."""
        self._connector = connector
        self._on_growth = on_growth
        self._position: int | None = None
        self._connection: AsyncConnection[TupleRow] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._outage = Outage("telling subscribers what is recorded")

    @property
    def is_watching(self) -> bool:
        return self._watching is not None and not self._watching.done()

    async def start(self) -> None:
        """Whatever is recorded from now on will be told.

        Raises DatabaseUnavailableError after RECONNECT_SECONDS_MAX.
        """
        self._connection = await self._listen()
        self._watching = in_background(self._watch(self._connection))

    async def stop(self) -> None:
        """Let the connection go."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        # A task that was cancelled before it began has not closed it.
        if self._connection is not None:
            await self._connection.close()

    async def _watch(self, connection: AsyncConnection[TupleRow]) -> None:
        while True:
            try:
                async with connection:
                    await self._follow(connection)
            except FAULTS as fault:  # whatever it is, another connection is tried
                self._outage.say(fault)
            await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            self._connection = connection = await self._listen_again()

    async def _follow(self, connection: AsyncConnection[TupleRow]) -> None:
        while True:
            await self._look(connection)
            self._outage.end()
            await asyncio.sleep(LOOK_PAUSE_SECONDS)
            async for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                pass

    async def _look(self, connection: AsyncConnection[TupleRow]) -> None:
        while True:
            page = {"after": self._position, "limit": PAGE_EVENTS_MAX}
            cursor = await connection.execute(SELECT_GROWN, page, prepare=True)
            rows = await cursor.fetchall()
            if rows:
                # Before they are told: a bug would meet the same rows again and again.
                self._position = rows[-1][0]
                # A dict for its order: the chains as they grew.
                await self._on_growth(list(dict.fromkeys(chain_id for _, chain_id in rows)))
            if len(rows) < PAGE_EVENTS_MAX:
                return

    async def _listen_again(self) -> AsyncConnection[TupleRow]:
        while True:
            try:
                return await self._listen()
            except FAULTS as fault:
                self._outage.say(fault)
            await asyncio.sleep(RECONNECT_PAUSE_SECONDS)

    async def _listen(self) -> AsyncConnection[TupleRow]:
        """A connection that listens, and the position to go on from.

        Raises DatabaseUnavailableError.
        """
        connection = await connect_until(self._connector, time.monotonic() + RECONNECT_SECONDS_MAX)
        try:
            await connection.execute(LISTEN_TO_APPENDS)
            if self._position is None:
                cursor = await connection.execute(SELECT_HEAD)
                row = await cursor.fetchone()
                self._position = row[0] if row else 0
        except psycopg.Error as error:
            await connection.close()
            raise DatabaseUnavailableError(type(error).__name__) from error
        except (OSError, asyncio.CancelledError):
            await connection.close()
            raise
        return connection
