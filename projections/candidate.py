"""A generation beside the live one, led by whoever builds it: brought up, compared, promoted."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.database import Connector
from projections import generations, scratch
from projections.errors import (
    BeingBuiltError,
    FencedError,
    GenerationBrokenError,
    LogRestoredError,
)
from projections.follower import BATCH_EVENTS_MAX, Follower
from projections.generations import Generation
from projections.projection import Projection
from projections.session import BUILDER, configure

BUILD_EVENTS_MAX = 2_000
PACE_SECONDS_MAX = 1.0
# Nobody waits for a build, so it may take its time over a batch.
SILENCE_SECONDS_MAX = 60

# Somebody else took something of it away.
SCHEMA_BROKEN = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InvalidSchemaName,
)

Phase: TypeAlias = Literal["events", "indexes", "following"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build has come: *position* of *head* of the log, *events* of them by this run."""

    phase: Phase
    position: int
    head: int
    events: int


class Candidate:
    """One generation, and the connection that leads it."""

    def __init__(
        self,
        connection: Connection[TupleRow],
        projection: Projection,
        generation: Generation,
        say: Callable[[str], None],
    ) -> None:
        """*say* is told what operators must know, as of parked chains."""
        self.generation = generation
        self.connection = connection
        self._projection = projection
        self._follower = Follower(connection, projection, generation, say)
        self._follower.lead()

    @property
    def position(self) -> int:
        """What of the log is in it."""
        return self._follower.position

    def build_up(
        self,
        report: Callable[[Progress], None] = lambda _: None,
        *,
        events_per_second_max: int | None = None,
    ) -> int:
        """Bring it up to the log and make its indexes; the number of events that took.

        Whatever interrupts it, what was done stays, and the next call goes on from there.
        Raises GenerationBrokenError.
        """
        try:
            return self._build_up(report, events_per_second_max)
        except SCHEMA_BROKEN as error:
            raise GenerationBrokenError(self.generation.name, self.generation.schema) from error

    def _build_up(
        self, report: Callable[[Progress], None], events_per_second_max: int | None
    ) -> int:
        events = 0
        limit = BUILD_EVENTS_MAX
        if events_per_second_max is not None:
            limit = min(limit, max(1, int(events_per_second_max * PACE_SECONDS_MAX)))
        for phase in ("events", "following"):
            head = log.head(self.connection)
            report(Progress(phase, self.position, head, events))
            while self.position < head:
                start = time.monotonic()
                applied = self._step(limit, to=head)
                events += applied
                report(Progress(phase, self.position, head, events))
                if events_per_second_max is not None:
                    pause = start + applied / events_per_second_max - time.monotonic()
                    time.sleep(max(pause, 0))
            if phase == "events":
                report(Progress("indexes", self.position, head, events))
                generations.add_indexes(self.connection, self._projection, self.generation)
        return events

    def reach(self, position: int, deadline: float) -> bool:
        """Come to *position* of the log and no further, before ``time.monotonic()`` says enough."""
        while self.position < position:
            if time.monotonic() > deadline or not self._step(to=position):
                return False
        return True

    def _step(self, limit: int = BATCH_EVENTS_MAX, *, to: int) -> int:
        try:
            return self._follower.step(limit, to=to)
        except FencedError:
            # The lead goes with the connection, which is there: so nobody else has it, but an
            # operator retried or skipped what was parked.
            self._follower.lead()
            return self._follower.step(limit, to=to)


@contextmanager
def open_candidate(
    connector: Connector,
    projection: Projection,
    generation: Generation | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[Candidate]:
    """Lead *generation*, or the one to be built next for this version of the projection.

    Raises BeingBuiltError, ProjectionVersionError, GrantMissingError, LogRestoredError.
    """
    with connector.connect() as connection:
        configure(connection, name=BUILDER, silence_seconds_max=SILENCE_SECONDS_MAX)
        if generation is not None:
            generations.refuse_other_version(generation, projection)
            yield _lead(connection, projection, generation, say)
            return
        begun = generations.begin(connection, projection)
        try:
            candidate = _lead(connection, projection, begun, say)
        except LogRestoredError:
            # What was begun is of a log that is no more.
            generations.retire(connection, begun)
            begun = generations.begin(connection, projection)
            candidate = _lead(connection, projection, begun, say)
        yield candidate


@contextmanager
def open_scratch(
    connector: Connector, projection: Projection, say: Callable[[str], None] = lambda _: None
) -> Generator[Candidate]:
    """Lead a generation of one's own, from the front of the log, that is gone in the end.

    Should this process be killed, the next one discards it.  Raises GrantMissingError.
    """
    with connector.connect() as connection:
        configure(connection, name=BUILDER, silence_seconds_max=SILENCE_SECONDS_MAX)
        scratch.discard_leftovers(connection, projection.name)
        generation = scratch.begin_scratch(connection, projection)
        try:
            yield Candidate(connection, projection, generation, say)
        finally:
            # Without the database it is a leftover.
            with suppress(psycopg.Error):
                scratch.discard(connection, generation)


def _lead(
    connection: Connection[TupleRow],
    projection: Projection,
    generation: Generation,
    say: Callable[[str], None],
) -> Candidate:
    if not generations.take_lead(connection, generation):
        raise BeingBuiltError(generation.schema)
    return Candidate(connection, projection, generation, say)
