"""The operators' door: run a worker, what the other modules add; and the list of chains."""

import logging
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ledger.database import Database, Role
from ledger.display import local_time, print_table, printing
from ledger.logs import configure, teller
from ledger.options import DatabaseUrl, DataDir, Json, LogFormatOption, opened, settings_of
from ledger.settings import LogFormat
from projections import (
    cli_embed,
    cli_generations,
    cli_parked,
    cli_rebuild,
    cli_status,
    cli_vectors,
    queries,
)
from projections.catalogue import ALL
from projections.cli_doctor import doctor
from projections.cli_words import print_json, say
from projections.embeddings.launcher import Launcher, running
from projections.stopping import Stop, stop_process
from projections.tiers.cli import memory
from projections.trust.cli import trust
from projections.worker import CATCH_UP_SECONDS_MAX
from projections.workers import Workers, catch_up_all

app = typer.Typer(help="The read models: built from the log, disposable.", no_args_is_help=True)
cli_rebuild.register(app)
cli_generations.register(app)
cli_status.register(app)
cli_parked.register(app)
cli_embed.register(app)
cli_vectors.register(app)

# The read models share an interpreter, and one of them is waited for: it must not wait long for
# the others to let go.
SWITCH_SECONDS = 0.0005


def register(command_line: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    command_line.command()(chains)
    command_line.command()(trust)
    command_line.command()(memory)
    command_line.command()(doctor)
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
            say(f"{line}; `thought-ledger projections status` tells how far")
        with database.connector(Role.READER).connect() as connection:
            found = queries.chains(connection, every_status=show_all)
            others = not found and bool(queries.chains(connection, every_status=True))
    with printing():
        if as_json:
            for row in found:
                print_json(row)
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
    log_format: LogFormatOption = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Keep the read models up to date.

    In the foreground, until interrupted.
    """
    settings = settings_of(data_dir, database_url, log_format=log_format)
    configure(settings.log_format)
    sys.setswitchinterval(SWITCH_SECONDS)
    with Stop() as stop:
        stop_process(stop, until_eof=until_eof)
        with Database(settings) as database:
            say, note = teller("projections", logging.WARNING), teller("projections", logging.INFO)
            # Beside a server, stderr is what the client shows its user: only trouble goes there,
            # unless machines read it.
            if until_eof and settings.log_format is LogFormat.TEXT:
                note = _nothing
            connector = database.connector(Role.PROJECTOR)
            launcher = Launcher(connector, settings, stop, teller("embeddings", logging.WARNING))
            with running(launcher.run, stop):
                Workers(connector, ALL, stop, say, note).run()


def _print_chains(found: Sequence[queries.ChainLine]) -> None:
    print_table(
        ("chain", "status", "thoughts", "updated", "title"),
        [
            (
                str(row.id),
                row.status,
                str(row.thoughts),
                local_time(row.updated_at),
                row.title or "(untitled)",
            )
            for row in found
        ],
    )


def _nothing(_: str) -> None: ...
