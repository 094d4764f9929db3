"""A backup is one moment of the database, and comes back whole or not at all."""

import json
import os
import pty
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ledger import log, migrations
from ledger.backups.archive import LINE_BEGINS, Contents, seal
from ledger.backups.backup import DUMP, take_backup
from ledger.backups.errors import (
    BackupExistsError,
    BackupFailedError,
    BackupUnreadableError,
    DamagedBackupError,
    LedgerExistsError,
    NewerBackupError,
    NotABackupError,
    NothingToBackUpError,
    NotReplaceableError,
    RestoreFailedError,
    RestoreRefusedError,
)
from ledger.backups.programs import started
from ledger.backups.restore import restore_backup
from ledger.database import Database, DatabaseUnfitError, Role
from ledger.embedded import EmbeddedPostgres
from ledger.settings import Settings
from projections.candidate import open_candidate
from projections.errors import LogRestoredError
from projections.follower import Follower
from projections.generations import find_live
from projections.promotion import promote
from projections.terms import Terms
from projections.thoughts import Thoughts
from tests.acceptance.client import COMMAND, REPOSITORY, clean_environment
from tests.acceptance.product import eventually
from tests.postgres.projecting import catch_up, follow, record_chain, rows, tables

SECONDS_MAX = 30
SELECT_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'"
HOLD = "SELECT pg_advisory_lock(7)"
LET_GO = "SELECT pg_advisory_unlock(7)"
STOP_AT_TABLES = """
    CREATE FUNCTION public.stop() RETURNS event_trigger LANGUAGE plpgsql AS $body$
    BEGIN
        PERFORM pg_advisory_xact_lock(7);
    END
    $body$;
    CREATE EVENT TRIGGER stop ON ddl_command_start WHEN TAG IN ('CREATE TABLE')
        EXECUTE FUNCTION public.stop()
"""
SELECT_WAITING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event = 'advisory'
"""
# pg_dump, as it waits for a table.
SELECT_DUMPS = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LOCK TABLE%' AND wait_event_type = 'Lock'
"""
SELECT_OTHERS = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND backend_type = 'client backend'
"""


@pytest.fixture
def empty_url(server):
    """The superuser's way to a database with nothing in it."""
    with empty_database(server.conninfo(dbname="postgres")) as url:
        yield url


@contextmanager
def empty_database(url: str):
    name = sql.Identifier(f"empty_{uuid4().hex}")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        yield make_conninfo(url, dbname=name._obj[0])
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def at(url: str) -> Database:
    return Database(Settings(database_url=url))


def backed_up(database: Database, file: Path, **how) -> Path:
    take_backup(database, file, taken_by="tester", **how)
    return file


def logged(database: Database) -> list:
    """All events in the log, each verified."""
    with database.connector(Role.AUDITOR).connect() as connection:
        return log.read(connection, after=0, limit=10_000)


def schemas(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute(SELECT_SCHEMAS)}


