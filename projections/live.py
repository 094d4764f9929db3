"""The connections by which a server asks the live read models: one asks, one waits.

A third hears of embedded questions, where any are asked.
"""

from collections.abc import Callable

from ledger.database import Connector
from ledger.reader import Reader
from projections.catalogue import ALL
from projections.embeddings.answers import AnswerListener
from projections.wait import PositionWaiter

WAIT_SECONDS_MAX = 1.0


class LiveConnections:
    """Makes them when they are first needed."""

    def __init__(self, connector: Callable[[], Connector]) -> None:
        """*connector* makes one of any role that may read, once the database is open."""
        self._make_connector = connector
        self._opened: tuple[Reader, PositionWaiter] | None = None
        self._answers: AnswerListener | None = None

    @property
    def reader(self) -> Reader:
        return self._open()[0]

    @property
    def answers(self) -> AnswerListener:
        if self._answers is None:
            self._answers = AnswerListener(self._make_connector())
        return self._answers

    async def wait(self, position: int, *names: str) -> bool:
        """Whether the read models of *names* are seen up to *position*, in WAIT_SECONDS_MAX."""
        if position == 0:
            return True
        return await self._open()[1].wait(position, WAIT_SECONDS_MAX, *names)

    async def close(self) -> None:
        """Let the connections go."""
        if self._answers is not None:
            await self._answers.close()
        if self._opened is not None:
            reader, waiter = self._opened
            await waiter.close()
            await reader.close()

    def _open(self) -> tuple[Reader, PositionWaiter]:
        if self._opened is None:
            connector = self._make_connector()
            names = [projection.name for projection in ALL]
            self._opened = Reader(connector), PositionWaiter(connector, *names)
        return self._opened
