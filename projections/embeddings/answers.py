"""Hears which questions are answered, for many at once, on one connection."""

import asyncio
from contextlib import suppress
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from ledger.background import FAULTS, Outage, in_background
from ledger.database import Connector
from projections.embeddings.answering import ANSWERED_CHANNEL

RECONNECT_PAUSE_SECONDS = 0.1
# So often at least it is seen that the connection is lost.
POLL_SECONDS = 1.0


class AnswerListener:
    """Connects when it is first asked to, and again when the connection is lost."""

    def __init__(self, connector: Connector) -> None:
        """*connector* is of any role that may read."""
        self._connector = connector
        self._expected: dict[UUID, asyncio.Future[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_heard = asyncio.Event()
        self._is_closed = False
        self._outage = Outage("hearing of embedded questions")

    async def listen(self) -> None:
        """Return once whatever is answered from now on is heard of."""
        if not self._is_closed and (self._task is None or self._task.done()):
            self._task = in_background(self._listen())
        await self._is_heard.wait()

    def expect(self, question_id: UUID) -> asyncio.Future[None]:
        """Done when that question is answered; ``forget`` it in any case."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._expected[question_id] = answered
        return answered

    def forget(self, question_id: UUID) -> None:
        self._expected.pop(question_id, None)

    async def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self) -> None:
        while True:
            try:
                async with await self._connector.connect_async() as connection:
                    await connection.execute(f"LISTEN {ANSWERED_CHANNEL}")
                    self._is_heard.set()
                    self._outage.end()
                    await self._hear(connection)
            except FAULTS as fault:
                self._outage.say(fault)
            finally:
                self._is_heard.clear()
            await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            with suppress(*FAULTS):
                await asyncio.to_thread(self._connector.revive)

    async def _hear(self, connection: AsyncConnection[TupleRow]) -> None:
        while True:
            async for notify in connection.notifies(timeout=POLL_SECONDS):
                answered = self._expected.get(UUID(notify.payload))
                if answered is not None and not answered.done():
                    answered.set_result(None)
