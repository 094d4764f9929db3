"""The engine: one leads, the others stand by, and whatever dies is made up for."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.log import head
from projections.status import look
from projections.wait import wait_for
from tests.postgres.projecting import (
    REPOSITORY,
    SECONDS_MAX,
    catch_up,
    follow,
    record,
    record_chain,
    running_worker,
    tables,
    thought,
)

RUN = [sys.executable, "-m", "projections", "run"]

SELECT_LISTENER = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'thought-ledger-listen %@%'
"""


def test_what_is_recorded_becomes_visible(database, writer, reader):
    with running_worker(database) as worker:
        worker.hear("leads")
        chain = record_chain(writer, "one", "two")

        assert wait_for(reader, "thoughts", 3, SECONDS_MAX)

    assert reader.execute("SELECT thought_count FROM live.thought_chains").fetchall() == [(2,)]
    assert chain.thought_count == 2


def test_of_two_workers_one_leads_and_the_other_takes_over(database, admin, writer, reader):
    with running_worker(database) as first:
        first.hear("leads")
        with running_worker(database) as second:
            second.hear("stands by")
            (found,) = look(reader).generations

            admin.execute("SELECT pg_terminate_backend(%s)", (found.leader_pid,))

            second.hear("leads")
            first.hear("stands by")
            record_chain(writer, "one")
            assert wait_for(reader, "thoughts", 2, SECONDS_MAX)


def test_a_worker_told_to_stop_while_it_stands_by_stops(database):
    with running_worker(database) as first:
        first.hear("leads")
        with running_worker(database) as second:
            second.hear("stands by")

            second.stop.set()
            second.thread.join(SECONDS_MAX)

            assert not second.thread.is_alive()


def test_waiting_for_the_lead_holds_back_no_vacuum_for_long(database, admin):
    with running_worker(database) as first, running_worker(database) as second:
        first_said = {worker: worker.said.get(timeout=SECONDS_MAX) for worker in (first, second)}
        assert sorted(line.split()[0] for line in first_said.values()) == ["leads", "stands"]
        waiting = "SELECT backend_xmin FROM pg_stat_activity WHERE wait_event = 'advisory'"
        before = admin.execute(waiting).fetchall()

        # Each round uses a transaction id; the waiting one sees it when it asks again.
        deadline = time.monotonic() + SECONDS_MAX
        moved = False
        while not moved and time.monotonic() < deadline:
            admin.execute("SELECT pg_current_xact_id()")
            after = admin.execute(waiting).fetchall()
            moved = bool(before and after and after != before)
            before = before or after

        assert moved


def test_a_lost_listener_is_made_anew(database, admin, writer, reader):
    with running_worker(database) as worker:
        worker.hear("leads")
        (lost,) = admin.execute(SELECT_LISTENER).fetchall()
        admin.execute("SELECT pg_terminate_backend(%s, 10000)", lost)

        deadline = time.monotonic() + SECONDS_MAX
        while not (found := admin.execute(SELECT_LISTENER).fetchall()):
            assert time.monotonic() < deadline
        record_chain(writer, "one")

        assert found != [lost]
        assert wait_for(reader, "thoughts", 2, SECONDS_MAX)


def test_a_schema_dropped_under_the_worker_is_built_again(database, admin, writer, reader):
    record_chain(writer, "one")
    with running_worker(database) as worker:
        worker.hear("leads")
        assert wait_for(reader, "thoughts", 2, SECONDS_MAX)
        admin.execute("DROP SCHEMA thoughts_g1 CASCADE")
        record_chain(writer, "two")

        worker.hear("leads thoughts_g2")

        assert wait_for(reader, "thoughts", 4, SECONDS_MAX)
    assert reader.execute("SELECT count(*) FROM live.thoughts").fetchone() == (2,)


def test_killed_at_any_moment_a_worker_leaves_read_models_exactly_once(
    database, database_url, writer, reader
):
    rounds, chains_a_round = 8, 25
    moments = random.Random(11)
    for _ in range(rounds):
        fatal = moments.randrange(chains_a_round)
        with _process(database_url) as process:
            assert b"leads" in process.stderr.readline()
            # It follows chain by chain, so the kill finds it in the middle of one.
            for number in range(chains_a_round):
                _record_dead_end(writer)
                if number == fatal:
                    process.kill()

    with running_worker(database):
        assert wait_for(reader, "thoughts", head(reader), SECONDS_MAX)

    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        catch_up(follow(connection, number=2))
        found = tables(connection, "thoughts_g1")
        assert found == tables(connection, "thoughts_g2")
    assert len(found["thoughts"]) == 2 * rounds * chains_a_round


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_process_ends_at_a_signal(database_url, number):
    with _process(database_url) as process:
        assert b"leads" in process.stderr.readline()

        process.send_signal(number)

        assert process.wait(SECONDS_MAX) == 0


def test_a_worker_process_ends_with_its_standard_input(database_url, reader):
    with _process(database_url, "--until-eof") as process:
        # Nobody but the worker builds the read model.
        assert wait_for(reader, "thoughts", 0, SECONDS_MAX)

        process.stdin.close()

        assert process.wait(SECONDS_MAX) == 0


def test_a_worker_process_does_not_outlive_a_parent_that_is_killed(database_url, reader):
    command = [*RUN, "--until-eof", "--database-url", database_url]
    parent_code = (
        "import subprocess\n"
        f"child = subprocess.Popen({command!r}, stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent_code], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert wait_for(reader, "thoughts", 0, SECONDS_MAX)

            parent.kill()

            ended, _, _ = select.select([child], [], [], SECONDS_MAX)
        finally:
            parent.kill()
            os.close(child)

    assert ended


def _record_dead_end(writer):
    chain = ThoughtChain.start(uuid4(), title="t")
    first = uuid4()
    chain.add_thought(first, thought())
    record(writer, chain)
    chain.add_thought(uuid4(), thought(number=2))
    record(writer, chain)
    chain.abandon_thought(first)
    record(writer, chain)


@contextmanager
def _process(database_url, *options):
    with subprocess.Popen(
        [*RUN, "--database-url", database_url, *options],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
