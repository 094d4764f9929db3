"""An asynchronous connection that outlives the database server it was made to."""

import asyncio
import time

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from ledger.database import Connector, DatabaseUnavailableError
from ledger.embedded import DataDirectoryError
from ledger.errors import LedgerError

RECONNECT_SECONDS_MAX = 15.0
RECONNECT_PAUSE_SECONDS = 0.05


class LastingConnection:
    """One connection, made when first needed and made anew when it was lost."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: AsyncConnection[TupleRow] | None = None

    async def get(self, deadline: float) -> AsyncConnection[TupleRow]:
        """The connection as it is, or a new one; see ``connect_until``."""
        if self._connection is None or self._connection.closed:
            self._connection = await connect_until(self._connector, deadline)
        return self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


async def connect_until(connector: Connector, deadline: float) -> AsyncConnection[TupleRow]:
    """Try to connect, reviving the server if it is ours, until ``time.monotonic()`` says enough.

    Raises the last failure, DatabaseUnavailableError or EmbeddedPostgresError.
    """
    while True:
        try:
            return await connector.connect_async()
        except DatabaseUnavailableError as error:
            failure: LedgerError = error
        try:
            await asyncio.to_thread(connector.revive)
        except DataDirectoryError:
            raise  # waiting mends nothing here
        except LedgerError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure
        await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
