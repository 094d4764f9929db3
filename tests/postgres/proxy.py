"""A proxy between client and PostgreSQL that loses the connection when told to, and as told.

It stands in a directory of its own, as a Unix socket that libpq finds by ``host``.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SOCKET = ".s.PGSQL.5432"
# A stored header holds it, so whatever holds it appends.
MARK = b'"commitment":'
READY_FOR_QUERY = b"Z\x00\x00\x00\x05I"
CHUNK_BYTES = 2**16


class Loss(StrEnum):
    """What is lost with the connection of the next append."""

    QUERY = "the query never arrives"
    HALF = "half of the query arrives"
    RACE = "the query arrives and nobody waits for the answer"
    ANSWER = "the answer is lost after the commit"
    LATE = "the query arrives after it was sent again"


class Proxy:
    """Loses one connection for every ``Loss`` in *losses*, the first first."""

    def __init__(self, directory: Path, url: str) -> None:
        self.url = make_conninfo(url, host=str(directory))
        self.losses: list[Loss] = []
        self.lost = 0
        self._server_socket = Path(str(conninfo_to_dict(url)["host"])) / SOCKET
        self._relays: set[asyncio.Task[None]] = set()
        self._late: list[tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until it ends or is lost."""
        upstream = await asyncio.open_unix_connection(str(self._server_socket))
        answers = asyncio.create_task(_copy(upstream[0], writer))
        self._relays.add(answers)
        try:
            await self._relay(reader, upstream, answers)
        finally:
            answers.cancel()
            writer.close()
            self._relays.discard(answers)

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        answers: asyncio.Task[None],
    ) -> None:
        while said := await reader.read(CHUNK_BYTES):
            if self.losses and MARK in said:
                answers.cancel()
                await asyncio.wait([answers])
                self.lost += 1
                await self._lose(self.losses.pop(0), said, upstream)
                return
            upstream[1].write(said)
        upstream[1].close()

    async def _lose(
        self,
        loss: Loss,
        said: bytes,
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        server_reader, server = upstream
        match loss:
            case Loss.LATE:
                self._late.append((said, *upstream))
                return
            case Loss.HALF:
                server.write(said[: len(said) // 2])
            case Loss.RACE:
                server.write(said)
            case Loss.ANSWER:
                server.write(said)
                await server_reader.readuntil(READY_FOR_QUERY)
            case Loss.QUERY:
                pass
        server.close()

    async def deliver_late(self) -> None:
        """Let what was held back arrive now, and wait until the server has dealt with it."""
        while self._late:
            said, server_reader, server = self._late.pop()
            server.write(said)
            await server_reader.readuntil(READY_FOR_QUERY)
            server.close()


@asynccontextmanager
async def proxy_before(url: str, directory: Path) -> AsyncIterator[Proxy]:
    """A proxy in a directory whose path is short enough for a socket."""
    proxy = Proxy(directory, url)
    server = await asyncio.start_unix_server(proxy.serve, directory / SOCKET)
    async with server:
        yield proxy


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # However the server ended the connection, the client must hear that it ended.
    with suppress(ConnectionError):
        while said := await reader.read(CHUNK_BYTES):
            writer.write(said)
    writer.close()
