"""Promotion: readers are switched to another generation, at once and never back in time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from ledger import log
from projections import generations
from projections.errors import GenerationBehindError, SwitchBlockedError
from projections.follower import channel_of
from projections.generations import Generation
from projections.registry import LOCK_REGISTRY

# Readers that come meanwhile wait behind the switch: so it does not wait long, but again and again.
SWITCH_LOCK_MILLISECONDS_MAX = 50
REACH_SECONDS_MAX = 0.04
SWITCH_SECONDS_MAX = 30.0
APPROACH_SECONDS_MAX = 5.0
RETRY_PAUSE_SECONDS = 0.02
POLL_SECONDS = 0.002
LONG_SECONDS = 0.2

LIMIT_LOCKS = "SELECT set_config('lock_timeout', %(limit)s, true)"

# Whoever moves the generation waits at this row.
HOLD_POSITION = "SELECT position FROM {schema}.checkpoint FOR UPDATE"
SELECT_POSITION = "SELECT position FROM {schema}.checkpoint"

NOTIFY_POSITION = "SELECT pg_notify(%(channel)s, %(position)s::text)"

# A transaction that still has the lock at a second look.
SELECT_HOLDING = """
    SELECT DISTINCT lock.pid, lock.virtualtransaction
      FROM pg_locks AS lock
      JOIN pg_class AS relation ON relation.oid = lock.relation
     WHERE lock.granted
       AND lock.pid <> pg_backend_pid()
       AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND relation.relnamespace = to_regnamespace('live')
     ORDER BY lock.pid
"""

# Brings the other generation up to a position, before a time; whether it is there.
Reach = Callable[[int, float], bool]


@dataclass(frozen=True, slots=True)
class Promoted:
    """A switch that was made; ``seconds`` is how long readers and the live one's worker waited."""

    generation: Generation
    replaced: Generation | None
    position: int
    seconds: float
    attempts: int


class _NotYetError(Exception):
    """The other generation has not reached what readers see."""

    def __init__(self, live_position: int) -> None:
        super().__init__(live_position)
        self.live_position = live_position


def promote(
    connection: Connection[TupleRow],
    generation: Generation,
    reach: Reach | None = None,
    *,
    seconds_max: float = SWITCH_SECONDS_MAX,
) -> Promoted:
    """Have readers see *generation*: in one transaction, and at a position not before theirs.

    *reach* brings it up meanwhile; without, whoever leads it has to.  Nothing changes before the
    switch, and the generation that is replaced stays as it is.

    Raises SwitchBlockedError, GenerationBehindError, ViewInUseError.
    """
    deadline = time.monotonic() + seconds_max
    if reach is None:
        reach = waiting(connection, generation)
        _approach(connection, generation, reach, deadline)
    attempt = 0
    while True:
        attempt += 1
        late = time.monotonic() > deadline
        try:
            return _switch(connection, generation, reach, attempt)
        except psycopg.errors.LockNotAvailable as error:
            if late:
                raise SwitchBlockedError(generation.name, _blocking(connection)) from error
        except _NotYetError as not_yet:
            if late:
                raise _behind(connection, generation, not_yet.live_position) from not_yet
        time.sleep(RETRY_PAUSE_SECONDS)


def _approach(
    connection: Connection[TupleRow], generation: Generation, reach: Reach, deadline: float
) -> None:
    """Wait without holding anybody up until all that readers see now is in the generation."""
    live = generations.find_live(connection, generation.name)
    if live is not None:
        seen = min(position_of(connection, SELECT_POSITION, live), log.head(connection))
        if not reach(seen, min(deadline, time.monotonic() + APPROACH_SECONDS_MAX)):
            raise _behind(connection, generation, seen)


def _behind(
    connection: Connection[TupleRow], generation: Generation, live_position: int
) -> GenerationBehindError:
    position = position_of(connection, SELECT_POSITION, generation)
    return GenerationBehindError(generation.schema, position, live_position)


def _switch(
    connection: Connection[TupleRow], generation: Generation, reach: Reach, attempt: int
) -> Promoted:
    with connection.transaction():
        connection.execute(LIMIT_LOCKS, {"limit": f"{SWITCH_LOCK_MILLISECONDS_MAX}ms"})
        connection.execute(LOCK_REGISTRY)
        switch = generations.Switch(connection, generation)
        replaced = switch.replaced
        start = time.perf_counter()
        if replaced is not None and replaced.id != generation.id:
            # A position the log has lost, to an older backup, is no time to go back from.
            seen = min(position_of(connection, HOLD_POSITION, replaced), log.head(connection))
            if not reach(seen, time.monotonic() + REACH_SECONDS_MAX):
                raise _NotYetError(seen)
        position = position_of(connection, HOLD_POSITION, generation)
        switch.make()
        connection.execute(
            NOTIFY_POSITION, {"channel": channel_of(generation.name), "position": position}
        )
    seconds = time.perf_counter() - start
    return Promoted(generation._replace(state="live"), replaced, position, seconds, attempt)


def waiting(connection: Connection[TupleRow], generation: Generation) -> Reach:
    """For a generation that others bring up: looks whether they have."""

    def reach(position: int, deadline: float) -> bool:
        while position_of(connection, SELECT_POSITION, generation) < position:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    return reach


def position_of(
    connection: Connection[TupleRow], query: LiteralString, generation: Generation
) -> int:
    """A generation's position, asked by one of the two queries above."""
    schema = Identifier(generation.schema)
    row = connection.execute(SQL(query).format(schema=schema)).fetchone()
    assert row is not None
    return row[0]


def _blocking(connection: Connection[TupleRow]) -> list[int]:
    """The sessions whose transactions hold a view for long, not those that just read it."""
    first = connection.execute(SELECT_HOLDING).fetchall()
    time.sleep(LONG_SECONDS)
    second = connection.execute(SELECT_HOLDING).fetchall()
    return [pid for pid, transaction in second if (pid, transaction) in first]
