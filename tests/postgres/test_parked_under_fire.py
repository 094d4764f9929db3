"""Retrying and skipping while others write, lead and retry, and while they are killed."""

import multiprocessing
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from uuid import uuid4

import pytest

from ledger.database import Role
from projections.candidate import open_candidate
from projections.errors import NotParkedError
from projections.generations import ensure_live
from projections.parked import skipped_events
from projections.retrying import retry
from projections.thoughts import Thoughts
from projections.wait import wait_for
from tests.postgres.dying import unpark
from tests.postgres.parking import (
    Buggy,
    await_head,
    built_afresh,
    contents,
    eventually,
    parked_rows,
)
from tests.postgres.projecting import (
    SECONDS_MAX,
    catch_up,
    follow,
    record,
    record_chain,
    running_worker,
    thought,
)
from tests.postgres.writers import go, spawn

STATEMENTS_MAX = 60
TASKS = 4
THOUGHTS = 60

SELECT_WAITS_FOR_LOCK = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
       AND query LIKE '%%FOR UPDATE%%'
"""


@pytest.fixture
def operators(database):
    """Two operators' connections."""
    with (
        closing(database.connector(Role.PROJECTOR).connect()) as first,
        closing(database.connector(Role.PROJECTOR).connect()) as second,
    ):
        yield first, second


def test_while_a_worker_follows_and_two_writers_append_nothing_is_missed_or_doubled(
    database, admin, database_url, writer, reader, operators
):
    operator, _ = operators
    buggy = Buggy(Thoughts())
    chains = [record_chain(writer, "one", "two") for _ in range(TASKS)]
    for chain in chains:
        buggy.fail(chain.id, 2)
    ids = [chain.id for chain in chains]
    writers = [spawn(database_url, name, TASKS, THOUGHTS, chain_ids=ids) for name in ("ada", "bob")]
    with running_worker(database, buggy), ThreadPoolExecutor(1) as threads:
        await_head(reader, "thoughts")
        writing = threads.submit(go, writers)
        buggy.mend()
        for number, chain_id in enumerate(ids, 1):
            # Each at another time while they write: so many events further on.
            assert wait_for(reader, "thoughts", 12 + 60 * number, SECONDS_MAX)
            retry(operator, Thoughts(), chain_id)
        told = writing.result(SECONDS_MAX)
        await_head(reader, "thoughts")

    lived = contents(admin, Thoughts(), "thoughts_g1")
    assert parked_rows(reader, "thoughts") == []
    assert lived == built_afresh(database, Thoughts())
    positions = {row["thought"]: row["position"] for row in lived["thoughts"]}
    assert {text: positions[text] for each in told for text in each} == told[0] | told[1]
    assert len(lived["thoughts"]) == 2 * TASKS * THOUGHTS + 2 * len(chains)


@pytest.mark.parametrize("command", ["retry", "skip"])
def test_killed_at_any_statement_a_chain_is_parked_as_before_or_wholly_applied(
    database, admin, writer, projector, reader, command
):
    buggy = Buggy(Thoughts())
    chain = record_chain(writer, "one", "two", "three")
    buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))
    before = contents(admin, buggy, "thoughts_g1"), parked_rows(reader, "thoughts")
    # A process for each, forked from one that has imported all it needs and has no connection.
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.postgres.dying"])

    for statements in range(1, STATEMENTS_MAX):
        process = forks.Process(
            target=unpark, args=(database.conninfo(Role.PROJECTOR), command, chain.id, statements)
        )
        process.start()
        process.join(SECONDS_MAX)
        assert process.exitcode == -signal.SIGKILL
        if not parked_rows(reader, "thoughts"):
            break
        assert (contents(admin, buggy, "thoughts_g1"), parked_rows(reader, "thoughts")) == before
        assert skipped_events(reader) == []

    assert 10 < statements < STATEMENTS_MAX - 1
    assert len(skipped_events(reader)) == (command == "skip")
    assert contents(admin, Thoughts(), "thoughts_g1") == built_afresh(database, Thoughts())


def test_of_two_retries_at_once_one_applies_the_chain_and_the_other_finds_it_unparked(
    database, admin, writer, projector, reader, operators
):
    buggy = Buggy(Thoughts())
    chains = [record_chain(writer, "one", "two") for _ in range(10)]
    for chain in chains:
        buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))
    together = Barrier(2, timeout=SECONDS_MAX)

    def retry_all_of_them(operator) -> list[int]:
        return [_applied(operator, chain.id, together) for chain in chains]

    with ThreadPoolExecutor(2) as threads:
        counts = list(threads.map(retry_all_of_them, operators))

    assert [sorted(pair) for pair in zip(*counts, strict=True)] == [[0, 2]] * len(chains)
    assert contents(admin, Thoughts(), "thoughts_g1") == built_afresh(database, Thoughts())


def test_a_build_goes_on_after_a_retry(database, admin, writer, projector, operators):
    operator, _ = operators
    buggy = Buggy(Thoughts())
    ensure_live(projector, buggy)
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    with open_candidate(database.connector(Role.PROJECTOR), buggy) as candidate:
        candidate.build_up()
        buggy.mend()
        (retried,) = retry(operator, buggy, chain.id)
        chain.add_thought(uuid4(), thought("three", 3))
        record(writer, chain)
        candidate.build_up()

    assert (retried.generation, retried.applied) == (2, 2)
    assert contents(admin, Thoughts(), "thoughts_g2") == built_afresh(database, Thoughts(), 3)
    assert parked_rows(admin, "thoughts", 2) == []


def test_a_retry_waits_for_the_batch_of_the_leader(database, writer, projector, admin, operators):
    operator, _ = operators
    buggy = Buggy(Thoughts())
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    with ThreadPoolExecutor(1) as threads:
        with projector.transaction():
            projector.execute("UPDATE thoughts_g1.checkpoint SET updated_at = now()")
            retrying = threads.submit(retry, operator, Thoughts(), chain.id)
            eventually(lambda: admin.execute(SELECT_WAITS_FOR_LOCK).fetchone()[0] == 1)
            assert not retrying.done()
        (retried,) = retrying.result(SECONDS_MAX)

    assert retried.parked is None


def _applied(operator, chain_id, together) -> int:
    together.wait()
    try:
        return sum(each.applied for each in retry(operator, Thoughts(), chain_id))
    except NotParkedError:
        return 0
