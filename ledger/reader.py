"""Reads of the log on one asynchronous connection, repeated through lost connections."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
from psycopg.rows import TupleRow

from ledger.connection import RECONNECT_SECONDS_MAX, LastingConnection
from ledger.database import Connector, DatabaseUnavailableError


class Reader:
    """Runs one query at a time; a read is repeatable, so a lost connection is made anew."""

    def __init__(self, connector: Connector) -> None:
        self._connection = LastingConnection(connector)
        self._turn = asyncio.Lock()

    async def fetch(
        self, query: LiteralString, parameters: Mapping[str, Any], *, prepare: bool = True
    ) -> list[TupleRow]:
        """All rows of *query*; not to *prepare* it is to plan it anew for these parameters.

        Raises DatabaseUnavailableError after RECONNECT_SECONDS_MAX.
        """
        deadline = time.monotonic() + RECONNECT_SECONDS_MAX
        async with self._turn:
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

    async def close(self) -> None:
        await self._connection.close()
