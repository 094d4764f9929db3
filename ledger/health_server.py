"""Whether PostgreSQL itself is fit for a log: versions, durability, clock, room."""

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, LiteralString

from ledger.database import PGVECTOR_VERSION_MIN, POSTGRES_VERSION_MIN
from ledger.health import Check, Look, Seen, failed, ok, warning

CLOCK_SECONDS_MAX = 1.0
DISK_BYTES_LOW = 2**30
DISK_BYTES_MIN = 100 * 2**20
CONNECTIONS_SHARE_MAX = 0.8

SELECT_VERSION = """
    SELECT current_setting('server_version_num')::int, current_setting('server_version')
"""

SELECT_PGVECTOR = """
    SELECT (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
           (SELECT extversion FROM pg_extension WHERE extname = 'vector')
"""

SELECT_ENCODING = """
    SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()
"""

SELECT_DURABILITY = """
    SELECT name, setting
      FROM pg_settings
     WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')
     ORDER BY name
"""

# What a role or the database has been given of its own, which this session need not have got.
SELECT_ASYNCHRONOUS = """
    SELECT CASE WHEN setrole = 0 THEN 'every login' ELSE pg_get_userbyid(setrole)::text END
      FROM pg_db_role_setting, unnest(setconfig) AS word
     WHERE setdatabase IN (
               0, (SELECT oid FROM pg_database WHERE datname = current_database())
           )
       AND lower(word) IN (
               'synchronous_commit=off', 'synchronous_commit=false',
               'synchronous_commit=no', 'synchronous_commit=0'
           )
     ORDER BY 1
"""

SELECT_CLOCK = "SELECT clock_timestamp()"

# Not from pg_stat_activity, which tells a reader nothing of the sessions of others.
SELECT_CONNECTIONS = """
    SELECT (SELECT sum(numbackends)::int FROM pg_stat_database),
           current_setting('max_connections')::int
           - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0)
"""

SELECT_SIZE = "SELECT pg_database_size(current_database())"


def _postgresql(look: Look) -> Iterator[Seen]:
    number, version = _row(look, SELECT_VERSION)
    if number < POSTGRES_VERSION_MIN:
        yield failed(f"PostgreSQL {version}", "upgrade it to PostgreSQL 16 or newer")
    else:
        yield ok(f"PostgreSQL {version}")


def _pgvector(look: Look) -> Iterator[Seen]:
    available, installed = _row(look, SELECT_PGVECTOR)
    if installed is None:
        yield failed(
            "the extension vector is not in this database",
            "run `thought-ledger migrate` as a superuser"
            if available
            else "install pgvector 0.8.4 or newer on the server, then run `thought-ledger migrate`",
        )
    elif _numbers(installed) < PGVECTOR_VERSION_MIN:
        yield failed(
            f"pgvector {installed} is too old",
            "install 0.8.4 or newer on the server and run `ALTER EXTENSION vector UPDATE`",
        )
    elif available is not None and _numbers(installed) < _numbers(available):
        yield warning(
            f"pgvector {installed}, and the server has {available}",
            "run `ALTER EXTENSION vector UPDATE` as a superuser",
        )
    else:
        yield ok(f"pgvector {installed}")


def _encoding(look: Look) -> Iterator[Seen]:
    (encoding,) = _row(look, SELECT_ENCODING)
    if encoding == "UTF8":
        yield ok("UTF8")
    else:
        yield failed(
            f"the database's encoding is {encoding}, which cannot hold every text",
            "make a database with ENCODING 'UTF8' and move the ledger there by backup and restore",
        )


def _durability(look: Look) -> Iterator[Seen]:
    settings = dict(look.connection.execute(SELECT_DURABILITY).fetchall())
    off = [name for name, setting in settings.items() if setting == "off"]
    for name in off:
        yield failed(
            f"{name} is off: what was answered may be lost in a crash",
            f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf(), and look who else sets it",
        )
    asynchronous = [role for (role,) in look.connection.execute(SELECT_ASYNCHRONOUS)]
    for role in asynchronous:
        yield failed(
            f"synchronous_commit is off for {role}: what was answered may be lost in a crash",
            "ALTER ROLE or ALTER DATABASE … RESET synchronous_commit",
        )
    if not off and not asynchronous:
        yield ok("an answer means stored: fsync, full_page_writes and synchronous_commit")


def _clock(look: Look) -> Iterator[Seen]:
    before = look.now()
    (there,) = _row(look, SELECT_CLOCK)
    seconds = _skew_seconds(before, there, look.now())
    if abs(seconds) > CLOCK_SECONDS_MAX:
        yield warning(
            f"the database's clock is {abs(seconds):.1f} s "
            f"{'ahead of' if seconds > 0 else 'behind'} this machine's",
            "let both follow the same time (NTP); the order of events does not depend on it",
        )
    else:
        yield ok("the database's clock and this machine's agree")


def _disk(look: Look) -> Iterator[Seen]:
    (size,) = _row(look, SELECT_SIZE)
    if look.data_dir is None:
        yield ok(f"the database has {_bytes(size)}; its machine's free room is not seen from here")
        return
    free = shutil.disk_usage(look.data_dir).free
    fact = f"{_bytes(free)} free under {look.data_dir}, the database has {_bytes(size)}"
    todo = "make room on that file system: PostgreSQL stops when it is full"
    if free < DISK_BYTES_MIN:
        yield failed(fact, todo)
    elif free < DISK_BYTES_LOW:
        yield warning(fact, todo)
    else:
        yield ok(fact)


def _connections(look: Look) -> Iterator[Seen]:
    used, usable = _row(look, SELECT_CONNECTIONS)
    fact = f"{used} of {usable} connections are in use"
    todo = "end some of the servers and workers that use it, or raise its max_connections"
    if used >= usable:
        yield failed(fact, todo)
    elif used >= usable * CONNECTIONS_SHARE_MAX:
        yield warning(fact, todo)
    else:
        yield ok(fact)


def _row(look: Look, statement: LiteralString) -> tuple[Any, ...]:
    row = look.connection.execute(statement).fetchone()
    assert row is not None
    return row


def _skew_seconds(before: datetime, there: datetime, after: datetime) -> float:
    """By how much the other clock is ahead, at least: the answer may have come at any moment."""
    if before <= there <= after:
        return 0.0
    nearest = after if there > after else before
    return (there - nearest) / timedelta(seconds=1)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 2**10:,.1f} KiB"


CHECKS = (
    Check("postgresql", _postgresql),
    Check("pgvector", _pgvector),
    Check("encoding", _encoding),
    Check("durability", _durability),
    Check("clock", _clock),
    Check("disk", _disk),
    Check("connections", _connections),
)
