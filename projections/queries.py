"""Questions to the live read models, and about them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Identifier

from ledger.log import head
from projections.generations import LEADER_LOCK_CLASS

LAG_EVENTS_MAX = 100_000

TABLE_EXISTS = "SELECT to_regclass(%(name)s) IS NOT NULL"

SELECT_CHAINS = """
    SELECT id, title, status, thought_count AS thoughts, updated_at
      FROM live.thought_chains
     WHERE %(every_status)s OR status IN ('active', 'paused')
     ORDER BY updated_at DESC, id
"""

SELECT_GENERATIONS = """
    SELECT name, number, state, schema_name,
           (SELECT lock.pid
              FROM pg_locks AS lock
             WHERE lock.locktype = 'advisory'
               AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND lock.classid = %(lock_class)s
               AND lock.objid = generation.id
               AND lock.granted
             LIMIT 1)
      FROM projections.generations AS generation
     WHERE to_regnamespace(schema_name) IS NOT NULL
     ORDER BY name, number
"""

SELECT_PROGRESS = """
    SELECT position, (SELECT count(*) FROM {schema}.parked)
      FROM {schema}.checkpoint
"""

SELECT_LAG = """
    SELECT count(*), coalesce(extract(epoch FROM now() - min(recorded_at)), 0)::float8
      FROM (SELECT recorded_at
              FROM ledger.events
             WHERE notification_id > %(position)s
             ORDER BY notification_id
             LIMIT %(limit)s) AS waiting
"""


@dataclass(frozen=True, slots=True)
class ChainLine:
    """A chain as a list shows it."""

    id: UUID
    title: str
    status: str
    thoughts: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """How far a generation has come.

    ``lag_events`` counts to LAG_EVENTS_MAX.  ``lag_seconds`` is the age of the oldest event not
    yet applied.  ``leader_pid`` is of the leader's database session.
    """

    name: str
    generation: int
    state: str
    position: int
    head: int
    lag_events: int
    lag_seconds: float
    parked: int
    leader_pid: int | None


def chains(connection: Connection[TupleRow], *, every_status: bool) -> list[ChainLine]:
    """The chains that can be gone on with, or all, the latest moved first.

    Empty as long as no worker has built the read model.
    """
    if not _exists(connection, "live.thought_chains"):
        return []
    with connection.cursor(row_factory=class_row(ChainLine)) as cursor:
        cursor.execute(SELECT_CHAINS, {"every_status": every_status})
        return cursor.fetchall()


def status(connection: Connection[TupleRow]) -> list[GenerationStatus]:
    """Every generation that is there; empty as long as no worker has built one."""
    if not _exists(connection, "projections.generations"):
        return []
    generations = connection.execute(
        SELECT_GENERATIONS, {"lock_class": LEADER_LOCK_CLASS}
    ).fetchall()
    return [_status(connection, row) for row in generations]


def _status(connection: Connection[TupleRow], row: TupleRow) -> GenerationStatus:
    name, number, state, schema, leader_pid = row
    progress = connection.execute(SQL(SELECT_PROGRESS).format(schema=Identifier(schema))).fetchone()
    assert progress is not None
    position, parked = progress
    # After the position, so that what is recorded meanwhile is counted and nothing twice.
    lag = connection.execute(SELECT_LAG, {"position": position, "limit": LAG_EVENTS_MAX}).fetchone()
    assert lag is not None
    lag_events, lag_seconds = lag
    return GenerationStatus(
        name=name,
        generation=number,
        state=state,
        position=position,
        head=head(connection),
        lag_events=lag_events,
        lag_seconds=max(lag_seconds, 0.0),
        parked=parked,
        leader_pid=leader_pid,
    )


def _exists(connection: Connection[TupleRow], name: str) -> bool:
    row = connection.execute(TABLE_EXISTS, {"name": name}).fetchone()
    return row is not None and row[0]
