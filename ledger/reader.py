"""Reads of the log on one asynchronous connection, repeated through lost connections."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg.abc import QueryNoTemplate
from psycopg.rows import TupleRow

from ledger.connection import RECONNECT_SECONDS_MAX, LastingConnection
from ledger.database import Connector, DatabaseUnavailableError


class Reader:
    """Runs one query at a time; a read is repeatable, so a lost connection is made anew."""

    def __init__(self, connector: Connector) -> None:
        self._connection = LastingConnection(connector)
        self._turn = asyncio.Lock()
        self._reading: asyncio.Task[list[TupleRow]] | None = None

    async def fetch(
        self, query: QueryNoTemplate, parameters: Mapping[str, Any], *, prepare: bool = True
    ) -> list[TupleRow]:
        """All rows of *query*; not to *prepare* it is to plan it anew for these parameters.

        Raises DatabaseUnavailableError after RECONNECT_SECONDS_MAX.
        """
        async with self._turn:
            await self._settled()
            # A task of its own: a query that is cancelled again and again, as the SDK cancels a
            # call whose client has left, would take the connection along.
            self._reading = asyncio.create_task(self._fetch(query, parameters, prepare=prepare))
            return await asyncio.shield(self._reading)

    async def close(self) -> None:
        """Let the connection go, after the query that is being run."""
        await self._settled()
        await self._connection.close()

    async def _settled(self) -> None:
        """Wait for a query whose asker has left."""
        if self._reading is not None and not self._reading.done():
            await asyncio.wait([self._reading])
        if self._reading is not None and not self._reading.cancelled():
            self._reading.exception()  # or it would be reported as lost; nobody is left to tell

    async def _fetch(
        self, query: QueryNoTemplate, parameters: Mapping[str, Any], *, prepare: bool
    ) -> list[TupleRow]:
        deadline = time.monotonic() + RECONNECT_SECONDS_MAX
        while True:
            connection = await self._connection.get(deadline)
            try:
                async with connection.cursor(binary=True) as cursor:
                    await cursor.execute(query, parameters, prepare=prepare)
                    return await cursor.fetchall()
            except psycopg.Error as error:
                if not connection.closed:
                    raise
                if time.monotonic() > deadline:
                    raise DatabaseUnavailableError(type(error).__name__) from error
