"""The operators' commands on generations that are there: diff, promote, rollback, retire."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ledger.database import Connector, Role
from ledger.display import printing
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections import generations, operations, status
from projections.catalogue import ALL, projection_of
from projections.cli_progress import BuildProgress
from projections.cli_words import print_comparison, print_json, print_promoted, say
from projections.errors import NothingToPromoteError
from projections.generations import Generation
from projections.projection import Projection
from projections.promotion import Promoted

SAMPLES_DEFAULT = 5
LEADER_SECONDS_MAX = 2.0
POLL_SECONDS = 0.05

Name = Annotated[
    str,
    typer.Argument(
        help="The read model: " + ", ".join(sorted(known.name for known in ALL)) + ".",
        metavar="NAME",
        show_default=False,
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "--generation",
        min=1,
        metavar="NUMBER",
        help="Which one; `status` lists them.",
        show_default=False,
    ),
]
Samples = Annotated[
    int, typer.Option("--samples", min=0, max=1000, help="Rows to show of each table that differs.")
]


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``thought-ledger projections``."""
    for command in (diff, promote, rollback, retire):
        app.command()(command)


@contextmanager
def working_on(
    name: str, data_dir: Path | None, database_url: str | None
) -> Generator[tuple[Connector, Projection]]:
    """What a command on one read model works with.  Raises ProjectionNotFoundError."""
    projection = projection_of(name)
    with opened(settings_of(data_dir, database_url)) as database:
        yield database.connector(Role.PROJECTOR), projection


def diff(
    name: Name,
    number: Number = None,
    samples: Samples = SAMPLES_DEFAULT,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show what would change for readers if another generation were promoted.

    By default the one `promote` would take, else the one `rollback` would.
    """
    with working_on(name, data_dir, database_url) as (connector, projection):
        other = _other(connector, projection, number)
        with (
            BuildProgress(name, quiet=as_json) as progress,
            operations.compared(
                connector, projection, other, report=progress.report, say=say
            ) as comparison,
        ):
            differences = comparison.differences(samples)
        with printing():
            print_comparison(comparison, differences, as_json=as_json)


def promote(
    name: Name,
    number: Number = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Switch readers to the generation that was built last, in one transaction.

    The one they saw before is kept: `rollback` goes back to it, `retire` drops it.
    """
    with working_on(name, data_dir, database_url) as (connector, projection):
        if number is not None and _find(connector, projection, number).state == "live":
            say(f"generation {number} of {name} is live already")
            return
        with BuildProgress(name, quiet=as_json) as progress:
            promoted = operations.promote_generation(
                connector, projection, number=number, report=progress.report, say=say
            )
        tell_promoted(connector, promoted, as_json=as_json)


def rollback(
    name: Name,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Switch readers back to the generation before the live one, in one transaction.

    `promote` goes forward again.
    """
    with working_on(name, data_dir, database_url) as (connector, projection):
        with BuildProgress(name, quiet=as_json) as progress:
            promoted = operations.roll_back(connector, projection, report=progress.report, say=say)
        tell_promoted(connector, promoted, as_json=as_json)


def retire(
    name: Name,
    number: Number = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Drop the generations that are kept to go back to, or a given one that is not live."""
    with working_on(name, data_dir, database_url) as (connector, projection):
        chosen = operations.look(connector, projection).kept
        if number is not None:
            chosen = [_find(connector, projection, number)]
        if not chosen:
            say(f"{name} has no generation that is kept to go back to")
        for generation in chosen:
            operations.retire_generation(connector, generation)
            with printing():
                if as_json:
                    print_json({"name": name, "retired": generation.number})
                else:
                    print(f"{name}: dropped {generation.schema}")


def _other(connector: Connector, projection: Projection, number: int | None) -> Generation:
    if number is not None:
        return _find(connector, projection, number)
    listed = operations.look(connector, projection)
    others = [*([listed.building] if listed.building else []), *listed.later, *listed.earlier]
    if not others:
        raise NothingToPromoteError(projection.name)
    return others[0]


def _find(connector: Connector, projection: Projection, number: int) -> Generation:
    with connector.connect() as connection:
        return generations.find(connection, projection.name, number)


def tell_promoted(connector: Connector, promoted: Promoted, *, as_json: bool) -> None:
    """Say what a switch has done, and when no worker keeps its generation up."""
    name = promoted.generation.name
    with printing():
        print_promoted(promoted, as_json=as_json)
    parked = parked_count(connector, promoted.generation)
    if parked:
        say(f"{parked} chains are parked in it: `thought-ledger projections parked {name}`")
    if not _is_led(connector, promoted.generation):
        say(
            f"nobody keeps {promoted.generation.schema} up: start a worker of version "
            f"{promoted.generation.projection_version} (`thought-ledger projections run`)"
        )


def _is_led(connector: Connector, generation: Generation) -> bool:
    """Whether a worker takes it up, as those that run do at once, or nobody has to."""
    deadline = time.monotonic() + LEADER_SECONDS_MAX
    while time.monotonic() < deadline:
        found = _status(connector, generation)
        # Another operator may have gone back and retired it meanwhile: nobody has to lead it.
        if found is None or found.leader_pid is not None:
            return True
        time.sleep(POLL_SECONDS)
    return False


def parked_count(connector: Connector, generation: Generation) -> int:
    """How many chains are parked in it; none in one that is gone."""
    found = _status(connector, generation)
    return found.parked if found is not None else 0


def _status(connector: Connector, generation: Generation) -> status.GenerationStatus | None:
    wanted = (generation.name, generation.number)
    found = status.look_by(connector).generations
    return next((row for row in found if (row.name, row.generation) == wanted), None)
