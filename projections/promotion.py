"""Promotion: readers are switched to another generation, at once and never back in time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier, Literal

from ledger import log
from projections import generations
from projections.errors import GenerationBehindError, SwitchBlockedError
from projections.follower import channel_of
from projections.generations import Generation
from projections.registry import LOCK_REGISTRY

# Readers that come meanwhile wait behind a try: so it does not wait long, but again and again.
TRY_SECONDS_MAX = 0.05
# What is left to do then has at least this, or a try that got its views late would be in vain.
REACH_SECONDS_MIN = 0.01
# How long it may come nearer before each try, while nobody waits.
REACH_SECONDS_MAX = 0.04
SWITCH_SECONDS_MAX = 30.0
APPROACH_SECONDS_MAX = 5.0
RETRY_PAUSE_SECONDS = 0.02
POLL_SECONDS = 0.002
LONG_SECONDS = 0.2

LIMIT_LOCKS = "SET LOCAL lock_timeout = {milliseconds}"

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
    """A switch that was made.

    Readers waited for ``seconds``, and for ``longest_try_seconds`` at most: tries that fail keep
    them waiting as well.  The worker of the live one waited no longer.
    """

    generation: Generation
    replaced: Generation | None
    position: int
    seconds: float
    longest_try_seconds: float
    attempts: int


class _NotYetError(Exception):
    """The other generation has not reached what readers see."""

    def __init__(self, live_position: int) -> None:
        super().__init__(live_position)
        self.live_position = live_position


class _Patience:
    """How long one try keeps readers waiting, and how much longer it may wait itself."""

    def __init__(self) -> None:
        self._start: float | None = None

    def begin(self) -> None:
        """From here on readers wait."""
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        return 0.0 if self._start is None else time.monotonic() - self._start

    @property
    def left(self) -> float:
        return TRY_SECONDS_MAX - self.spent

    def limit(self) -> Composed:
        """The statement by which no lock of this transaction is waited for any longer."""
        # 0 would be no limit.
        return SQL(LIMIT_LOCKS).format(milliseconds=Literal(max(1, int(self.left * 1000))))


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
    longest = 0.0
    while True:
        attempt += 1
        late = time.monotonic() > deadline
        patience = _Patience()
        try:
            replaced, position = _switch(connection, generation, reach, patience)
        except psycopg.errors.LockNotAvailable as error:
            if late:
                raise SwitchBlockedError(generation.name, _blocking(connection)) from error
        except _NotYetError as not_yet:
            if late:
                raise _behind(connection, generation, not_yet.live_position) from not_yet
        else:
            seconds = patience.spent
            live = generation._replace(state="live")
            return Promoted(live, replaced, position, seconds, max(longest, seconds), attempt)
        longest = max(longest, patience.spent)
        time.sleep(RETRY_PAUSE_SECONDS)


def _approach(
    connection: Connection[TupleRow], generation: Generation, reach: Reach, deadline: float
) -> None:
    """Wait without holding anybody up until all that readers see now is in the generation."""
    live = generations.find_live(connection, generation.name)
    if live is not None:
        seen = _seen(connection, SELECT_POSITION, live)
        if not reach(seen, min(deadline, time.monotonic() + APPROACH_SECONDS_MAX)):
            raise _behind(connection, generation, seen)


def _behind(
    connection: Connection[TupleRow], generation: Generation, live_position: int
) -> GenerationBehindError:
    position = position_of(connection, SELECT_POSITION, generation)
    return GenerationBehindError(generation.schema, position, live_position)


def _switch(
    connection: Connection[TupleRow],
    generation: Generation,
    reach: Reach,
    patience: _Patience,
) -> tuple[Generation | None, int]:
    """Try once; which generation was replaced, and the position readers see."""
    with connection.transaction():
        connection.execute(patience.limit())
        connection.execute(LOCK_REGISTRY)
        switch = generations.Switch(connection, generation)
        replaced = switch.replaced
        ahead = None if replaced is None or replaced.id == generation.id else replaced
        if ahead is not None:
            reach(_seen(connection, SELECT_POSITION, ahead), _after(REACH_SECONDS_MAX))
        patience.begin()
        # Before the position, so that the worker is held up only by a try that has the views.  A
        # reader who has one and asks for another gets it when the try gives up.
        for lock in switch.locks:
            connection.execute(SQL("; ").join([patience.limit(), lock]))
        connection.execute(patience.limit())
        if ahead is not None:
            seen = _seen(connection, HOLD_POSITION, ahead)
            if not reach(seen, _after(max(patience.left, REACH_SECONDS_MIN))):
                raise _NotYetError(seen)
        position = position_of(connection, HOLD_POSITION, generation)
        switch.make()
        connection.execute(
            NOTIFY_POSITION, {"channel": channel_of(generation.name), "position": position}
        )
    return replaced, position


def _seen(connection: Connection[TupleRow], query: LiteralString, live: Generation) -> int:
    """What readers see of the log."""
    # A position the log has lost, to an older backup, is no time to go back from.
    return min(position_of(connection, query, live), log.head(connection))


def _after(seconds: float) -> float:
    return time.monotonic() + seconds


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
