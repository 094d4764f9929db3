"""The append path: many writers, few commits, nothing lost and nothing twice."""

import asyncio
import os
import select
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from ledger import log
from ledger.aggregate import ThoughtChain
from ledger.appender import (
    BATCH_BYTES_MAX,
    BATCH_SAVES_MAX,
    WAITING_SAVES_MAX,
    Appender,
    AppendRefusedError,
    Save,
)
from ledger.application import Ledger
from ledger.chain_state import Status
from ledger.commands import Receipt
from ledger.connection import connect_until
from ledger.database import Database, DatabaseUnavailableError, Role
from ledger.errors import (
    AppenderBusyError,
    ChainExistsError,
    ChainNotActiveError,
    ChainNotFoundError,
    OutcomeUnknownError,
    RequestMismatchError,
)
from ledger.events import ChainStarted, ThoughtRecorded
from ledger.header import Context
from ledger.limits import THOUGHT_BYTES_MAX
from ledger.serialization import Recorded, encode
from ledger.settings import Settings
from tests.postgres.follower import Follower
from tests.postgres.writers import a_thought, begin, count, go, spawn, write

pytestmark = pytest.mark.anyio

CONTEXT = Context(actor="tester")
LOCK = "SELECT pg_advisory_lock(74110001)"
UNLOCK = "SELECT pg_advisory_unlock(74110001)"
SECONDS_MAX = 30


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ledger(database) -> AsyncIterator[Ledger]:
    async with Ledger(database) as ledger:
        yield ledger


@pytest.fixture
async def other(database) -> AsyncIterator[Ledger]:
    """Another process's ledger, as far as the database can tell."""
    async with Ledger(database) as other:
        yield other


@pytest.fixture
async def chain_id(ledger) -> UUID:
    return (await begin(ledger, CONTEXT, uuid4())).chain_id


@pytest.fixture
async def appender(database) -> AsyncIterator[Appender]:
    appender = Appender(database.connector(Role.WRITER))
    yield appender
    await appender.close()


@pytest.fixture
def everybody_waits(database):
    """Holds the lock of the appends until it is let go of."""
    with psycopg.connect(database.conninfo(Role.WRITER), autocommit=True) as holder:
        holder.execute(LOCK)
        yield lambda: holder.execute(UNLOCK)


def recorded_in(database: Database) -> list[Recorded]:
    """The whole log."""
    with database.connector(Role.READER).connect() as connection:
        return log.read(connection, after=0, limit=1_000_000)


def texts_of(events: list[Recorded]) -> list[str]:
    return [each.event.text for each in events if isinstance(each.event, ThoughtRecorded)]


def history(database: Database, chain_id: UUID) -> list[Recorded]:
    with database.connector(Role.READER).connect() as connection:
        return list(log.history(connection, chain_id))


async def think(
    ledger: Ledger, chain_id: UUID, text: str, request_id: str | None = None
) -> Receipt:
    context = Context(actor="tester", request_id=request_id)
    return await ledger.think(context, chain_id, a_thought(text), count)


def save_of(chain_id: UUID, version: int = 1, size: int = 0, **said: Any) -> Save:
    event = ChainStarted(
        originator_id=chain_id,
        originator_version=version,
        timestamp=datetime.now(UTC),
        originator_topic="thought_chain",
        title="t" * size,
        session_id=None,
        parent_chain_id=None,
        source=None,
        metadata=None,
    )
    plain = {
        "chain_id": chain_id,
        "first_version": version,
        "topics": [event.TOPIC],
        "states": [encode(event, CONTEXT)],
        "recorded_at": [event.timestamp],
        "actor": "tester",
    }
    return Save(**(plain | said))


