"""What an embedded PostgreSQL survives: kills at any moment, and pids that lie."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from ledger.embedded import (
    DataDirectoryError,
    EmbeddedPostgres,
    UnknownServerError,
)
from ledger.embedded.binaries import locate_binaries
from ledger.embedded.home import open_home
from tests.postgres.embedded.members import (
    ask,
    do,
    kill_server,
    postmaster_of,
    processes_of,
    wait_for,
)


def test_a_killed_member_counts_as_gone(used_dir, join):
    killed, other = join(used_dir), join(used_dir)
    killed.start()
    other.start()

    killed.kill()
    other.stop()

    assert processes_of(used_dir) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_server_whose_last_member_was_killed_is_adopted(used_dir, join, how):
    last = join(used_dir)
    last.start()
    postmaster = postmaster_of(used_dir)

    last.kill(how)
    assert postmaster in processes_of(used_dir)
    heir = EmbeddedPostgres(used_dir)
    heir.start()
    assert postmaster_of(used_dir) == postmaster
    heir.stop()

    assert processes_of(used_dir) == []


def test_a_killed_postmaster_is_replaced_for_all_members(used_dir, join):
    server, member = EmbeddedPostgres(used_dir), join(used_dir)
    with server:
        member.start()
        do(server, "CREATE TABLE kept AS SELECT 42 AS answer")
        with psycopg.connect(server.conninfo(), autocommit=True) as orphan:
            orphan.execute("SELECT 1")
            os.kill(postmaster_of(used_dir), signal.SIGKILL)
            server.start()

        assert ask(server, "SELECT answer FROM kept") == 42
        postmaster = postmaster_of(used_dir)
        assert member.start() == "done"
        assert postmaster_of(used_dir) == postmaster
        member.stop()
    assert processes_of(used_dir) == []


def test_a_server_killed_with_all_its_processes_is_replaced_again_and_again(used_dir):
    with EmbeddedPostgres(used_dir) as server:
        do(server, "CREATE TABLE counted (n int)")
        for n in range(3):
            do(server, f"INSERT INTO counted VALUES ({n})")
            kill_server(used_dir)
            server.start()

        assert ask(server, "SELECT count(*) FROM counted") == 3


FIRST_START = {
    "the lock is made": "postgres.lock",
    "initdb has begun": "pg-initdb-*",
    "initdb makes tables": "pg-initdb-*/base/1/PG_VERSION",
    "initdb is nearly done": "pg-initdb-*/base/5/PG_VERSION",
    "the cluster is in place": "pg/PG_VERSION",
    "the server starts": "pg/postmaster.pid",
    "the socket is open": "run/.s.PGSQL.5432",
    "the database is made": "pg/base/16384/PG_VERSION",
}


@pytest.mark.parametrize("moment", FIRST_START)
def test_a_first_start_killed_when(data_dir, join, moment):
    killed = join(data_dir)
    killed.order("start")
    wait_for(lambda: any(data_dir.glob(FIRST_START[moment])))
    killed.kill()

    with EmbeddedPostgres(data_dir) as server:
        assert ask(server, "SELECT current_database()") == "thought_ledger"

    assert list(data_dir.glob("pg-initdb-*")) == []
    assert processes_of(data_dir) == []


def test_a_missing_database_is_made_again(used_dir):
    with EmbeddedPostgres(used_dir) as server:
        do(server, "DROP DATABASE thought_ledger", dbname="postgres")

        server.start()

        assert ask(server, "SELECT current_database()") == "thought_ledger"


@pytest.mark.parametrize(
    "content", ["{pid}\n/x\n1\n5432\n/x\n\n1 1\nready\n", "{pid}", "", "1\x00"]
)
def test_a_stale_pid_file_stops_nobody_and_kills_nobody(used_dir, content):
    foreigner = subprocess.Popen(["/bin/sleep", "100"])
    try:
        with EmbeddedPostgres(used_dir):
            kill_server(used_dir)
        socket_lock = used_dir / "run" / ".s.PGSQL.5432.lock"
        for file in (used_dir / "pg" / "postmaster.pid", socket_lock):
            file.write_text(content.format(pid=foreigner.pid))

        with EmbeddedPostgres(used_dir) as server:
            assert ask(server, "SELECT 1") == 1

        assert foreigner.poll() is None
        assert processes_of(used_dir) == []
    finally:
        foreigner.kill()
        foreigner.wait()


def test_stopping_believes_the_socket_and_not_the_pid_file(used_dir):
    foreigner = subprocess.Popen(["/bin/sleep", "100"])
    try:
        with EmbeddedPostgres(used_dir):
            (used_dir / "pg" / "postmaster.pid").write_text(f"{foreigner.pid}\n")

        assert foreigner.poll() is None
        assert processes_of(used_dir) == []
    finally:
        foreigner.kill()
        foreigner.wait()


def test_a_server_somebody_started_by_hand_is_left_alone(used_dir, tmp_path):
    with EmbeddedPostgres(used_dir):
        pass
    account = open_home(used_dir).account
    elsewhere = Path(tempfile.mkdtemp(dir="/tmp"))
    if account:
        os.chown(elsewhere, account.uid, account.gid)
    directory = os.open(used_dir, os.O_RDONLY)
    try:
        options = f"-h '' -k {shlex.quote(str(elsewhere))}"
        inside = f"/proc/self/fd/{directory}/pg"
        subprocess.run(
            [str(locate_binaries() / "pg_ctl"), "-s", "-w", "-D", inside, "-o", options, "start"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            pass_fds=(directory,),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            env={"LC_ALL": "C"},
            cwd="/",
        )
        with pytest.raises(UnknownServerError) as refusal:
            EmbeddedPostgres(used_dir).start()

        assert refusal.value.pid in processes_of(used_dir)
        kill_server(used_dir)
    finally:
        os.close(directory)
        shutil.rmtree(elsewhere)


def test_a_directory_deleted_under_its_users_is_made_anew_by_the_next_one_only(used_dir):
    left, still_there = EmbeddedPostgres(used_dir), EmbeddedPostgres(used_dir)
    left.start()
    still_there.start()
    processes = processes_of(used_dir)
    shutil.rmtree(used_dir)
    # It would end by itself, within a minute.
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    left.stop()
    with pytest.raises(DataDirectoryError):
        still_there.start()
    still_there.stop()
    assert not used_dir.exists()
    with EmbeddedPostgres(used_dir) as again:
        assert ask(again, "SELECT 1") == 1
    assert processes_of(used_dir) == []
