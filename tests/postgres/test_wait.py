"""Waiting until readers see a position, by push."""

import asyncio
from contextlib import asynccontextmanager

from ledger.database import Role
from projections.wait import PositionWaiter, wait_for
from tests.postgres.projecting import (
    SECONDS_MAX,
    Faulty,
    catch_up,
    follow,
    record_chain,
    running_worker,
)

SELECT_WAITER = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE '%thoughts_checkpoint%'
       AND pid <> pg_backend_pid()
"""


@asynccontextmanager
async def waiting(database):
    waiter = PositionWaiter(database.connector(Role.READER), "thoughts")
    try:
        yield waiter
    finally:
        await waiter.close()


def test_many_wait_on_one_connection_each_for_a_position_of_its_own(database, admin, writer):
    async def wait():
        async with waiting(database) as waiter:
            tasks = [asyncio.create_task(waiter.wait(n, SECONDS_MAX)) for n in (1, 2, 3, 4)]
            await asyncio.to_thread(record_chain, writer, "one", "two", "three")
            answers = await asyncio.gather(*tasks)
            connections = admin.execute(SELECT_WAITER).fetchall()
        return answers, connections

    with running_worker(database):
        answers, connections = asyncio.run(wait())

    assert answers == [True] * 4
    assert len(connections) == 1


def test_what_is_seen_already_is_not_waited_for(database, projector, writer):
    async def wait():
        async with waiting(database) as waiter:
            await waiter.wait(2, SECONDS_MAX)
            return await waiter.wait(1, 0)

    record_chain(writer, "one")
    catch_up(follow(projector))

    assert asyncio.run(wait())


def test_a_position_that_is_not_reached_in_time_is_answered_with_no(database, projector):
    async def wait():
        async with waiting(database) as waiter:
            return await waiter.wait(1, 0.05)

    follow(projector)

    assert not asyncio.run(wait())


def test_before_anything_is_built_nothing_is_seen_and_then_it_is(database, writer):
    async def wait():
        async with waiting(database) as waiter:
            too_early = await waiter.wait(2, 0.05)
            with running_worker(database):
                return too_early, await waiter.wait(2, SECONDS_MAX)

    record_chain(writer, "one")

    assert asyncio.run(wait()) == (False, True)


def test_a_waiter_goes_on_after_its_connection_is_lost(database, admin, projector, writer):
    async def wait():
        async with waiting(database) as waiter:
            await waiter.wait(0, SECONDS_MAX)
            waits = asyncio.create_task(waiter.wait(2, SECONDS_MAX))
            await asyncio.to_thread(_terminate_waiter, admin)
            await asyncio.to_thread(catch_up, follower)
            return await waits

    follower = follow(projector)
    record_chain(writer, "one")

    assert asyncio.run(wait())


def test_a_waiter_goes_on_after_the_operating_system_refused_it_a_connection(
    database, projector, writer, caplog
):
    async def wait():
        connector = Faulty(database.connector(Role.READER))
        waiter = PositionWaiter(connector, "thoughts")
        try:
            connector.fails = True
            waits = asyncio.create_task(waiter.wait(2, SECONDS_MAX))
            await connector.fail_until_tried()
            return await waits
        finally:
            await waiter.close()

    record_chain(writer, "one")
    catch_up(follow(projector))

    assert asyncio.run(wait())
    (said,) = caplog.messages
    assert said.startswith("waiting for read models has to wait")


def test_batches_of_a_generation_readers_do_not_see_wake_nobody(
    database, projector, reader, writer
):
    follow(projector)
    record_chain(writer, "one")
    projector.execute("SELECT pg_advisory_unlock_all()")
    catch_up(follow(projector, number=2))

    assert not wait_for(reader, "thoughts", 1, 0.05)


def test_one_who_has_nothing_else_to_do_can_wait_as_well(database, reader, writer):
    with running_worker(database):
        record_chain(writer, "one")

        assert wait_for(reader, "thoughts", 2, SECONDS_MAX)
    assert not wait_for(reader, "thoughts", 3, 0)


def _terminate_waiter(admin):
    for (pid,) in admin.execute(SELECT_WAITER).fetchall():
        admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
