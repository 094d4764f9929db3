"""Takes a backup beside running appends: the state of one moment, in one file or in none."""

import os
import secrets
import stat
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg import Connection, IsolationLevel
from psycopg.rows import TupleRow

from ledger.backups.archive import Contents, seal
from ledger.backups.errors import (
    BackupExistsError,
    BackupFailedError,
    BackupNotRememberedError,
    NothingToBackUpError,
    NotReplaceableError,
)
from ledger.backups.programs import started
from ledger.database import Database, Role
from ledger.errors import LedgerError, reason_of

LOOK_SECONDS = 0.1
DUMP_ATTEMPTS_MAX = 3
# What pg_dump says of a table or view that it had listed and that is gone.
MOVED = ("could not open relation", "does not exist", "cache lookup failed", "appears to be empty")

SELECT_LEDGER = "SELECT to_regclass('ledger.events') IS NOT NULL"

# While pg_dump works, this session does nothing but keep the snapshot.
KEEP_IDLE_SESSION = "SET idle_in_transaction_session_timeout = 0"

SELECT_CONTENTS = """
    SELECT pg_export_snapshot(), now(),
           (SELECT coalesce(max(notification_id), 0) FROM ledger.events),
           (SELECT count(*) FROM ledger.events),
           (SELECT array_agg(name ORDER BY name) FROM ledger.migrations)
"""

INSERT_BACKUP = """
    INSERT INTO ledger.backups (taken_at, head_position, events, bytes, log_only, taken_by)
    VALUES (
        %(taken_at)s, %(head_position)s, %(events)s, %(bytes)s, %(log_only)s, %(taken_by)s
    )
"""

# No statistics: an older server cannot take them.  No comments: only a superuser may make the one
# on the extension.
DUMP = ["--format=custom", "--no-comments", "--no-statistics", "--no-sync"]
# Without read models: what is not of the log is built from the log.
LOG_ONLY = ["--schema=ledger", "--extension=vector"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A backup that was taken; ``head_position`` is that of the last event in it."""

    file: str
    bytes: int
    head_position: int
    events: int
    log_only: bool
    taken_at: str
    seconds: float


def take_backup(
    database: Database,
    file: Path,
    *,
    taken_by: str,
    log_only: bool = False,
    overwrite: bool = False,
    tell: Callable[[int], None] = lambda _: None,
) -> Backup:
    """Back the database up into *file*, or leave no file.

    *tell* is told now and then how many bytes were written.  The database need not be open.
    Raises BackupError, and what ``Database.open`` raises.
    """
    began = time.monotonic()
    _check_place(file, overwrite=overwrite)
    with _half(file) as half:
        _open_existing(database)
        contents = _dump_still(database, half, log_only=log_only, tell=tell)
        size = seal(half, contents)
        _publish(half, file, overwrite=overwrite)
    _remember(database, file, contents, size, taken_by)
    return Backup(
        file=str(file),
        bytes=size,
        head_position=contents.head_position,
        events=contents.events,
        log_only=log_only,
        taken_at=contents.taken_at,
        seconds=round(time.monotonic() - began, 3),
    )


def _check_place(file: Path, *, overwrite: bool) -> None:
    try:
        mode = file.lstat().st_mode
    except OSError:
        return  # it is not there, or what is in its way is told when the file is made
    if not overwrite:
        raise BackupExistsError(file)
    # A rename puts a file in the place of anything, root's also in that of a device.
    if not stat.S_ISREG(mode):
        raise NotReplaceableError(file)


def _open_existing(database: Database) -> None:
    """Open the database, unless that would make a ledger: an empty backup helps nobody."""
    with database.reach() as connection:
        row = connection.execute(SELECT_LEDGER).fetchone()
    if row is None or not row[0]:
        raise NothingToBackUpError
    database.open()


@contextmanager
def _half(file: Path) -> Generator[Path]:
    """A private file beside *file*, gone at the end whatever happens."""
    half = file.with_name(f".{file.name}.{secrets.token_hex(4)}.half")
    try:
        os.close(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield half
    except OSError as error:
        raise BackupFailedError(f"{file}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            half.unlink(missing_ok=True)


def _dump_still(
    database: Database, half: Path, *, log_only: bool, tell: Callable[[int], None]
) -> Contents:
    """Dump, and again when a generation was promoted or retired while the tables were listed."""
    for _ in range(DUMP_ATTEMPTS_MAX - 1):
        try:
            return _dump(database, half, log_only=log_only, tell=tell)
        except BackupFailedError as error:
            if not any(words in error.reason for words in MOVED):
                raise
    return _dump(database, half, log_only=log_only, tell=tell)


def _dump(
    database: Database, half: Path, *, log_only: bool, tell: Callable[[int], None]
) -> Contents:
    # The log alone is for the writer's rights; the read models have another owner, so a dump of
    # all needs a login that may act as both.
    conninfo = database.conninfo(Role.WRITER) if log_only else database.owner_conninfo()
    with database.connector(Role.WRITER).connect() as connection, _snapshot(connection) as found:
        snapshot, contents = found[0], _contents(found[1:], log_only=log_only)
        arguments = [*DUMP, *(LOG_ONLY if log_only else []), f"--snapshot={snapshot}"]
        with started("pg_dump", [*arguments, f"--file={half}"], conninfo=conninfo) as program:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    program.process.wait(LOOK_SECONDS)
                    break
                tell(half.stat().st_size)
            if program.process.returncode:
                raise BackupFailedError(program.reason())
    return contents


@contextmanager
def _snapshot(connection: Connection[TupleRow]) -> Generator[TupleRow]:
    """The name of a snapshot that lasts as long as the block, and what can be seen in it."""
    connection.execute(KEEP_IDLE_SESSION)
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    with connection.transaction():
        row = connection.execute(SELECT_CONTENTS).fetchone()
        assert row is not None
        yield row


def _contents(row: TupleRow, *, log_only: bool) -> Contents:
    taken_at, head_position, events, migrations = row
    return Contents(
        taken_at=taken_at.astimezone(UTC).isoformat(timespec="microseconds"),
        head_position=head_position,
        events=events,
        log_only=log_only,
        migrations=migrations,
    )


def _publish(half: Path, file: Path, *, overwrite: bool) -> None:
    """Give the file its name, and bring the name to the disk."""
    if overwrite:
        half.replace(file)
    else:
        try:
            # Unlike a rename, it never takes the place of a file that came meanwhile.
            os.link(half, file)
        except FileExistsError as error:
            raise BackupExistsError(file) from error
        except OSError:  # a file system without links
            half.rename(file)
    directory = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remember(database: Database, file: Path, contents: Contents, size: int, taken_by: str) -> None:
    try:
        with database.connector(Role.WRITER).connect() as connection:
            connection.execute(
                INSERT_BACKUP,
                {
                    "taken_at": datetime.fromisoformat(contents.taken_at),
                    "head_position": contents.head_position,
                    "events": contents.events,
                    "bytes": size,
                    "log_only": contents.log_only,
                    "taken_by": taken_by,
                },
            )
    except (psycopg.Error, LedgerError) as error:
        raise BackupNotRememberedError(file, reason_of(error)) from error
