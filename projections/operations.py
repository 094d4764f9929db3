"""What an operator does with generations: build beside, compare, switch, go back, drop, check."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg

from ledger.database import Connector
from projections import generations
from projections.candidate import Candidate, Progress, open_candidate
from projections.comparison import Comparison
from projections.errors import (
    BeingBuiltError,
    GenerationBlockedError,
    NoLiveGenerationError,
    NothingToPromoteError,
    NothingToRollBackError,
    ProjectionVersionError,
)
from projections.generations import Generation
from projections.projection import Projection
from projections.promotion import Promoted, promote, waiting
from projections.session import session
from projections.snapshot import compare

RETIRE_LOCK_SECONDS_MAX = 5

Report = Callable[[Progress], None]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Listed:
    """The generations of a projection, by what they are for."""

    live: Generation | None
    building: Generation | None
    kept: list[Generation]

    @property
    def earlier(self) -> list[Generation]:
        """Kept ones that were built before the live one, the latest first."""
        return [found for found in self._latest_first() if not self._is_later(found)]

    @property
    def later(self) -> list[Generation]:
        """Kept ones that were built after the live one, the latest first."""
        return [found for found in self._latest_first() if self._is_later(found)]

    def _latest_first(self) -> list[Generation]:
        return sorted(self.kept, key=lambda found: found.number, reverse=True)

    def _is_later(self, found: Generation) -> bool:
        return self.live is not None and found.number > self.live.number


def look(connector: Connector, projection: Projection) -> Listed:
    """What there is of a projection; ``building`` is of the version of this code."""
    with session(connector) as connection:
        listed = generations.listed(connection, projection.name)
        return Listed(
            live=next((found for found in listed if found.state == "live"), None),
            building=generations.find_building(connection, projection),
            kept=[found for found in listed if found.state == "kept"],
        )


def is_current(connector: Connector, projection: Projection) -> bool:
    """Whether readers see a generation of this version of the projection."""
    live = look(connector, projection).live
    return live is not None and live.projection_version == projection.version


def promote_generation(
    connector: Connector,
    projection: Projection,
    *,
    number: int | None = None,
    report: Report = lambda _: None,
    say: Say = lambda _: None,
) -> Promoted:
    """Switch readers to the generation that was built last, or to a given one.

    Without one that was never live, it is the latest of those readers were switched back from.

    Raises NothingToPromoteError, GenerationNotFoundError, and what ``promote`` raises.
    """
    if number is None:
        listed = look(connector, projection)
        generation = listed.building or next(iter(listed.later), None)
        if generation is None:
            raise NothingToPromoteError(projection.name)
    else:
        with session(connector) as connection:
            generation = generations.find(connection, projection.name, number)
    return _switch(connector, projection, generation, report, say)


def roll_back(
    connector: Connector,
    projection: Projection,
    *,
    report: Report = lambda _: None,
    say: Say = lambda _: None,
) -> Promoted:
    """Switch readers to the generation before theirs, of those that are kept.

    Raises NothingToRollBackError, and what ``promote`` raises.
    """
    earlier = look(connector, projection).earlier
    if not earlier:
        raise NothingToRollBackError(projection.name)
    return _switch(connector, projection, earlier[0], report, say)


def switch_to(connector: Connector, candidate: Candidate) -> Promoted:
    """Switch readers to a generation that is led here."""
    with session(connector) as connection:
        return promote(connection, candidate.generation, candidate.reach)


def retire_generation(connector: Connector, generation: Generation) -> None:
    """Drop one that readers do not see.

    Raises GenerationLiveError, BeingBuiltError, GenerationBlockedError.
    """
    with session(connector) as connection:
        if generation.state == "building" and not generations.take_lead(connection, generation):
            raise BeingBuiltError(generation.schema)
        limit = f"{RETIRE_LOCK_SECONDS_MAX}s"
        connection.execute("SELECT set_config('lock_timeout', %(limit)s, false)", {"limit": limit})
        try:
            generations.retire(connection, generation)
        except psycopg.errors.LockNotAvailable as error:
            raise GenerationBlockedError(generation.schema) from error


@contextmanager
def compared(
    connector: Connector,
    projection: Projection,
    other: Generation,
    *,
    report: Report = lambda _: None,
    say: Say = lambda _: None,
) -> Generator[Comparison]:
    """The live generation and another one at one position, if somebody keeps the live one up.

    Raises NoLiveGenerationError, BeingBuiltError.
    """
    with _led(connector, projection, other, say) as candidate:
        if candidate is not None:
            candidate.build_up(report)
            with compared_to(connector, candidate) as comparison:
                yield comparison
            return
        live = _live(connector, other.name)
        with session(connector) as connection:
            reach = waiting(connection, other)
            with compare(connector, live, other, reach) as comparison:
                yield comparison


@contextmanager
def compared_to(connector: Connector, candidate: Candidate) -> Generator[Comparison]:
    """The live generation and one that is led here.  Raises NoLiveGenerationError."""
    live = _live(connector, candidate.generation.name)
    with compare(connector, live, candidate.generation, candidate.reach) as comparison:
        yield comparison


@contextmanager
def _led(
    connector: Connector, projection: Projection, generation: Generation, say: Say
) -> Generator[Candidate | None]:
    """The generation, led here; None if others bring it up: a worker leads it, or would have to.

    Raises BeingBuiltError and ProjectionVersionError for one that only its builder brings up.
    """
    with ExitStack() as stack:
        candidate = None
        try:
            candidate = stack.enter_context(open_candidate(connector, projection, generation, say))
        except (BeingBuiltError, ProjectionVersionError):
            if generation.state == "building":
                raise
        yield candidate


def _live(connector: Connector, name: str) -> Generation:
    with session(connector) as connection:
        live = generations.find_live(connection, name)
    if live is None:
        raise NoLiveGenerationError(name)
    return live


def _switch(
    connector: Connector,
    projection: Projection,
    generation: Generation,
    report: Report,
    say: Say,
) -> Promoted:
    """Lead it if it is of this version and nobody else does; else those who do bring it up."""
    with _led(connector, projection, generation, say) as candidate:
        if candidate is not None:
            events = candidate.build_up(report)
            if events:
                say(f"{generation.schema} was {events:,} events behind and was brought up first")
            return switch_to(connector, candidate)
        with session(connector) as connection:
            return promote(connection, generation)
