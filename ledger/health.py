"""Whether all is well: what a check is, how it is made, and what it may look with.

A look changes nothing: its sessions are read only, and what may be seen by the reader of the log
is looked at as the reader.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from ledger.database import Database, connect
from ledger.embedded import default_data_dir
from ledger.errors import LedgerError, reason_of
from ledger.settings import Settings

# A table that somebody has locked is a finding, not a reason to hang.
LOOK_OPTIONS = "-c default_transaction_read_only=on -c statement_timeout=10s -c lock_timeout=2s"

SET_ROLE = "SET ROLE thought_ledger_reader"

# What a check looks at is not there: the migrations make it.
MISSING = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedObject,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.InvalidSchemaName,
)
SLOW = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)
MIGRATE = "run `thought-ledger migrate` as the owner of the database"


class State(StrEnum):
    """How it stands: a warning will be a failure if nobody sees to it."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Seen(NamedTuple):
    """What one check saw, and what to do about it, if anything is to be done."""

    state: State
    fact: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one matter."""

    check: str
    state: State
    fact: str
    todo: str


@dataclass(frozen=True, slots=True)
class Look:
    """What checks look with; ``data_dir`` is the embedded PostgreSQL's, None for one elsewhere."""

    connection: Connection[TupleRow]
    data_dir: Path | None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Check(NamedTuple):
    """One matter, and the function that looks at it."""

    name: str
    look: Callable[[Look], Iterable[Seen]]


class NoLedgerError(LedgerError):
    """There is no database to look at, and looking makes none."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(
            f"there is no ledger in {data_dir}; name another with --data-dir or --database-url, "
            "or make one with `thought-ledger migrate`"
        )
        self.data_dir = data_dir


def ok(fact: str) -> Seen:
    """It is as it should be."""
    return Seen(State.OK, fact)


def warning(fact: str, todo: str) -> Seen:
    """It works, and will not if nobody sees to it."""
    return Seen(State.WARNING, fact, todo)


def failed(fact: str, todo: str) -> Seen:
    """It is not as it must be."""
    return Seen(State.FAILED, fact, todo)


@contextmanager
def looking(settings: Settings) -> Generator[Look]:
    """What the checks of one database look with.

    An embedded PostgreSQL that rests is started for it; none is made.  Raises NoLedgerError and
    what connecting raises.
    """
    database = Database(settings)
    data_dir = None
    if database.embedded is not None:
        data_dir = (settings.data_dir or default_data_dir()).expanduser()
        if not (data_dir / "pg" / "PG_VERSION").exists():
            raise NoLedgerError(data_dir)
    try:
        database.revive()
        with closing(connect(_conninfo(database))) as connection:
            _become_reader(connection)
            yield Look(connection, data_dir)
    finally:
        database.close()


def examine(look: Look, checks: Sequence[Check]) -> list[Finding]:
    """What the checks find; what cannot be looked at is a finding too.

    Raises psycopg.OperationalError when the database is lost meanwhile.
    """
    return [
        Finding(check.name, seen.state, seen.fact, seen.todo)
        for check in checks
        for seen in _seen(check, look)
    ]


def _seen(check: Check, look: Look) -> list[Seen]:
    try:
        return list(check.look(look))
    except psycopg.errors.InsufficientPrivilege as error:
        return [
            warning(
                f"this login may not see it ({reason_of(error)})",
                "grant it thought_ledger_reader, or look with another login",
            )
        ]
    except MISSING as error:
        return [failed(f"what it looks at is not there ({reason_of(error)})", MIGRATE)]
    except SLOW as error:
        return [
            warning(
                f"the database did not answer in time ({reason_of(error)})",
                "look at pg_stat_activity for who holds locks, and try again",
            )
        ]


def _conninfo(database: Database) -> str:
    conninfo = database.owner_conninfo()
    options = conninfo_to_dict(conninfo)["options"]
    return make_conninfo(conninfo, options=f"{options} {LOOK_OPTIONS}")


def _become_reader(connection: Connection[TupleRow]) -> None:
    try:
        connection.execute(SET_ROLE)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue):
        # The login goes on as itself: the role is not there, or not granted, and a check says so.
        return
