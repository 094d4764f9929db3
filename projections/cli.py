"""The operators' door: run a worker, see how far the read models are; and the list of chains."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Annotated

import orjson
import typer

from ledger.database import Database, Role
from ledger.display import print_table, printable, printing
from ledger.options import DatabaseUrl, DataDir, Json, opened, settings_of
from projections import cli_parked, queries
from projections.catalogue import ALL
from projections.stopping import Stop, stop_process
from projections.workers import Workers, catch_up_all

CATCH_UP_SECONDS_MAX = 30.0

app = typer.Typer(help="The read models: built from the log, disposable.", no_args_is_help=True)
cli_parked.register(app)


def register(command_line: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    command_line.command()(chains)
    command_line.add_typer(app, name="projections")


def chains(
    show_all: Annotated[
        bool, typer.Option("--all", help="Completed and abandoned chains as well.")
    ] = False,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the chains, the latest moved first.

    Only those that can be gone on with, active or paused, unless all are asked for.
    """
    with opened(settings_of(data_dir, database_url)) as database:
        connector = database.connector(Role.PROJECTOR)
        for line in catch_up_all(connector, ALL, CATCH_UP_SECONDS_MAX):
            _say(f"{line}; `thought-ledger projections status` tells how far")
        with database.connector(Role.READER).connect() as connection:
            found = queries.chains(connection, every_status=show_all)
            others = not found and bool(queries.chains(connection, every_status=True))
    with printing():
        if as_json:
            _print_json(found)
        elif found:
            _print_chains(found)
        elif others:
            print("no active or paused chains; --all lists the others", file=sys.stderr)
        else:
            print("no chains yet; `thought-ledger serve` records them", file=sys.stderr)


@app.command()
def run(
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="End with standard input.", hidden=True)
    ] = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Keep the read models up to date.

    In the foreground, until interrupted.
    """
    settings = settings_of(data_dir, database_url)
    with Stop() as stop:
        stop_process(stop, until_eof=until_eof)
        with Database(settings) as database:
            # Beside a server, stderr is what the client shows its user: only trouble goes there.
            note = _nothing if until_eof else _say
            Workers(database.connector(Role.PROJECTOR), ALL, stop, _say, note).run()


@app.command()
def status(
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show how far the read models are behind."""
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.READER).connect() as connection,
    ):
        found = queries.status(connection)
    with printing():
        if as_json:
            _print_json(found)
        elif found:
            _print_status(found)
        else:
            print(
                "no read model has been built; a worker does it "
                "(`thought-ledger serve` or `thought-ledger projections run`)",
                file=sys.stderr,
            )


def _print_chains(found: Sequence[queries.ChainLine]) -> None:
    print_table(
        ("chain", "status", "thoughts", "updated", "title"),
        [
            (
                str(row.id),
                row.status,
                str(row.thoughts),
                row.updated_at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
                row.title or "(untitled)",
            )
            for row in found
        ],
    )


def _print_status(found: Sequence[queries.GenerationStatus]) -> None:
    titles = ("name", "generation", "state", "position", "head", "lag", "seconds", "parked")
    print_table(
        (*titles, "leader session"),
        [
            (
                row.name,
                str(row.generation),
                row.state,
                str(row.position),
                str(row.head),
                str(row.lag_events),
                f"{row.lag_seconds:.1f}",
                str(row.parked),
                "none" if row.leader_pid is None else str(row.leader_pid),
            )
            for row in found
        ],
    )


def _nothing(_: str) -> None: ...


def _say(line: str) -> None:
    # Whoever started the worker may have closed our stderr; that is no reason to stop.
    with suppress(OSError):
        # In one piece: there is a thread for each read model.
        print(f"projections: {printable(line)}\n", end="", file=sys.stderr, flush=True)


def _print_json(rows: Iterable[object]) -> None:
    for row in rows:
        sys.stdout.buffer.write(orjson.dumps(row) + b"\n")
    sys.stdout.buffer.flush()