def assert_told_is_recorded(database: Database, told: dict[str, int]) -> None:
    """Nothing lost, nothing doubled, everything where its receipt says; all numbers dense."""
    events = recorded_in(database)
    where = {
        each.event.text: each.position for each in events if isinstance(each.event, ThoughtRecorded)
    }
    assert where == told
    assert len(texts_of(events)) == len(told)
    for chain_id in {each.header.chain_id for each in events}:
        chain = [each for each in events if each.header.chain_id == chain_id]
        thoughts = [each.event for each in chain if isinstance(each.event, ThoughtRecorded)]
        assert [each.header.version for each in chain] == list(range(1, len(chain) + 1))
        assert [each.sequence for each in thoughts] == list(range(1, len(thoughts) + 1))
        # Each hangs under the one before: no two writers took the same place.
        ids = [None, *(each.thought_id for each in thoughts)]
        assert [each.parent_thought_id for each in thoughts] == ids[:-1]


# Many writers


@pytest.mark.parametrize(("tasks", "chains", "thoughts"), [(32, 1, 8), (256, 256, 3)])
async def test_tasks_of_one_process_lose_and_double_nothing(
    database, ledger, tasks, chains, thoughts
):
    chain_ids = [uuid4() for _ in range(chains)]
    total = chains + tasks * thoughts

    with Follower(database, total) as follower:
        await asyncio.gather(*(begin(ledger, CONTEXT, each) for each in chain_ids))
        told = await write(ledger, "one", chain_ids, tasks, thoughts)

    assert len(told) == tasks * thoughts
    assert_told_is_recorded(database, told)
    assert_missed_nothing(follower, total)


@pytest.mark.parametrize(("tasks", "chains", "thoughts"), [(32, 1, 4), (256, 256, 2)])
async def test_two_processes_at_once_lose_and_double_nothing(
    database, database_url, ledger, tasks, chains, thoughts
):
    chain_ids = [uuid4() for _ in range(chains)]
    await asyncio.gather(*(begin(ledger, CONTEXT, each) for each in chain_ids))
    total = chains + 2 * tasks * thoughts
    numbers = (tasks, thoughts)

    with Follower(database, total) as follower:
        processes = [spawn(database_url, name, *numbers, chain_ids=chain_ids) for name in "ab"]
        told = await asyncio.to_thread(go, processes)

    assert len(told[0] | told[1]) == 2 * tasks * thoughts
    assert_told_is_recorded(database, told[0] | told[1])
    assert_missed_nothing(follower, total)


def assert_missed_nothing(follower: Follower, total: int) -> None:
    assert len(follower.seen) == total
    assert follower.positions == sorted(set(follower.positions))
    for versions in follower.versions.values():
        assert versions == list(range(1, len(versions) + 1))


async def test_calls_made_at_once_are_recorded_in_the_order_they_were_made(
    database, ledger, chain_id
):
    texts = [str(number) for number in range(300)]

    receipts = await asyncio.gather(*(think(ledger, chain_id, text) for text in texts))

    assert texts_of(history(database, chain_id)) == texts
    assert [receipt.answer["thoughts"] for receipt in receipts] == list(range(1, 301))


async def test_two_ledgers_in_turn_on_one_chain_go_on_from_each_other(
    database, ledger, other, chain_id
):
    for number in range(10):
        receipt = await think((ledger, other)[number % 2], chain_id, str(number))
        assert receipt.answer == {"thoughts": number + 1}

    assert texts_of(history(database, chain_id)) == [str(number) for number in range(10)]


# Receipts


async def test_a_receipt_says_where_the_last_event_of_its_command_is(database, ledger):
    chain = ThoughtChain.start(uuid4(), title="t")
    chain.pause()
    chain.resume()

    receipt = await ledger.begin(CONTEXT, chain, {"said": 1})

    events = history(database, chain.id)
    assert receipt == Receipt(chain.id, events[-1].position, {"said": 1}, repeated=False)


async def test_a_first_thought_begins_a_chain_under_its_own_title(database, ledger):
    thought = a_thought("\n which index?  \nlet me see")

    receipt = await ledger.begin_thinking(CONTEXT, "a session", thought, count)

    started, added = history(database, receipt.chain_id)
    assert isinstance(started.event, ChainStarted)
    assert (started.event.title, started.event.session_id) == ("which index?", "a session")
    assert (added.position, receipt.answer) == (receipt.position, {"thoughts": 1})
    assert await ledger.session_chains("a session") == [receipt.chain_id]