def caught_up(database: Database) -> dict:
    """The rows of the read model of thoughts, once nothing of the log is missing in it."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        catch_up(follow(connection))
        schema = find_live(connection, "thoughts").schema
        return tables(connection, schema)


def position(database: Database) -> int:
    with database.connector(Role.READER).connect() as connection:
        return rows(connection, "live", "thoughts_checkpoint")[0]["position"]


@contextmanager
def appending(database: Database):
    """Chains are recorded all the time; yields how to wait until there is one more."""
    grown, stop = threading.Semaphore(0), threading.Event()

    def append() -> None:
        with closing(database.connector(Role.WRITER).connect()) as connection:
            while not stop.is_set():
                record_chain(connection, "one", "two")
                grown.release()

    thread = threading.Thread(target=append)
    thread.start()
    try:
        yield lambda: grown.acquire(timeout=SECONDS_MAX)
    finally:
        stop.set()
        thread.join(SECONDS_MAX)


# What comes back


def test_a_backup_beside_appends_is_one_moment_of_the_log(database, empty_url, tmp_path):
    file = tmp_path / "ledger.backup"
    with appending(database) as wait_for_one_more:
        assert wait_for_one_more()
        taken = take_backup(database, file, taken_by="tester")
        while wait_for_one_more() and log_head(database) <= taken.head_position:
            pass

    answer = restore_backup(at(empty_url), file)

    found = logged(at(empty_url))
    assert (answer.events, answer.head_position) == (taken.events, taken.head_position)
    assert len(found) == taken.events
    before = [event for event in logged(database) if event.position <= taken.head_position]
    assert found == before
    assert log_head(database) > taken.head_position


def log_head(database: Database) -> int:
    with database.connector(Role.AUDITOR).connect() as connection:
        return log.head(connection)


@pytest.fixture(params=["embedded", "external"])
def target(request, tmp_path):
    """A place for a ledger: a data directory that is not there, or an empty database."""
    if request.param == "embedded":
        database = Database(Settings(data_dir=tmp_path / "restored"))
    else:
        database = at(request.getfixturevalue("empty_url"))
    yield database
    database.close()


def test_yesterdays_backup_catches_up_to_the_same_rows(database, writer, target, tmp_path):
    record_chain(writer, "projected before the backup")
    caught_up(database)
    record_chain(writer, "recorded before the backup")
    then = logged(database)
    file = backed_up(database, tmp_path / "yesterday")
    expected = caught_up(database)
    record_chain(writer, "recorded after the backup")

    restore_backup(target, file)

    assert logged(target) == then
    assert position(target) == 2
    assert caught_up(target) == expected
    with closing(target.connector(Role.WRITER).connect()) as connection:
        record_chain(connection, "life goes on")
    assert [event.position for event in logged(target)] == [1, 2, 3, 4, 5, 6]


def test_without_read_models_they_are_built_from_nothing(database, writer, target, tmp_path):
    record_chain(writer, "one", "two")
    expected = caught_up(database)

    restore_backup(target, backed_up(database, tmp_path / "log", log_only=True))

    with target.reach() as admin:
        found = {name for (name,) in admin.execute(SELECT_SCHEMAS)}
    assert found == {"ledger", "public"}
    assert caught_up(target) == expected


def test_what_came_back_still_refuses_changes(database, writer, empty_url, tmp_path):
    record_chain(writer, "one")
    restore_backup(at(empty_url), backed_up(database, tmp_path / "file"))

    with psycopg.connect(empty_url, autocommit=True) as superuser:
        for table in ("events", "requests", "backups"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                superuser.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier("ledger", table)))


def test_a_backup_of_a_backup_is_the_same_log(database, writer, empty_url, tmp_path):
    record_chain(writer, "one")
    restored = at(empty_url)
    restore_backup(restored, backed_up(database, tmp_path / "first"))
    with empty_database(empty_url) as another_url:
        restore_backup(at(another_url), backed_up(restored, tmp_path / "second"))

        assert logged(at(another_url)) == logged(database)


def test_an_older_log_under_newer_read_models_is_noticed(database, admin, writer, tmp_path):
    record_chain(writer, "one")
    file = backed_up(database, tmp_path / "older", log_only=True)
    record_chain(writer, "two")
    caught_up(database)
    admin.execute("DROP SCHEMA ledger CASCADE")

    restore_backup(database, file)

    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        generation = find_live(connection, "thoughts")
        with pytest.raises(LogRestoredError):
            Follower(connection, Thoughts(), generation).lead()


def test_a_generation_that_is_promoted_meanwhile_spoils_no_backup(
    database, database_url, admin, writer, empty_url, tmp_path
):
    record_chain(writer, "one")
    caught_up(database)
    with (
        closing(database.connector(Role.PROJECTOR).connect()) as projector,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database_url) as busy,
    ):
        catch_up(follow(projector, Terms()))
        with open_candidate(database.connector(Role.PROJECTOR), Thoughts()) as candidate:
            candidate.build_up()
        # Other columns: then a view is not replaced in place, but made anew.
        projector.execute("ALTER TABLE thoughts_g2.memories DROP COLUMN metadata")
        busy.execute("LOCK TABLE ledger.requests IN ACCESS EXCLUSIVE MODE")
        backing_up = pool.submit(backed_up, database, tmp_path / "file")
        eventually(lambda: admin.execute(SELECT_DUMPS).fetchone() == (1,), SECONDS_MAX)
        promote(projector, candidate.generation)
        busy.rollback()

        restore_backup(at(empty_url), backing_up.result(SECONDS_MAX))

    assert logged(at(empty_url)) == logged(database)
    with at(empty_url).reach() as connection:
        assert find_live(connection, "thoughts").number == 2


# The file


def test_a_backup_is_remembered_and_its_age_can_be_read(database, writer, reader, tmp_path):
    record_chain(writer, "one")

    taken = take_backup(database, tmp_path / "file", taken_by="ada", log_only=True)

    (row,) = rows(reader, "ledger", "backups")
    assert (row["head_position"], row["events"], row["bytes"]) == (2, 2, taken.bytes)
    assert (row["log_only"], row["taken_by"]) == (True, "ada")
    latest = reader.execute("SELECT max(taken_at) FROM ledger.backups").fetchone()
    assert latest[0].isoformat(timespec="microseconds") == taken.taken_at
    assert (tmp_path / "file").stat().st_size == taken.bytes
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_replaced_only_when_told(database, writer, tmp_path):
    file = backed_up(database, tmp_path / "file")
    first = file.read_bytes()
    record_chain(writer, "one")

    with pytest.raises(BackupExistsError):
        backed_up(database, file)
    assert file.read_bytes() == first

    backed_up(database, file, overwrite=True)
    assert file.read_bytes() != first
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("kind", ["directory", "pipe", "link"])
def test_only_a_regular_file_is_ever_replaced(database, tmp_path, kind):
    place = tmp_path / "place"
    make = {"directory": place.mkdir, "pipe": lambda: os.mkfifo(place)}
    make.get(kind, lambda: place.symlink_to(tmp_path / "elsewhere"))()
    before = place.lstat()

    with pytest.raises(NotReplaceableError):
        backed_up(database, place, overwrite=True)

    assert place.lstat() == before
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


@pytest.mark.parametrize("place", ["missing/file", "file/under/a/file"])
def test_a_place_that_cannot_be_written_is_told(database, tmp_path, place):
    (tmp_path / "file").touch()

    with pytest.raises(BackupFailedError):
        backed_up(database, tmp_path / place)


def test_a_backup_that_fails_leaves_nothing(database, admin, reader, tmp_path):
    # Something of others in the database that this login may not read.
    login = f"login_{uuid4().hex}"
    admin.execute("CREATE TABLE public.secret ()")
    admin.execute(
        sql.SQL(
            "CREATE ROLE {login} LOGIN IN ROLE thought_ledger_writer, thought_ledger_projector"
        ).format(login=sql.Identifier(login))
    )
    url = make_conninfo(database.owner_conninfo(), user=login)
    try:
        with pytest.raises(BackupFailedError) as failure:
            backed_up(at(url), tmp_path / "file")
    finally:
        admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(login)))

    assert "secret" in failure.value.reason
    assert list(tmp_path.iterdir()) == []
    assert rows(reader, "ledger", "backups") == []


def test_a_database_without_a_ledger_is_not_backed_up(empty_url, tmp_path):
    with pytest.raises(NothingToBackUpError):
        backed_up(at(empty_url), tmp_path / "file")

    assert list(tmp_path.iterdir()) == []
    assert schemas(empty_url) == {"public"}


@pytest.mark.parametrize("password", ["plain", "it's a 'secret' \\ one"])
def test_no_command_line_shows_the_password(server, password):
    conninfo = make_conninfo(server.conninfo(), password=password)

    with started("psql", ["--quiet"], conninfo=conninfo, stdin=subprocess.PIPE) as program:
        process = Path(f"/proc/{program.process.pid}")
        words = (process / "cmdline").read_text()
        environment = (process / "environ").read_text().split("\0")

    assert password not in words
    assert f"PGPASSWORD={password}" in environment


# What is refused


@pytest.fixture(scope="module")
def backup(server, template, tmp_path_factory):
    """A whole backup of three events and two read models."""
    url = server.conninfo(dbname=f"source_{uuid4().hex}")
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, sql.Identifier(template))
        )
        admin.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO thought_ledger_projector").format(name)
        )
    with at(url) as database:
        with closing(database.connector(Role.WRITER).connect()) as writer:
            # More than fits into a pipe.
            record_chain(writer, "one", "two" * 60_000)
        for projection in (Thoughts(), Terms()):
            with closing(database.connector(Role.PROJECTOR).connect()) as connection:
                catch_up(follow(connection, projection))
        return backed_up(database, tmp_path_factory.mktemp("whole") / "backup").read_bytes()


def changed(backup: bytes, **facts: object) -> bytes:
    archive, _, line = backup.rpartition(LINE_BEGINS)
    said = json.loads(LINE_BEGINS + line) | facts
    return archive + b"\n" + json.dumps(said, separators=(",", ":")).encode() + b"\n"


DAMAGES = {
    "empty": (lambda whole: b"", NotABackupError),
    "something else": (lambda whole: b"Dear diary,\n" * 100, NotABackupError),
    "its first half": (lambda whole: whole[: len(whole) // 2], DamagedBackupError),
    "all but its last byte": (lambda whole: whole[:-1], DamagedBackupError),
    "all but its last line": (lambda whole: whole.rpartition(LINE_BEGINS)[0], DamagedBackupError),
    "one byte flipped": (
        lambda whole: whole[:9000] + bytes([whole[9000] ^ 1]) + whole[9001:],
        DamagedBackupError,
    ),
    "a piece missing": (lambda whole: whole[:5000] + whole[6000:], DamagedBackupError),
    "a line without sense": (
        lambda whole: changed(whole, thought_ledger_backup="one"),
        DamagedBackupError,
    ),
    "a newer format": (lambda whole: changed(whole, thought_ledger_backup=2), NewerBackupError),
    "a newer pg_dump": (lambda whole: changed(whole, pg_dump="19"), NewerBackupError),
    "a newer ledger": (
        lambda whole: changed(whole, migrations=["0001_log.sql", "9999_future.sql"]),
        NewerBackupError,
    ),
}


@pytest.mark.parametrize(("damage", "error"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_file_that_is_no_whole_backup_is_refused_before_anything_is_touched(
    backup, tmp_path, damage, error
):
    file = tmp_path / "backup"
    file.write_bytes(damage(backup))

    with pytest.raises(error):
        restore_backup(Database(Settings(data_dir=tmp_path / "ledger")), file)

    assert not (tmp_path / "ledger").exists()


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BackupUnreadableError):
        restore_backup(Database(Settings(data_dir=tmp_path / "ledger")), tmp_path / "nothing")


def test_a_ledger_that_is_there_is_left_alone(database, writer, backup, tmp_path):
    (tmp_path / "backup").write_bytes(backup)
    record_chain(writer, "mine")
    before = logged(database)

    with pytest.raises(LedgerExistsError):
        restore_backup(database, tmp_path / "backup")

    assert logged(database) == before
    with database.connector(Role.READER).connect() as connection:
        assert find_live(connection, "thoughts") is None


@pytest.mark.parametrize("facts", [{"events": 4}, {"head_position": 2}, {"events": 0}])
def test_what_does_not_come_back_as_it_was_does_not_come_back(backup, empty_url, tmp_path, facts):
    (tmp_path / "backup").write_bytes(changed(backup, **facts))

    with pytest.raises(RestoreFailedError):
        restore_backup(at(empty_url), tmp_path / "backup")

    assert schemas(empty_url) == {"public"}


def test_something_in_the_way_makes_nothing_come_back(backup, empty_url, tmp_path):
    (tmp_path / "backup").write_bytes(backup)
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute("CREATE SCHEMA thoughts_g1")

    with pytest.raises(RestoreFailedError) as failure:
        restore_backup(at(empty_url), tmp_path / "backup")

    assert "thoughts_g1" in failure.value.reason
    assert schemas(empty_url) == {"public", "thoughts_g1"}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_restore_that_is_killed_leaves_no_ledger(backup, empty_url, tmp_path, how):
    (tmp_path / "backup").write_bytes(backup)
    with psycopg.connect(empty_url, autocommit=True) as admin:
        admin.execute(STOP_AT_TABLES)
        admin.execute(HOLD)
        process = subprocess.Popen(
            [*COMMAND, "restore", tmp_path / "backup", "--database-url", empty_url],
            cwd=REPOSITORY,
            env=clean_environment(),
            stderr=subprocess.DEVNULL,
        )
        try:
            # Half of the input is with psql by now, which goes on with it when it is let go.
            eventually(lambda: admin.execute(SELECT_WAITING).fetchone() == (1,), SECONDS_MAX)
            process.send_signal(how)
            process.wait(SECONDS_MAX)
        finally:
            process.kill()
            admin.execute(LET_GO)
        eventually(lambda: admin.execute(SELECT_OTHERS).fetchone() == (0,), SECONDS_MAX)

    assert process.returncode != 0
    assert schemas(empty_url) == {"public"}


def test_a_backup_of_an_older_ledger_is_upgraded(server, empty_url, tmp_path):
    *older, latest = migrations.bundled()
    with empty_database(server.conninfo(dbname="postgres")) as url:
        with psycopg.connect(url) as admin:
            admin.execute(migrations.ENSURE_TABLE)
            for migration in older:
                admin.execute(migration.statements)
                admin.execute("RESET ROLE")
                admin.execute(migrations.INSERT_APPLIED, migration._asdict())
        with started("pg_dump", [*DUMP, f"--file={tmp_path / 'file'}"], conninfo=url) as program:
            assert program.process.wait(SECONDS_MAX) == 0
    names = [migration.name for migration in older]
    contents = {"taken_at": "2026-01-01T00:00:00+00:00", "head_position": 0, "events": 0}
    seal(tmp_path / "file", Contents(**contents, log_only=False, migrations=names))

    restored = restore_backup(at(empty_url), tmp_path / "file")

    assert restored.migrations == [latest.name]
    assert at(empty_url).open() == []


# Who may


@pytest.fixture
def login(server):
    """Makes logins that are gone after the test."""
    made = []

    def make(url: str, *granted: str, options: str = "") -> str:
        name = sql.Identifier(f"login_{uuid4().hex}")
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN {}").format(name, sql.SQL(options)))
            for role in granted:
                admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), name))
        made.append((url, name))
        return make_conninfo(url, user=name._obj[0])

    yield make
    for url, name in made:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("REASSIGN OWNED BY {} TO postgres").format(name))
            admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
            admin.execute(sql.SQL("DROP ROLE {}").format(name))


def test_the_login_of_every_day_backs_everything_up(
    database, database_url, writer, login, empty_url, tmp_path
):
    record_chain(writer, "one")
    expected = caught_up(database)
    url = login(database_url, Role.WRITER, Role.PROJECTOR)

    restore_backup(at(empty_url), backed_up(at(url), tmp_path / "all"))

    assert caught_up(at(empty_url)) == expected


def test_the_writer_backs_the_log_up(database_url, writer, login, empty_url, tmp_path):
    record_chain(writer, "one")
    url = login(database_url, Role.WRITER)

    restore_backup(at(empty_url), backed_up(at(url), tmp_path / "log", log_only=True))

    assert logged(at(empty_url)) == logged(at(url))


def test_the_reader_backs_nothing_up(database_url, login, tmp_path):
    with pytest.raises(DatabaseUnfitError):
        backed_up(at(login(database_url, Role.READER)), tmp_path / "log", log_only=True)

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fresh_server(tmp_path):
    """A cluster that has never seen the product, so that its roles are not there."""
    with EmbeddedPostgres(tmp_path / "server") as server:
        yield server


def test_an_owner_who_may_create_roles_restores_into_a_new_server(
    fresh_server, backup, login, tmp_path
):
    (tmp_path / "backup").write_bytes(backup)
    url = login(fresh_server.conninfo(), options="CREATEROLE")
    owner = sql.Identifier(str(conninfo_to_dict(url)["user"]))
    with psycopg.connect(fresh_server.conninfo(), autocommit=True) as admin:
        admin.execute("CREATE EXTENSION vector")
        admin.execute(sql.SQL("ALTER DATABASE thought_ledger OWNER TO {}").format(owner))

    restore_backup(at(url), tmp_path / "backup")

    assert len(logged(at(url))) == 3
    with closing(at(url).connector(Role.WRITER).connect()) as connection:
        record_chain(connection, "life goes on")
    assert len(caught_up(at(url))["thoughts"]) == 3


def test_a_plain_login_is_told_that_it_may_not_restore(backup, empty_url, login, tmp_path):
    (tmp_path / "backup").write_bytes(backup)

    with pytest.raises(RestoreRefusedError):
        restore_backup(at(login(empty_url)), tmp_path / "backup")

    assert schemas(empty_url) == {"public"}


# The terminal


def test_a_backup_that_is_ended_leaves_nothing(database_url, admin, tmp_path):
    with psycopg.connect(database_url) as busy:
        busy.execute("LOCK TABLE ledger.requests IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen(
            [*COMMAND, "backup", tmp_path / "file", "--database-url", database_url],
            cwd=REPOSITORY,
            env=clean_environment(),
        )
        try:
            eventually(lambda: admin.execute(SELECT_DUMPS).fetchone() == (1,), SECONDS_MAX)
            process.terminate()
            assert process.wait(SECONDS_MAX) == 128 + signal.SIGTERM
        finally:
            process.kill()

    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_a_backup_that_takes_long(database_url, tmp_path):
    command = [*COMMAND, "backup", tmp_path / "file", "--database-url", database_url]
    terminal, child = pty.openpty()
    with psycopg.connect(database_url) as admin, os.fdopen(terminal, "rb", buffering=0) as shown:
        admin.execute("LOCK TABLE ledger.requests IN ACCESS EXCLUSIVE MODE")
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=clean_environment({"TERM": "xterm"}), stderr=child
        )
        os.close(child)
        try:
            text = b""
            while b"backing up" not in text:
                text += shown.read(4096)
            admin.rollback()
            assert process.wait(SECONDS_MAX) == 0
        finally:
            process.kill()
