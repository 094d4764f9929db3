"""One embedded PostgreSQL and its many members: real servers, real processes."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from ledger.database import Database
from ledger.embedded import (
    EmbeddedPostgres,
)
from ledger.migrations import NewerDatabaseError
from ledger.settings import Settings
from tests.postgres.embedded.members import (
    CHECKOUT,
    WAIT_SECONDS_MAX,
    ask,
    do,
    postmaster_of,
    processes_of,
)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("max_connections", "400"),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("TimeZone", "UTC"),
        ("server_encoding", "UTF8"),
    ],
)
def test_the_server_is_set_for_one_machine_and_for_safety(shared, setting, value):
    assert ask(shared, f"SHOW {setting}") == value


def test_the_database_speaks_vectors_and_unicode(shared):
    do(shared, "CREATE EXTENSION IF NOT EXISTS vector")

    assert ask(shared, "SELECT ('[1,2]'::vector <-> '[1,3]'::vector)::int") == 1
    assert ask(shared, "SELECT upper('é')") == "É"


def test_a_user_and_a_database_can_be_named(shared):
    do(shared, "CREATE ROLE reader LOGIN")

    with psycopg.connect(shared.conninfo(user="reader", dbname="postgres")) as connection:
        row = connection.execute("SELECT current_user || current_database()").fetchone()

    assert row == ("readerpostgres",)


def test_starting_again_and_stopping_twice_do_no_harm(used_dir):
    server = EmbeddedPostgres(used_dir)

    server.stop()
    server.start()
    server.start()
    assert ask(server, "SELECT 1") == 1
    server.stop()
    server.stop()

    assert processes_of(used_dir) == []


def test_a_server_that_was_stopped_starts_again_with_its_rows(used_dir):
    server = EmbeddedPostgres(used_dir)
    with server:
        do(server, "CREATE TABLE kept AS SELECT 42 AS answer")

    with server:
        assert ask(server, "SELECT answer FROM kept") == 42


def test_the_last_to_leave_stops_the_server(used_dir, join):
    first, second = join(used_dir), join(used_dir)
    assert (first.start(), second.start()) == ("done", "done")

    assert first.stop() == "done"
    assert processes_of(used_dir)
    assert second.stop() == "done"

    assert processes_of(used_dir) == []


def test_two_shares_in_one_process_are_two_members(used_dir):
    first, second = EmbeddedPostgres(used_dir), EmbeddedPostgres(used_dir)
    first.start()
    second.start()

    first.stop()
    assert ask(second, "SELECT 1") == 1
    second.stop()

    assert processes_of(used_dir) == []


def test_threads_that_start_one_share_at_once_get_one_server(data_dir):
    server = EmbeddedPostgres(data_dir)
    threads = [threading.Thread(target=server.start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS_MAX)

    assert ask(server, "SELECT 1") == 1
    server.stop()
    assert processes_of(data_dir) == []


def test_many_cold_starts_at_once_make_one_server_though_some_are_killed(data_dir, join):
    members = [join(data_dir) for _ in range(8)]
    for member in members:
        member.order("start")
    members[0].kill()
    assert [member.answer() for member in members[1:]] == ["done"] * 7
    postmaster = postmaster_of(data_dir)

    for member in members[1:4]:
        member.kill()
    assert postmaster in processes_of(data_dir)
    assert [member.stop() for member in members[4:]] == ["done"] * 4

    assert processes_of(data_dir) == []


def test_a_forked_child_does_not_leave_for_its_parent(used_dir):
    server = EmbeddedPostgres(used_dir)
    other = EmbeddedPostgres(used_dir)
    with server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)

        other.start()
        other.stop()

        assert ask(server, "SELECT 1") == 1


def test_no_child_holds_a_lease(used_dir):
    with EmbeddedPostgres(used_dir):
        fds = Path(f"/proc/{postmaster_of(used_dir)}/fd")
        seen = subprocess.run(
            ["/bin/ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, check=True
        ).stdout.decode()
        held = [str(fd.readlink()) for fd in fds.iterdir()]

    assert "postgres.lease" not in seen
    assert [name for name in held if name.endswith((".lease", ".lock"))] == []


def test_attaching_needs_no_client_library(used_dir, join):
    with EmbeddedPostgres(used_dir):
        script = (
            "import sys; from pathlib import Path; from ledger.embedded import EmbeddedPostgres\n"
            "with EmbeddedPostgres(Path(sys.argv[1])): print('psycopg' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, str(used_dir)],
            cwd=CHECKOUT,
            capture_output=True,
            check=True,
        )

    assert done.stdout == b"False\n"


INSERT_NEWER = "INSERT INTO ledger.migrations (name, digest) VALUES ('9999_newer.sql', '')"


def test_who_may_not_use_the_database_does_not_leave_the_server_running(used_dir):
    with Database(Settings(data_dir=used_dir)) as database:
        assert database.embedded is not None
        with psycopg.connect(database.embedded.conninfo()) as connection:
            connection.execute(INSERT_NEWER)

    with pytest.raises(NewerDatabaseError), Database(Settings(data_dir=used_dir)):
        pass

    assert processes_of(used_dir) == []