async def test_a_command_with_nothing_to_record_has_no_position(database, ledger, chain_id):
    receipt = await ledger.change(CONTEXT, chain_id, "look", count)

    assert receipt == Receipt(chain_id, None, {"thoughts": 0})
    assert len(history(database, chain_id)) == 1


async def test_a_chain_is_begun_once(ledger, other, chain_id):
    for each in (ledger, other):
        with pytest.raises(ChainExistsError) as refusal:
            await begin(each, CONTEXT, chain_id)
        assert refusal.value.chain_id == chain_id


async def test_a_chain_that_is_not_there_is_not_found(ledger):
    nobody = uuid4()

    with pytest.raises(ChainNotFoundError) as refusal:
        await think(ledger, nobody, "t")

    assert refusal.value.chain_id == nobody


# Request ids


async def test_a_retry_gets_the_first_receipt_and_adds_nothing(database, ledger, chain_id):
    first = await think(ledger, chain_id, "t", "r")
    await think(ledger, chain_id, "more")

    again = await think(ledger, chain_id, "t", "r")

    assert again == Receipt(chain_id, first.position, first.answer, repeated=True)
    assert texts_of(history(database, chain_id)) == ["t", "more"]


async def test_a_retry_from_another_process_gets_the_first_receipt(
    database, ledger, other, chain_id
):
    first = await think(ledger, chain_id, "t", "r")

    again = await think(other, chain_id, "t", "r")

    assert (again.position, again.answer, again.repeated) == (first.position, first.answer, True)
    assert texts_of(history(database, chain_id)) == ["t"]


@pytest.mark.parametrize("verb", ["pause", "complete", "abandon"])
async def test_a_retry_gets_the_first_receipt_whatever_became_of_the_chain(
    ledger, other, chain_id, verb
):
    first = await think(ledger, chain_id, "t", "r")
    moved = await getattr(other, verb)(Context(actor="tester", request_id="m"), chain_id, "why")

    again = await think(ledger, chain_id, "t", "r")
    moved_again = await getattr(ledger, verb)(
        Context(actor="tester", request_id="m"), chain_id, "why"
    )

    assert (again.position, again.answer) == (first.position, first.answer)
    assert (moved_again.position, moved_again.answer) == (moved.position, moved.answer)


async def test_retries_at_once_record_one_thought_and_get_one_receipt(
    database, ledger, other, chain_id
):
    receipts = await asyncio.gather(
        *(think(each, chain_id, "t", "r") for each in (ledger, other) * 10)
    )

    assert len({receipt.position for receipt in receipts}) == 1
    assert {receipt.answer["thoughts"] for receipt in receipts} == {1}
    assert sum(not receipt.repeated for receipt in receipts) == 1
    assert texts_of(history(database, chain_id)) == ["t"]


async def test_first_thoughts_sent_twice_at_once_begin_one_chain(database, ledger, other):
    context = Context(actor="tester", request_id="r")

    receipts = await asyncio.gather(
        *(
            each.begin_thinking(context, None, a_thought("first"), count)
            for each in (ledger, other) * 5
        )
    )

    assert len({receipt.chain_id for receipt in receipts}) == 1
    assert len(recorded_in(database)) == 2


async def test_a_retried_begin_gets_the_first_receipt_also_for_a_chain_of_another_id(
    database, ledger
):
    context = Context(actor="tester", request_id="r")
    first = await begin(ledger, context, uuid4())

    again = await begin(ledger, context, uuid4())

    assert (again.chain_id, again.position, again.repeated) == (
        first.chain_id,
        first.position,
        True,
    )
    assert len(recorded_in(database)) == 1


