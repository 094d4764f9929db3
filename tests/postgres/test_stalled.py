"""Processes that are stopped in the middle of a statement: what they led or locked goes on."""

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ledger.database import Database, Role
from ledger.log import head
from ledger.said import facts_of
from ledger.settings import Settings
from projections.session import SILENCE_SECONDS_MAX
from projections.stalled import end_stalled, set_up
from projections.status import look
from projections.thoughts import Thoughts
from projections.wait import wait_for
from tests.postgres.parking import Buggy, built_afresh, contents, eventually
from tests.postgres.projecting import (
    REPOSITORY,
    SECONDS_MAX,
    record_chain,
    running_worker,
)

TAKEOVER_SECONDS_MAX = SILENCE_SECONDS_MAX + 5
# More than a socket holds.
TEXTS = 40
TEXT_BYTES = 32_000

SELECT_STALLED = """
    SELECT pid
      FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND wait_event = %s
"""
SELECT_LONG_STALLED = """
    SELECT pid
      FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND wait_event = %(event)s
       AND query_start < clock_timestamp() - make_interval(secs => %(seconds)s)
"""
SELECT_SESSION = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"


@contextmanager
def frozen(database_url, *work):
    """A process that has come to where it is stopped."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres.freezing", database_url, *work],
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
    )
    with child:
        try:
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), child.stderr.read()
            yield child
        finally:
            child.send_signal(signal.SIGKILL)
            child.send_signal(signal.SIGCONT)


def record_much(writer):
    return record_chain(writer, *(secrets.token_hex(TEXT_BYTES // 2) for _ in range(TEXTS)))


def stalled(admin, event):
    """The session that waits for its client, once it does."""
    return eventually(lambda: admin.execute(SELECT_STALLED, (event,)).fetchone())[0]


@pytest.mark.parametrize(("at", "event"), [("copy", "ClientRead"), ("read", "ClientWrite")])
def test_a_leader_that_is_stopped_in_a_statement_is_replaced(
    database, database_url, admin, writer, reader, at, event
):
    record_much(writer)
    with frozen(database_url, "lead", at) as child:
        pid = stalled(admin, event)
        start = time.monotonic()
        with running_worker(database) as worker:
            ended = worker.hear("middle of a statement")
            assert wait_for(reader, "thoughts", head(reader), SECONDS_MAX)

    assert time.monotonic() - start < TAKEOVER_SECONDS_MAX
    facts = facts_of(ended)
    assert (facts["event"], facts["pid"]) == ("ended_stalled", pid)
    assert facts["process"].startswith(f"{child.pid}@")
    assert contents(admin, Thoughts(), "thoughts_g1") == built_afresh(database, Thoughts())


@pytest.mark.parametrize("at", ["copy", "locked"])
def test_a_retry_that_is_stopped_does_not_keep_the_leader_waiting(
    database, database_url, admin, writer, projector, reader, at
):
    buggy = Buggy(Thoughts())
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    with running_worker(database, buggy) as worker:
        worker.hear("parked chain")
        assert wait_for(reader, "thoughts", head(reader), SECONDS_MAX)
        with frozen(database_url, "unpark", at, str(chain.id)):
            start = time.monotonic()
            record_chain(writer, "three")

            assert wait_for(reader, "thoughts", head(reader), SECONDS_MAX)

    assert time.monotonic() - start < TAKEOVER_SECONDS_MAX
    assert look(reader).generations[0].parked == 1


def test_a_build_that_takes_its_time_is_left_alone(database, database_url, admin, writer, reader):
    record_chain(writer, "one")
    with running_worker(database) as worker:
        worker.hear("leads")
        with frozen(database_url, "build"):
            pid = stalled(admin, "ClientRead")
            found = [generation for generation in look(reader).generations if generation.leader]
            assert {generation.leader.partition("@")[2] for generation in found} == {
                os.uname().nodename
            }
            await_silence(admin, "ClientRead")
            with database.connector(Role.PROJECTOR).connect() as listener:
                set_up(listener)
                assert list(end_stalled(listener)) == []

            assert admin.execute(SELECT_SESSION, (pid,)).fetchone() == (1,)


def test_of_another_login_nothing_is_ended_and_nothing_refused(
    database, database_url, admin, writer
):
    """The stopped one has logged in as a superuser, and who looks as nobody in particular."""
    record_much(writer)
    with login(admin) as name, frozen(database_url, "lead", "copy"):
        pid = stalled(admin, "ClientRead")
        await_silence(admin, "ClientRead")
        url = make_conninfo(database_url, user=name)
        other = Database(Settings(database_url=url)).connector(Role.PROJECTOR)
        with closing(other.connect()) as listener:
            set_up(listener)
            assert list(end_stalled(listener)) == []
            assert admin.execute(SELECT_SESSION, (pid,)).fetchone() == (1,)
        with closing(database.connector(Role.PROJECTOR).connect()) as listener:
            set_up(listener)
            (ended,) = end_stalled(listener)
            assert facts_of(ended)["pid"] == pid


def test_a_login_ends_what_stalls_of_its_own(database, database_url, admin, writer):
    record_much(writer)
    with login(admin) as name:
        url = make_conninfo(database_url, user=name)
        with frozen(url, "lead", "copy"):
            pid = stalled(admin, "ClientRead")
            await_silence(admin, "ClientRead")
            connector = Database(Settings(database_url=url)).connector(Role.PROJECTOR)
            with closing(connector.connect()) as listener:
                set_up(listener)
                (ended,) = end_stalled(listener)

    assert facts_of(ended)["pid"] == pid


def await_silence(admin, event):
    asked = {"event": event, "seconds": SILENCE_SECONDS_MAX + 0.5}
    eventually(lambda: admin.execute(SELECT_LONG_STALLED, asked).fetchone())


@contextmanager
def login(admin):
    """A login that acts as the projector, and has no rights of its own."""
    name = f"login_{admin.info.dbname}"
    identifier = sql.Identifier(name)
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN NOINHERIT").format(identifier))
    admin.execute(sql.SQL("GRANT thought_ledger_projector TO {}").format(identifier))
    try:
        yield name
    finally:
        admin.execute(sql.SQL("DROP ROLE {}").format(identifier))
