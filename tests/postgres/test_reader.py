"""Reads for a server, whoever asks for them leaves."""

import asyncio
import contextlib

import anyio
import pytest

from ledger.database import Role
from ledger.reader import Reader
from tests.postgres.projecting import SECONDS_MAX

SELECT_SLOWLY = "SELECT pg_sleep(0.2)::text, %(n)s::int"
SELECT_SLEEPERS = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND wait_event = 'PgSleep'
"""


async def cancelled_by_anyio(reader, admin):
    """As the SDK cancels a call: again and again, until the task has ended."""
    async with anyio.create_task_group() as group:
        group.start_soon(reader.fetch, SELECT_SLOWLY, {"n": 1})
        await until_it_sleeps(admin)
        group.cancel_scope.cancel()


async def cancelled_by_asyncio(reader, admin):
    task = asyncio.create_task(reader.fetch(SELECT_SLOWLY, {"n": 1}))
    await until_it_sleeps(admin)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def until_it_sleeps(admin):
    async with asyncio.timeout(SECONDS_MAX):
        while admin.execute(SELECT_SLEEPERS).fetchone() == (0,):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("cancelled", [cancelled_by_anyio, cancelled_by_asyncio])
def test_a_reader_reads_on_when_one_who_asked_has_left(database, admin, caplog, cancelled):
    async def read():
        async with contextlib.aclosing(ClosingReader(database.connector(Role.READER))) as reader:
            for _ in range(2):
                await cancelled(reader, admin)
            return await reader.fetch("SELECT %(n)s::int", {"n": 2})

    assert asyncio.run(read()) == [(2,)]
    assert not caplog.records


def test_who_waits_for_a_turn_and_leaves_asks_nothing(database, admin):
    async def read():
        async with contextlib.aclosing(ClosingReader(database.connector(Role.READER))) as reader:
            first = asyncio.create_task(reader.fetch(SELECT_SLOWLY, {"n": 1}))
            await until_it_sleeps(admin)
            second = asyncio.create_task(reader.fetch("SELECT 1 / %(n)s::int", {"n": 0}))
            await anyio.lowlevel.checkpoint()
            second.cancel()
            return await first

    assert asyncio.run(read()) == [("", 1)]


class ClosingReader(Reader):
    aclose = Reader.close