async def test_the_chain_goes_on_after_a_retry(database, ledger, other, chain_id):
    await think(ledger, chain_id, "1", "r")
    await think(other, chain_id, "2")
    await think(ledger, chain_id, "1", "r")

    receipt = await think(ledger, chain_id, "3")

    assert receipt.answer == {"thoughts": 3}
    assert texts_of(history(database, chain_id)) == ["1", "2", "3"]


async def test_a_request_id_for_another_command_is_refused_and_adds_nothing(
    database, ledger, other, chain_id
):
    context = Context(actor="tester", request_id="r")
    elsewhere = (await begin(ledger, CONTEXT, uuid4())).chain_id
    await think(ledger, chain_id, "t", "r")
    before = len(recorded_in(database))

    for each in (ledger, other):
        for command in (
            think(each, chain_id, "another text", "r"),
            think(each, elsewhere, "t", "r"),
            each.pause(context, chain_id),
            each.change(context, chain_id, "look", count),
            begin(each, context, uuid4()),
            each.begin_thinking(context, None, a_thought("t"), count),
        ):
            with pytest.raises(RequestMismatchError) as refusal:
                await command
            assert refusal.value.request_id == "r"

    assert len(recorded_in(database)) == before


async def test_different_commands_under_one_request_id_at_once_record_one(
    database, ledger, other, chain_id
):
    told = await asyncio.gather(
        *(
            think(each, chain_id, str(number), "r")
            for number, each in enumerate((ledger, other) * 8)
        ),
        return_exceptions=True,
    )

    refusals = [each for each in told if isinstance(each, RequestMismatchError)]
    assert len(refusals) == 15
    assert len(texts_of(history(database, chain_id))) == 1
    assert (await think(ledger, chain_id, "next")).answer == {"thoughts": 2}


async def test_a_request_id_is_its_actors_own(database, ledger, chain_id):
    for actor in ("one", "another"):
        context = Context(actor=actor, request_id="r")
        receipt = await ledger.think(context, chain_id, a_thought(actor), count)
        assert not receipt.repeated

    assert texts_of(history(database, chain_id)) == ["one", "another"]


async def test_a_refused_command_does_not_use_its_request_id_up(ledger, chain_id):
    await ledger.pause(CONTEXT, chain_id)
    with pytest.raises(ChainNotActiveError):
        await think(ledger, chain_id, "t", "r")
    await ledger.resume(CONTEXT, chain_id)

    receipt = await think(ledger, chain_id, "t", "r")

    assert (receipt.repeated, receipt.answer) == (False, {"thoughts": 1})


# What another process did


async def test_a_chain_paused_elsewhere_refuses_thoughts_here(database, ledger, other, chain_id):
    await think(ledger, chain_id, "1")
    await other.pause(CONTEXT, chain_id)

    with pytest.raises(ChainNotActiveError) as refusal:
        await think(ledger, chain_id, "2")

    assert refusal.value.status == Status.PAUSED
    assert texts_of(history(database, chain_id)) == ["1"]


async def test_a_chain_resumed_elsewhere_takes_thoughts_here(database, ledger, other, chain_id):
    await ledger.pause(CONTEXT, chain_id)
    await other.resume(CONTEXT, chain_id)

    receipt = await think(ledger, chain_id, "1")

    assert receipt.answer == {"thoughts": 1}


async def test_a_stale_chain_is_not_what_a_caller_is_shown(ledger, other, chain_id):
    await think(ledger, chain_id, "1")
    await think(other, chain_id, "2")

    assert (await ledger.chain(chain_id)).thought_count == 2


# Cancelled callers


