"""Who watches the log is told which chains grow, whoever writes, and misses none."""

import asyncio
from contextlib import asynccontextmanager
from uuid import uuid4

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.growth import PAGE_EVENTS_MAX, GrowthWatch
from tests.acceptance.product import eventually
from tests.postgres.projecting import SECONDS_MAX, Faulty, record, record_chain, thought

SELECT_WATCHERS = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND query ~ 'notification_id, originator_id|max.notification_id'
"""


class Told:
    """What a watch has told, and waiting for it."""

    def __init__(self):
        self.looks = []
        self._changed = asyncio.Condition()

    async def take(self, chain_ids):
        async with self._changed:
            self.looks.append(list(chain_ids))
            self._changed.notify_all()

    async def hear_of(self, *chains):
        wanted = {chain.id for chain in chains}
        async with asyncio.timeout(SECONDS_MAX), self._changed:
            await self._changed.wait_for(lambda: wanted <= set(self.all))

    @property
    def all(self):
        return [chain_id for look in self.looks for chain_id in look]


@asynccontextmanager
async def watching(database):
    told = Told()
    watch = GrowthWatch(database.connector(Role.READER), told.take)
    await watch.start()
    try:
        yield told
    finally:
        await watch.stop()


def test_a_chain_that_grows_is_told_once_however_many_events_it_grew_by(database, writer):
    async def watch():
        async with watching(database) as told:
            chain = await asyncio.to_thread(record_chain, writer, "one", "two", "three")
            await told.hear_of(chain)
        return told.looks, chain

    looks, chain = asyncio.run(watch())

    assert looks == [[chain.id]]


def test_what_was_recorded_before_is_not_told(database, writer):
    async def watch():
        async with watching(database) as told:
            new = await asyncio.to_thread(record_chain, writer, "new")
            await told.hear_of(new)
        return told.all, new

    record_chain(writer, "old")
    told, new = asyncio.run(watch())

    assert told == [new.id]


def test_nothing_is_missed_while_the_connection_is_lost(database, admin, writer):
    async def watch():
        async with watching(database) as told:
            first = await asyncio.to_thread(record_chain, writer, "one")
            await told.hear_of(first)
            lost = await asyncio.to_thread(_end_watchers, admin)
            second = await asyncio.to_thread(record_chain, writer, "two")
            third = await asyncio.to_thread(record_chain, writer, "three")
            await told.hear_of(second, third)
            fourth = await asyncio.to_thread(record_chain, writer, "four")
            await told.hear_of(fourth)
        return lost, told.all, [chain.id for chain in (first, second, third, fourth)]

    lost, told, recorded = asyncio.run(watch())

    assert lost == 1
    assert told == recorded, "each is told once and in order"


def test_the_watch_goes_on_after_the_operating_system_refused_it_a_connection(
    database, admin, writer, caplog
):
    async def watch():
        told, connector = Told(), Faulty(database.connector(Role.READER))
        watch = GrowthWatch(connector, told.take)
        await watch.start()
        try:
            connector.fails = True
            await asyncio.to_thread(_end_watchers, admin)
            await connector.fail_until_tried()
            chain = await asyncio.to_thread(record_chain, writer, "one")
            await told.hear_of(chain)
        finally:
            await watch.stop()

    asyncio.run(watch())

    (said,) = caplog.messages
    assert said.startswith("telling subscribers what is recorded has to wait")


def test_a_bug_of_who_is_told_is_logged_and_the_watch_can_be_started_again(
    database, writer, caplog
):
    async def watch():
        told, dead = Told(), asyncio.Event()
        failing = [ZeroDivisionError]

        async def take(chain_ids):
            if failing:
                dead.set()
                raise failing.pop()
            await told.take(chain_ids)

        watch = GrowthWatch(database.connector(Role.READER), take)
        await watch.start()
        try:
            await asyncio.to_thread(record_chain, writer, "one")
            async with asyncio.timeout(SECONDS_MAX):
                await dead.wait()
                await asyncio.wait([watch._watching])
            was_watching = watch.is_watching
            meanwhile = await asyncio.to_thread(record_chain, writer, "meanwhile")
            await watch.start()
            await told.hear_of(meanwhile)
        finally:
            await watch.stop()
        return was_watching

    assert not asyncio.run(watch())
    (record,) = caplog.records
    assert record.exc_info[0] is ZeroDivisionError


def test_more_than_a_page_is_told_whole_and_in_order(database, writer):
    async def watch():
        async with watching(database) as told:
            await asyncio.to_thread(record, writer, *chains)
            await told.hear_of(*chains)
        return told.all

    chains = [ThoughtChain.start(uuid4(), title="t") for _ in range(PAGE_EVENTS_MAX // 2 + 10)]
    for chain in chains:
        chain.add_thought(uuid4(), thought())

    told = asyncio.run(watch())

    # A chain whose events are seen in two looks is told with each.
    assert list(dict.fromkeys(told)) == [chain.id for chain in chains]


def test_the_connection_is_let_go(database, admin):
    async def watch():
        async with watching(database):
            watchers = await asyncio.to_thread(_watchers, admin)
        async with watching(database):
            pass  # stopped before it has begun
        return watchers

    watchers = asyncio.run(watch())

    assert len(watchers) == 1
    eventually(lambda: not _watchers(admin), SECONDS_MAX, "the end of the connection")


def _watchers(admin):
    return [pid for (pid,) in admin.execute(SELECT_WATCHERS).fetchall()]


def _end_watchers(admin):
    """How many there were."""
    found = _watchers(admin)
    for pid in found:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    return len(found)
