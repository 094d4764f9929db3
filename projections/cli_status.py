"""The operators' command that shows how far the read models are."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from psycopg import Connection
from psycopg.rows import TupleRow
from rich.console import Console

from ledger.database import Role
from ledger.display import print_table, printing
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections.cli_words import print_json, thousands
from projections.status import GenerationStatus, look, with_rates

# Between the two looks that tell how fast those behind come on.
RATE_SECONDS = 0.5

TITLES = ("name", "generation", "state", "version", "position", "head", "lag", "seconds", "rate")


def register(app: typer.Typer) -> None:
    """Add this module's command to ``thought-ledger projections``."""
    app.command()(status)


def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until interrupted.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How often, with --watch.")
    ] = 1.0,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show how far the read models are behind the log, how fast they come on, and who leads.

    The time to go is at the speed of the last moment; none is known of one that does not move.
    """
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.READER).connect() as connection,
        printing(),
    ):
        if watch:
            for found in _watch(connection, every):
                _show(found, as_json=as_json, clear=sys.stdout.isatty())
        else:
            _show(_once(connection), as_json=as_json)


def _once(connection: Connection[TupleRow]) -> list[GenerationStatus]:
    first = look(connection)
    if not any(row.lag_events for row in first.generations):
        return with_rates(first, first)
    time.sleep(RATE_SECONDS)
    return with_rates(first, look(connection))


def _watch(connection: Connection[TupleRow], seconds: float) -> Iterator[list[GenerationStatus]]:
    before = look(connection)
    yield with_rates(before, before)
    while True:
        time.sleep(seconds)
        after = look(connection)
        yield with_rates(before, after)
        before = after


def _show(found: Sequence[GenerationStatus], *, as_json: bool, clear: bool = False) -> None:
    if as_json:
        for row in found:
            print_json(row)
        return
    if clear:
        Console().clear()
    if found:
        print_table((*TITLES, "to go", "parked", "leader"), [_line(row) for row in found])
        sys.stdout.flush()
        return
    print(
        "no read model has been built; a worker does it "
        "(`thought-ledger serve` or `thought-ledger projections run`)",
        file=sys.stderr,
    )


def _line(row: GenerationStatus) -> tuple[str, ...]:
    return (
        row.name,
        str(row.generation),
        row.state,
        str(row.projection_version),
        thousands(row.position),
        thousands(row.head),
        thousands(row.lag_events),
        f"{row.lag_seconds:.1f}",
        f"{thousands(round(row.rate or 0))}/s",
        _duration(row.eta_seconds),
        str(row.parked),
        row.leader or ("none" if row.leader_pid is None else f"session {row.leader_pid}"),
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
