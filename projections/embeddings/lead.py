"""Who embeds: one process a database, seen by locks that die with its session; what it says."""

from dataclasses import dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import TupleRow

# One for the lead, one more once the model is there; ``vectors.sql`` knows them too.
LOCK_CLASS = 74110004
LEADS, READY = 1, 2

TAKE = "SELECT pg_try_advisory_lock(%(lock_class)s, %(number)s)"
# As the database has it for askers, without a right to run functions of the schema.
SELECT_LEADER = """
    SELECT max(lock.objid::bigint), max(session.application_name)
      FROM pg_locks AS lock
      LEFT JOIN pg_stat_activity AS session ON session.pid = lock.pid
     WHERE lock.locktype = 'advisory'
       AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND lock.classid = %(lock_class)s
       AND lock.objsubid = 2
       AND lock.granted
"""

# Nothing is written when nothing has changed.
UPSERT_SAID = """
    INSERT INTO vectors.embedder (state, reason, model, rate)
    VALUES (%(state)s, %(reason)s, %(model)s, %(rate)s)
        ON CONFLICT (only_row) DO UPDATE
       SET state = excluded.state,
           reason = excluded.reason,
           model = coalesce(excluded.model, embedder.model),
           rate = coalesce(excluded.rate, embedder.rate),
           updated_at = clock_timestamp()
     WHERE (embedder.state, embedder.reason) IS DISTINCT FROM (excluded.state, excluded.reason)
        OR excluded.model IS DISTINCT FROM embedder.model
        OR excluded.rate IS DISTINCT FROM embedder.rate
    RETURNING true
"""
SELECT_SAID = "SELECT state, reason, model, rate, updated_at FROM vectors.embedder"

# What an embedding process, or who could have started one, says of itself.
OFF = "off"
NOT_INSTALLED = "not installed"
LOADING = "loading"
IS_READY = "ready"
FAILED = "failed"
RESTING = "resting"


@dataclass(frozen=True, slots=True)
class Leader:
    """The process that embeds, PID@HOST; not ready while it loads its model."""

    process: str | None
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Word:
    """What was said last; ``rate`` is in texts a second."""

    state: str
    reason: str
    model: str | None
    rate: float | None
    updated_at: datetime


def take_lead(connection: Connection[TupleRow]) -> bool:
    """Whether this session embeds from now on; it is held until the session ends."""
    return _take(connection, LEADS)


def be_ready(connection: Connection[TupleRow]) -> None:
    """Have askers know that the model is there."""
    _take(connection, READY)


def leader(connection: Connection[TupleRow]) -> Leader | None:
    """Who embeds now."""
    row = connection.execute(SELECT_LEADER, {"lock_class": LOCK_CLASS}).fetchone()
    if row is None or row[0] is None:
        return None
    number, name = row
    return Leader(name and name.rpartition(" ")[2], number == READY)


def say_state(
    connection: Connection[TupleRow],
    state: str,
    reason: str = "",
    *,
    model: str | None = None,
    rate: float | None = None,
) -> bool:
    """Leave word of how it is; whether that is news."""
    said = {"state": state, "reason": reason, "model": model, "rate": rate}
    return connection.execute(UPSERT_SAID, said).fetchone() is not None


def last_word(connection: Connection[TupleRow]) -> Word | None:
    """What was said last, if anything was."""
    row = connection.execute(SELECT_SAID).fetchone()
    return None if row is None else Word(*row)


def _take(connection: Connection[TupleRow], number: int) -> bool:
    row = connection.execute(TAKE, {"lock_class": LOCK_CLASS, "number": number}).fetchone()
    return row is not None and row[0]
