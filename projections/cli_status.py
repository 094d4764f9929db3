"""The operators' command that shows how far the read models are."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import psycopg
import typer
from psycopg import Connection
from psycopg.rows import TupleRow
from rich.console import Console

from ledger.database import Connector, DatabaseUnavailableError, Role
from ledger.display import local_time, print_table, printable, printing
from ledger.errors import reason_of
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections.cli_words import print_json, say
from projections.embeddings.status import NOT_BEGUN, sentence
from projections.status import GenerationStatus, Look, look, with_rates

# Between the two looks that tell how fast those behind come on.
RATE_SECONDS = 0.5
EVERY_SECONDS_MIN = 0.1
EVERY_SECONDS_MAX = 86_400.0
RECONNECT_SECONDS = 0.5

# Where a terminal is too narrow the last are cut off.
TITLES = ("name", "gen", "state", "version", "lag", "seconds", "rate", "to go", "parked", "leader")


def register(app: typer.Typer) -> None:
    """Add this module's command to ``thought-ledger projections``."""
    app.command()(status)


def _seconds(seconds: float) -> float:
    # No limit refuses it: it is neither below nor above any.
    if math.isnan(seconds):
        raise typer.BadParameter("nan is no number of seconds.")
    return seconds


def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again and again, until interrupted.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            min=EVERY_SECONDS_MIN,
            max=EVERY_SECONDS_MAX,
            callback=_seconds,
            metavar="SECONDS",
            help="How often, with --watch.",
        ),
    ] = 1.0,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show how far the read models are behind the log, how fast they come on, and who leads.

    Rate and time to go are those of the last moment: of half a second for what is behind, and with
    --watch of the time since the last look.
    """
    with opened(settings_of(data_dir, database_url)) as database, printing():
        connector = database.connector(Role.READER)
        if watch:
            for found in _watch(connector, every):
                _show(found, as_json=as_json, again=True)
            return
        with connector.connect() as connection:
            _show(_once(connection), as_json=as_json)


def _once(connection: Connection[TupleRow]) -> Look:
    first = look(connection)
    if not any(row.lag_events for row in first.generations):
        return first
    time.sleep(RATE_SECONDS)
    return _rated(first, look(connection))


def _rated(before: Look, after: Look) -> Look:
    return replace(after, generations=with_rates(before, after))


def _watch(connector: Connector, seconds: float) -> Iterator[Look]:
    before = None
    for after in _looks(connector, seconds):
        yield _rated(before or after, after)
        before = after


def _looks(connector: Connector, seconds: float) -> Iterator[Look]:
    """Look again and again, whatever becomes of the session or of the database meanwhile."""
    connection = connector.connect()
    while True:
        with closing(connection):
            try:
                while True:
                    yield look(connection)
                    time.sleep(seconds)
            except psycopg.OperationalError as error:
                # What ends a statement and not its session is none of that.
                if not connection.broken:
                    raise
                say(f"the database ended the session ({reason_of(error)}); connecting again")
        connection = _connect_again(connector)


def _connect_again(connector: Connector) -> Connection[TupleRow]:
    while True:
        time.sleep(RECONNECT_SECONDS)
        with suppress(DatabaseUnavailableError):
            connector.revive()
            return connector.connect()


def _show(found: Look, *, as_json: bool, again: bool = False) -> None:
    if as_json:
        for row in found.generations:
            print_json(row)
        if found.embeddings.state != NOT_BEGUN:
            print_json(found.embeddings)
        return
    if again and sys.stdout.isatty():
        Console().clear()
    elif again:
        print(f"\n{local_time(datetime.now().astimezone())}")
    if found.generations:
        print_table((*TITLES, "position", "head"), [_line(row) for row in found.generations])
        print(f"embeddings: {printable(sentence(found.embeddings))}", flush=True)
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
        "beyond" if row.position > row.head else f"{row.lag_events:,}",
        f"{row.lag_seconds:.1f}",
        "-" if row.rate is None else f"{round(row.rate):,}/s",
        _duration(row.eta_seconds),
        str(row.parked),
        row.leader or ("none" if row.leader_pid is None else f"session {row.leader_pid}"),
        f"{row.position:,}",
        f"{row.head:,}",
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
