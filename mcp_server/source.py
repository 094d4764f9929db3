"""The ledger behind the tools, opened while the handshake is being answered, never before it."""

import asyncio
import logging
from collections.abc import Callable

from ledger.application import Ledger
from ledger.database import Connector, Database, Role
from ledger.errors import LedgerError
from ledger.said import Said
from ledger.settings import Settings
from projections.lists import ChainLists

logger = logging.getLogger("thought-ledger")


class LedgerSource:
    """Opens the ledger once, in the background, and tries again for a call that needs it."""

    def __init__(
        self,
        settings: Settings,
        on_open: Callable[[], None] = lambda: None,
        *,
        role: Role = Role.WRITER,
    ) -> None:
        """*on_open* is called once, when the database is ready; *role* is what the ledger may do.

        Raises DatabaseUnfitError when the settings name no database that could be.
        """
        self._database = Database(settings)
        self._on_open = on_open
        self._role = role
        self._opening: asyncio.Task[Ledger] | None = None
        self._queue = asyncio.Lock()
        self.error: LedgerError | None = None
        self.lists = ChainLists(self.reader)
        """The read model of chains, for after ``get``."""

    def start(self) -> None:
        """Begin to open it; an error is kept for whoever asks for the ledger."""
        self._opening = asyncio.create_task(self._open())
        # Read once, so that an error nobody has asked for yet is not reported as lost.
        self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def get(self) -> Ledger:
        """The ledger.  Raises what ``Database.open`` raises; the next call then tries again."""
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self.start()
        assert self._opening is not None
        opening = self._opening
        # In the order they come: whoever comes at the moment it opens, when those who waited have
        # yet to wake, must not be recorded before them.
        async with self._queue:
            return await asyncio.shield(opening)

    def reader(self) -> Connector:
        """Makes connections that read the read models; for after ``get``."""
        return self._database.connector(Role.READER)

    async def close(self) -> None:
        """Finish the appends in flight and give the database up."""
        try:
            if self._opening is not None:
                try:
                    ledger = await self._opening
                except LedgerError:
                    pass  # it was said to whoever asked
                else:
                    await ledger.close()
        finally:
            await self.lists.close()
            await asyncio.to_thread(self._database.close)

    async def _open(self) -> Ledger:
        try:
            await asyncio.to_thread(self._database.open)
        except LedgerError as error:
            repeated = str(error) == str(self.error)
            self.error = error
            if repeated:
                raise
            # A sentence for the operator, no traceback.
            logger.error(Said(str(error), event="database_unavailable"))  # noqa: TRY400
            raise
        self.error = None
        self._on_open()
        return Ledger(self._database, self._role)
