"""How far every generation is, and how fast it comes on."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from ledger.database import Connector
from ledger.log import head
from projections.embeddings import status as embeddings
from projections.embeddings.status import EmbeddingStatus
from projections.generations import LEADER_LOCK_CLASS
from projections.registry import registry_exists

LAG_EVENTS_MAX = 100_000
NOTHING = EmbeddingStatus()

SELECT_GENERATIONS = """
    SELECT generation.name, generation.number, generation.state,
           generation.projection_version, generation.schema_name,
           lock.pid, session.application_name
      FROM projections.generations AS generation
      LEFT JOIN pg_locks AS lock
        ON lock.locktype = 'advisory'
       AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND lock.classid = %(lock_class)s
       AND lock.objid = generation.id
       AND lock.granted
      LEFT JOIN pg_stat_activity AS session ON session.pid = lock.pid
     WHERE to_regnamespace(generation.schema_name) IS NOT NULL
     ORDER BY generation.name, generation.number
"""

SELECT_PROGRESS = """
    SELECT position, updated_at, (SELECT count(*) FROM {schema}.parked)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStatus:
    """How far a generation has come.

    ``lag_events`` counts to LAG_EVENTS_MAX.  ``lag_seconds`` is the age of the oldest event not
    yet applied.  ``leader`` is the process that keeps it up, PID@HOST, and ``leader_pid`` its
    database session.  ``rate`` is in positions of the log a second and ``eta_seconds`` the time to
    its head at that rate; both need two looks (``with_rates``), else they are None.
    """

    name: str
    generation: int
    state: str
    projection_version: int
    position: int
    head: int
    lag_events: int
    lag_seconds: float
    parked: int
    leader: str | None
    leader_pid: int | None
    updated_at: datetime
    rate: float | None = None
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """Every generation that is there at a moment, by ``time.monotonic()``, and the embeddings."""

    at: float
    generations: Sequence[GenerationStatus]
    embeddings: EmbeddingStatus = NOTHING


def look(connection: Connection[TupleRow]) -> Look:
    """Every generation that is there; none as long as no worker has built one."""
    if not registry_exists(connection):
        return Look(time.monotonic(), [], embeddings.look(connection))
    found = connection.execute(SELECT_GENERATIONS, {"lock_class": LEADER_LOCK_CLASS}).fetchall()
    statuses: list[GenerationStatus] = []
    for row in found:
        # It may be retired just now.
        with suppress(psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            statuses.append(_status(connection, row))
    return Look(time.monotonic(), statuses, embeddings.look(connection))


def look_by(connector: Connector) -> Look:
    """The same on a connection of its own.  Raises DatabaseUnavailableError."""
    with connector.connect() as connection:
        return look(connection)


def with_rates(before: Look, after: Look) -> list[GenerationStatus]:
    """The later look, with how fast each generation came on since the earlier one."""
    known = {(row.name, row.generation): row.position for row in before.generations}
    seconds = max(after.at - before.at, 0.001)
    return [
        _with_rate(row, (row.position - known.get((row.name, row.generation), 0)) / seconds)
        if (row.name, row.generation) in known
        else row
        for row in after.generations
    ]


def _with_rate(row: GenerationStatus, rate: float) -> GenerationStatus:
    eta = (row.head - row.position) / rate if rate > 0 else None
    return replace(
        row,
        rate=round(rate, 1),
        eta_seconds=0.0 if row.lag_events == 0 else eta and round(eta, 1),
    )


def _status(connection: Connection[TupleRow], row: TupleRow) -> GenerationStatus:
    name, number, state, version, schema, leader_pid, application = row
    progress = connection.execute(SQL(SELECT_PROGRESS).format(schema=Identifier(schema))).fetchone()
    assert progress is not None
    position, updated_at, parked = progress
    # After the position, so that what is recorded meanwhile is counted and nothing twice.
    lag = connection.execute(SELECT_LAG, {"position": position, "limit": LAG_EVENTS_MAX}).fetchone()
    assert lag is not None
    lag_events, lag_seconds = lag
    return GenerationStatus(
        name=name,
        generation=number,
        state=state,
        projection_version=version,
        position=position,
        head=head(connection),
        lag_events=lag_events,
        lag_seconds=round(max(lag_seconds, 0.0), 3),
        parked=parked,
        leader=application and application.rpartition(" ")[2],
        leader_pid=leader_pid,
        updated_at=updated_at,
    )
