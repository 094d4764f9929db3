"""The operators' commands that fold the log anew: rebuild, check."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import typer

from ledger.database import Connector, Role
from ledger.display import printing
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections import operations
from projections.candidate import Candidate, open_candidate, open_scratch
from projections.catalogue import ALL, projection_of
from projections.cli_generations import (
    SAMPLES_DEFAULT,
    Name,
    Samples,
    parked_count,
    tell_promoted,
    working_on,
)
from projections.cli_progress import BuildProgress
from projections.cli_words import print_comparison, print_digests, print_json, say
from projections.comparison import Comparison
from projections.errors import StillMovingError
from projections.projection import Projection
from projections.sampling import sampled
from projections.worker import CATCH_UP_SECONDS_MAX, catch_up

# What was asked is not so.
NO = 3

Rate = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1_000_000_000,
        metavar="EVENTS",
        help="Apply at most so many a second, to leave the rest to others.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``thought-ledger projections``."""
    for command in (rebuild, check):
        app.command()(command)


def rebuild(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="The read models; by default those readers see in another version than this one.",
            metavar="[NAME]...",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and drop it again.")
    ] = False,
    promote: Annotated[
        bool, typer.Option("--promote", help="Switch readers to it when it is built.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Drop what was begun before, and begin at the front."),
    ] = False,
    rate: Rate = None,
    samples: Samples = SAMPLES_DEFAULT,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Build a new generation of read models beside the live one, while everybody works.

    Readers see it when it is promoted.  Interrupted, the same command goes on where it stopped;
    a dry run leaves nothing.
    """
    if dry_run and promote:
        raise typer.BadParameter("--dry-run changes nothing, so there is nothing to --promote")
    with opened(settings_of(data_dir, database_url)) as database:
        connector = database.connector(Role.PROJECTOR)
        chosen = [projection_of(name) for name in names or ()] or [
            known for known in ALL if not operations.is_current(connector, known)
        ]
        if not chosen:
            say("readers see every read model in this version; name one to rebuild it all the same")
        for projection in chosen:
            rebuilding = _Rebuilding(connector, projection, as_json=as_json, rate=rate)
            with printing():
                if dry_run:
                    rebuilding.try_out(samples)
                else:
                    rebuilding.run(fresh=fresh, promote=promote)


def check(
    name: Name,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            metavar="CHAINS",
            help="Only so many chains, chosen by chance: quick, and nothing is built.",
            show_default=False,
        ),
    ] = None,
    samples: Samples = SAMPLES_DEFAULT,
    rate: Rate = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Prove that a live read model is what the log says: fold it anew and compare the digests.

    Exits 3 when it is not, and shows rows that differ.
    """
    with working_on(name, data_dir, database_url) as (connector, projection):
        catch_up(connector, projection, CATCH_UP_SECONDS_MAX)
        rebuilding = _Rebuilding(connector, projection, as_json=as_json, rate=rate)
        with printing():
            is_equal = (
                rebuilding.verify(samples)
                if sample is None
                else rebuilding.verify_some(sample, samples)
            )
    if not is_equal:
        raise typer.Exit(NO)


class _Rebuilding:
    """One read model built beside the live one, from the command line."""

    def __init__(
        self, connector: Connector, projection: Projection, *, as_json: bool, rate: int | None
    ) -> None:
        self._connector = connector
        self._projection = projection
        self._name = projection.name
        self._as_json = as_json
        self._rate = rate

    def run(self, *, fresh: bool, promote: bool) -> None:
        if fresh and (begun := operations.look(self._connector, self._projection).building):
            operations.retire_generation(self._connector, begun)
        with open_candidate(self._connector, self._projection, say=say) as candidate:
            generation = candidate.generation
            if not self._as_json:
                print(
                    f"{self._name}: building {generation.schema} "
                    f"(version {generation.projection_version}), from position "
                    f"{candidate.position:,}",
                    flush=True,
                )
            progress = self._build_up(candidate)
            if self._as_json:
                print_json(progress.summary(generation, candidate.position))
            else:
                print(f"{self._name}: {progress.sentence(candidate.position)}", flush=True)
            promoted = operations.switch_to(self._connector, candidate) if promote else None
        if promoted is not None:
            tell_promoted(self._connector, promoted, as_json=self._as_json)
        elif not self._as_json:
            print(
                f"{self._name}: next, `thought-ledger projections diff {self._name}` shows what "
                f"would change, `thought-ledger projections promote {self._name}` switches readers"
            )

    def try_out(self, samples: int) -> None:
        with self._compared() as comparison:
            differences = comparison.differences(samples)
        print_comparison(comparison, differences, as_json=self._as_json)

    def verify(self, samples: int) -> bool:
        with self._compared() as comparison:
            if not comparison.is_even:
                raise StillMovingError(self._name)
            return self._tell(comparison, samples, "all of it")

    def verify_some(self, count: int, samples: int) -> bool:
        with sampled(self._connector, self._projection, count) as sample:
            what = f"{len(sample.chains):,} of its chains"
            is_equal = self._tell(sample.comparison, samples, what)
        if sample.uncovered:
            names = ", ".join(sample.uncovered)
            say(f"rows of {names} belong to many chains: only a check without --sample covers them")
        return is_equal

    def _tell(self, comparison: Comparison, samples: int, what: str) -> bool:
        """Print what came of a check; whether the two are equal."""
        live, fresh = map(comparison.digests, (comparison.live, comparison.other))
        print_digests(comparison, live, fresh, what=what, as_json=self._as_json)
        if live != fresh:
            differences = comparison.differences(samples)
            print_comparison(comparison, differences, as_json=self._as_json)
            parked = parked_count(self._connector, comparison.live)
            say(
                f"{self._name} is not what the log says; "
                + (
                    f"it has {parked} parked chains, which may be why: "
                    f"`thought-ledger projections parked {self._name}`; else "
                    if parked
                    else ""
                )
                + f"`thought-ledger projections rebuild {self._name} --fresh --promote` makes it so"
            )
        return live == fresh

    @contextmanager
    def _compared(self) -> Generator[Comparison]:
        """The live generation and the log folded anew."""
        with open_scratch(self._connector, self._projection, say=say) as candidate:
            self._build_up(candidate)
            with operations.compared_to(self._connector, candidate) as comparison:
                yield comparison

    def _build_up(self, candidate: Candidate) -> BuildProgress:
        with BuildProgress(self._name, quiet=self._as_json) as progress:
            candidate.build_up(progress.report, events_per_second_max=self._rate)
        return progress
