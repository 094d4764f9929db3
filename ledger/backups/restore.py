"""Restores a backup in one transaction: the whole ledger, checked, or nothing of it."""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.backups.archive import CHUNK_BYTES, Contents, read_contents
from ledger.backups.errors import LedgerExistsError, RestoreFailedError, RestoreRefusedError
from ledger.backups.programs import Program, started
from ledger.database import Database
from ledger.errors import reason_of
from ledger.migrations import TAKE_LOCK, role_statements

SELECT_LEDGER = "SELECT to_regnamespace('ledger') IS NOT NULL"

# The same lock as a migrator's: who opens the database meanwhile waits, and finds it whole.
BEGIN = b"BEGIN;\n%s;\n" % TAKE_LOCK.encode()

# pg_dump 18 sets it to 0, which it is anyway, and PostgreSQL 16 does not know it.
UNKNOWN_TO_16 = b"SET transaction_timeout = 0;\n"

# Only with COMMIT is anything there: when this process is killed, the input ends before it.
CHECK_AND_COMMIT = b"""
DO $check$
DECLARE
    found_events bigint;
    found_head   bigint;
    guards       bigint;
BEGIN
    SELECT count(*), coalesce(max(notification_id), 0)
      INTO found_events, found_head
      FROM ledger.events;
    IF found_events <> current_setting('thought_ledger.events')::bigint
       OR found_head <> current_setting('thought_ledger.head_position')::bigint THEN
        RAISE EXCEPTION '% events up to position % came back instead of % up to position %',
            found_events, found_head, current_setting('thought_ledger.events'),
            current_setting('thought_ledger.head_position');
    END IF;
    SELECT count(*)
      INTO guards
      FROM pg_catalog.pg_trigger
     WHERE tgname = 'refuse_change'
       AND tgenabled = 'O'
       AND tgrelid IN ('ledger.events'::regclass, 'ledger.requests'::regclass);
    IF guards <> 2 THEN
        RAISE EXCEPTION 'the triggers that refuse changes did not come back';
    END IF;
    IF (SELECT last_value FROM ledger.events_notification_id_seq) < found_head THEN
        RAISE EXCEPTION 'the next position did not come back';
    END IF;
END
$check$;
COMMIT;
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """A ledger that came back; ``migrations`` were applied to it afterwards."""

    file: str
    taken_at: str
    head_position: int
    events: int
    log_only: bool
    migrations: list[str]
    seconds: float


def restore_backup(
    database: Database, file: Path, tell: Callable[[int], None] = lambda _: None
) -> Restored:
    """Restore *file* into a database without a ledger, which need not be open.

    *tell* is told now and then how many bytes were restored.
    Raises BackupError, and what ``Database.open`` raises.
    """
    began = time.monotonic()
    contents = read_contents(file)
    with database.reach() as connection:
        row = connection.execute(SELECT_LEDGER).fetchone()
        if row is None or row[0]:
            raise LedgerExistsError
        _ensure_roles(connection)
        _pour(file, contents, database.owner_conninfo(), tell)
        # Nothing is known about the new tables, and statements planned so are slow ones.
        connection.execute("ANALYZE")
    applied = database.open()
    return Restored(
        file=str(file),
        taken_at=contents.taken_at,
        head_position=contents.head_position,
        events=contents.events,
        log_only=contents.log_only,
        migrations=applied,
        seconds=round(time.monotonic() - began, 3),
    )


def _ensure_roles(connection: Connection[TupleRow]) -> None:
    try:
        with connection.transaction():
            connection.execute(TAKE_LOCK)
            # A dump of one database cannot hold them, for they belong to the cluster.
            connection.execute(role_statements())
    except psycopg.errors.InsufficientPrivilege as error:
        raise RestoreRefusedError(reason_of(error)) from error


def _pour(file: Path, contents: Contents, conninfo: str, tell: Callable[[int], None]) -> None:
    """From pg_restore, which reads the file, to psql, which runs its statements."""
    with ExitStack() as stack:
        psql = stack.enter_context(
            started(
                "psql",
                ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"],
                conninfo=conninfo,
                stdin=subprocess.PIPE,
            )
        )
        reading = stack.enter_context(
            started("pg_restore", ["--file=-", str(file)], stdout=subprocess.PIPE)
        )
        source, target = reading.process.stdout, psql.process.stdin
        assert source is not None
        assert target is not None
        try:
            target.write(BEGIN)
            _copy(source, target, tell)
            if reading.process.wait():
                raise RestoreFailedError(reading.reason())
            target.write(_expected(contents) + CHECK_AND_COMMIT)
            target.close()
        except BrokenPipeError:
            pass  # psql has ended and says below why
        _end(psql)


def _copy(source: IO[bytes], target: IO[bytes], tell: Callable[[int], None]) -> None:
    restored = 0
    for line in source:
        if line != UNKNOWN_TO_16:
            target.write(line)
        # Statements of settings come first; from here on a line may be anybody's words.
        if line.startswith(b"CREATE "):
            break
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
        restored += len(chunk)
        tell(restored)


def _expected(contents: Contents) -> bytes:
    return b"SET thought_ledger.events = %d;\nSET thought_ledger.head_position = %d;\n" % (
        contents.events,
        contents.head_position,
    )


def _end(psql: Program) -> None:
    if psql.process.wait():
        reason = psql.reason()
        denied = "permission denied" in reason or "must be owner" in reason
        raise RestoreRefusedError(reason) if denied else RestoreFailedError(reason)