async def test_a_cancelled_callers_command_is_recorded_whole_or_not_at_all(
    database, ledger, chain_id
):
    def decide(chain: ThoughtChain) -> dict[str, Any]:
        for _ in range(2):
            chain.add_thought(uuid4(), a_thought())
        return {}

    async def call(number: int) -> None:
        context = Context(actor="tester", request_id=str(number))
        await ledger.change(context, chain_id, "two", decide)

    for rounds in range(40):
        tasks = [asyncio.create_task(call(3 * rounds + each)) for each in range(3)]
        for _ in range(rounds):
            await asyncio.sleep(0)
        tasks[rounds % 3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    await think(ledger, chain_id, "after")
    events = history(database, chain_id)
    by_request = [each.header.request_id for each in events if each.header.request_id]
    assert all(by_request.count(request_id) == 2 for request_id in by_request)
    assert len(set(by_request)) >= 80
    assert texts_of(events)[-1] == "after"
    assert [each.header.version for each in events] == list(range(1, len(events) + 1))


async def test_a_cancelled_append_goes_on_and_its_retry_gets_the_receipt(
    database, ledger, chain_id, everybody_waits
):
    await ledger.chain(chain_id)
    call = asyncio.create_task(think(ledger, chain_id, "t", "r"))
    await until(lambda: waiting_for_the_lock(database) == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    next_call = asyncio.create_task(think(ledger, chain_id, "next"))
    everybody_waits()

    assert (await next_call).answer == {"thoughts": 2}
    assert (await think(ledger, chain_id, "t", "r")).repeated
    assert texts_of(history(database, chain_id)) == ["t", "next"]


async def test_closing_finishes_the_appends_in_flight(database, chain_id, everybody_waits):
    closing = Ledger(database)
    calls = [asyncio.create_task(begin(closing, CONTEXT, uuid4())) for _ in range(10)]
    await until(lambda: waiting_for_the_lock(database) == 1)
    close = asyncio.create_task(closing.close())
    everybody_waits()

    await close

    receipts = await asyncio.gather(*calls)
    assert len({receipt.position for receipt in receipts}) == 10


async def until(condition: Any) -> None:
    """Let the others go on until it is so."""
    async with asyncio.timeout(SECONDS_MAX):
        while not await asyncio.to_thread(condition):
            pass


def waiting_for_the_lock(database: Database) -> int:
    with database.connector(Role.READER).connect() as connection:
        row = connection.execute(
            """
            SELECT count(*)
              FROM pg_locks
             WHERE locktype = 'advisory'
               AND NOT granted
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        ).fetchone()
    assert row is not None
    return row[0]


# Batches


async def test_what_waits_is_committed_together(database, appender, everybody_waits):
    first = asyncio.create_task(appender.append(save_of(uuid4())))
    await until(lambda: waiting_for_the_lock(database) == 1)
    others = [
        asyncio.create_task(appender.append(save_of(uuid4()))) for _ in range(BATCH_SAVES_MAX)
    ]
    everybody_waits()

    verdicts = await asyncio.gather(first, *others)

    with database.connector(Role.READER).connect() as connection:
        rows = connection.execute(
            "SELECT xmin::text, count(*) FROM ledger.events GROUP BY 1 ORDER BY 2"
        ).fetchall()
    assert {verdict.verdict for verdict in verdicts} == {"stored"}
    assert [number for _, number in rows] == [1, BATCH_SAVES_MAX]


async def test_a_batch_ends_before_its_bytes_are_too_many(database, appender, everybody_waits):
    third = BATCH_BYTES_MAX // 3
    first = asyncio.create_task(appender.append(save_of(uuid4())))
    await until(lambda: waiting_for_the_lock(database) == 1)
    sizes = [third, third, third, 2 * BATCH_BYTES_MAX, 0, 0]
    others = [asyncio.create_task(appender.append(save_of(uuid4(), size=size))) for size in sizes]
    everybody_waits()

    positions = [each.first_position for each in await asyncio.gather(first, *others)]

    with database.connector(Role.READER).connect() as connection:
        rows = connection.execute(
            "SELECT count(*) FROM ledger.events GROUP BY xmin ORDER BY min(notification_id)"
        ).fetchall()
    assert positions == sorted(positions)
    assert [number for (number,) in rows] == [1, 2, 1, 1, 2]


@pytest.mark.parametrize("request_id", [None, "r"])
async def test_a_thought_of_one_mebibyte_is_kept_to_the_byte(
    database, ledger, chain_id, request_id
):
    text = "é\x00\n" * (THOUGHT_BYTES_MAX // 4)

    await think(ledger, chain_id, text, request_id)

    assert texts_of(history(database, chain_id)) == [text]


async def test_many_large_thoughts_at_once_are_all_recorded(database, ledger):
    chain_ids = [uuid4() for _ in range(12)]
    await asyncio.gather(*(begin(ledger, CONTEXT, each) for each in chain_ids))

    await asyncio.gather(
        *(think(ledger, each, "x" * (THOUGHT_BYTES_MAX // 2)) for each in chain_ids)
    )

    assert len(texts_of(recorded_in(database))) == 12


@pytest.mark.parametrize(
    "unfit",
    [
        {"actor": "no\x00body"},
        {"session_id": "no\x00session"},
        {"first_version": 2**63 - 1},
        {"first_version": -1},
        {"actor": None},
    ],
)
async def test_a_save_the_database_refuses_fails_alone(database, appender, everybody_waits, unfit):
    first = asyncio.create_task(appender.append(save_of(uuid4())))
    await until(lambda: waiting_for_the_lock(database) == 1)
    good = [save_of(uuid4()) for _ in range(4)]
    bad = save_of(uuid4(), **unfit)
    calls = [asyncio.create_task(appender.append(save)) for save in (*good[:2], bad, *good[2:])]
    everybody_waits()

    async with asyncio.timeout(SECONDS_MAX):
        told = await asyncio.gather(first, *calls, return_exceptions=True)

    refused = told.pop(3)
    assert isinstance(refused, AppendRefusedError) or refused.verdict == "conflict"
    assert [each.verdict for each in told] == ["stored"] * 5
    assert len(recorded_in(database)) == 5


async def test_what_nobody_foresaw_is_told_to_its_batch_and_the_next_goes_on(
    database, appender, everybody_waits, caplog
):
    first = asyncio.create_task(appender.append(save_of(uuid4())))
    await until(lambda: waiting_for_the_lock(database) == 1)
    # No door lets a lone surrogate in; the driver cannot encode it.
    batch = [save_of(uuid4(), actor="lone \ud800"), save_of(uuid4(), size=BATCH_BYTES_MAX)]
    calls = [asyncio.create_task(appender.append(save)) for save in batch]
    everybody_waits()

    async with asyncio.timeout(SECONDS_MAX):
        stored, unforeseen, after = await asyncio.gather(first, *calls, return_exceptions=True)

    assert isinstance(unforeseen, UnicodeEncodeError)
    assert [stored.verdict, after.verdict] == ["stored", "stored"]


async def test_a_refused_save_alone_says_why(appender):
    with pytest.raises(AppendRefusedError) as refusal:
        await appender.append(save_of(uuid4(), first_version=-1))

    assert refusal.value.sqlstate == "23514"


async def test_versions_that_would_leave_a_gap_are_a_conflict(database, appender):
    chain_id = uuid4()
    await appender.append(save_of(chain_id))

    for version in (1, 3):
        verdict = await appender.append(save_of(chain_id, version))
        assert (verdict.verdict, verdict.first_position) == ("conflict", None)

    assert (await appender.append(save_of(uuid4(), 2))).verdict == "conflict"
    assert len(recorded_in(database)) == 1


async def test_the_very_same_bytes_again_are_known(appender):
    save = save_of(uuid4())
    first = await appender.append(save)

    again = await appender.append(save)

    assert (first.verdict, again.verdict) == ("stored", "known")
    assert again.first_position == first.first_position


async def test_too_many_waiting_are_refused_and_the_others_recorded(
    database, appender, everybody_waits
):
    connection_made = asyncio.create_task(appender.append(save_of(uuid4())))
    await until(lambda: waiting_for_the_lock(database) == 1)
    save = save_of(uuid4())
    calls = [asyncio.create_task(appender.append(save)) for _ in range(WAITING_SAVES_MAX)]
    await asyncio.sleep(0)

    with pytest.raises(AppenderBusyError) as refusal:
        await appender.append(save_of(uuid4()))

    assert refusal.value.waiting == WAITING_SAVES_MAX
    everybody_waits()
    verdicts = await asyncio.gather(connection_made, *calls)
    assert [each.verdict for each in verdicts[:3]] == ["stored", "stored", "known"]
    assert len(recorded_in(database)) == 2


# The database goes and comes


@pytest.fixture
def own_database(tmp_path):
    """A database in a server of this test's own, and how to stop that server."""
    data_dir = tmp_path / "ledger"
    with Database(Settings(data_dir=data_dir)) as database:
        yield database, lambda: stop(database, data_dir)


def stop(database: Database, data_dir: Any) -> None:
    """Stop the server as an administrator would, and wait until it is gone."""
    postmaster = int((data_dir / "pg" / "postmaster.pid").read_text().split()[0])
    watched = os.pidfd_open(postmaster)
    os.kill(postmaster, signal.SIGINT)
    select.select([watched], [], [], SECONDS_MAX)
    os.close(watched)


async def test_a_server_that_was_stopped_is_revived_and_the_appends_go_on(own_database):
    database, stop_server = own_database
    async with Ledger(database) as ledger:
        chain_id = (await begin(ledger, CONTEXT, uuid4())).chain_id
        await think(ledger, chain_id, "before")

        await asyncio.to_thread(stop_server)
        await think(ledger, chain_id, "after", "r")

        assert texts_of(history(database, chain_id)) == ["before", "after"]


async def test_a_server_stopped_under_load_loses_and_doubles_nothing(own_database):
    database, stop_server = own_database
    async with Ledger(database) as ledger:
        chain_ids = [uuid4() for _ in range(8)]
        await asyncio.gather(*(begin(ledger, CONTEXT, each) for each in chain_ids))
        writing = asyncio.create_task(write(ledger, "one", chain_ids, 16, 60))
        for _ in range(2):
            await until(lambda: len(texts_of(recorded_in(database))) > 16)
            await asyncio.to_thread(stop_server)
            database.revive()

        told = await writing

    assert_told_is_recorded(database, told)


async def test_without_a_server_calls_end_with_what_is_known(own_database):
    database, stop_server = own_database
    url = database.embedded.conninfo() if database.embedded else ""
    elsewhere = Database(Settings(database_url=url))
    async with Ledger(elsewhere) as connected, Ledger(elsewhere) as unconnected:
        chain_id = (await begin(connected, CONTEXT, uuid4())).chain_id
        await asyncio.to_thread(stop_server)

        # One had a connection and tried; one never had, so nothing can have been recorded.
        told = await asyncio.gather(
            think(connected, chain_id, "t"),
            begin(unconnected, CONTEXT, uuid4()),
            unconnected.chain(chain_id),
            return_exceptions=True,
        )
        database.revive()
        again = await think(connected, chain_id, "again")

    assert [type(each) for each in told] == [
        OutcomeUnknownError,
        DatabaseUnavailableError,
        DatabaseUnavailableError,
    ]
    assert again.answer == {"thoughts": 1}


async def test_a_connection_is_tried_until_the_deadline(tmp_path):
    database = Database(Settings(database_url=f"host={tmp_path} user=u dbname=d"))

    with pytest.raises(DatabaseUnavailableError):
        await connect_until(database.connector(Role.WRITER), deadline=0)


async def test_a_connection_that_an_administrator_ends_is_made_anew(
    database, database_url, ledger, chain_id
):
    for number in range(3):
        with psycopg.connect(database_url, autocommit=True) as admin:
            admin.execute(
                """
                SELECT pg_terminate_backend(pid)
                  FROM pg_stat_activity
                 WHERE application_name = 'thought-ledger'
                   AND datname = current_database()
                """
            )
        await think(ledger, chain_id, str(number), f"r{number}" if number % 2 else None)

    assert texts_of(history(database, chain_id)) == ["0", "1", "2"]
