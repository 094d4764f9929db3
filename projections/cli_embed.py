"""The embedding process, as the worker starts it, and as an operator may."""

import logging
import os
from contextlib import suppress
from typing import Annotated

import typer

from ledger.database import Database, Role
from ledger.logs import configure, teller
from ledger.options import DatabaseUrl, DataDir, LogFormatOption, settings_of
from ledger.settings import LogFormat
from projections.embeddings.choice import chosen
from projections.embeddings.embedder import IDLE_SECONDS_MAX, Embedder
from projections.embeddings.loading import load
from projections.stopping import Stop, stop_process

# It takes what nobody else needs of the machine.
NICE = 19
NO = 3


def register(app: typer.Typer) -> None:
    """Add this module's command to ``thought-ledger projections``."""
    app.command()(embed)


def embed(
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="End with standard input.", hidden=True)
    ] = False,
    idle: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="SECONDS", help="End when there was nothing to embed for so long."
        ),
    ] = IDLE_SECONDS_MAX,
    log_format: LogFormatOption = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Embed the thoughts that have no vectors yet, and what is asked.

    A worker starts it when it is needed; by hand it does the same, in the foreground.  It ends at
    once when another process embeds.  Exits 3 when the model keeps it from embedding.
    """
    settings = settings_of(data_dir, database_url, log_format=log_format)
    configure(settings.log_format)
    with suppress(OSError):
        os.nice(NICE)
    say, note = teller("embeddings", logging.WARNING), teller("embeddings", logging.INFO)
    if until_eof and settings.log_format is LogFormat.TEXT:
        note = _nothing
    with Stop() as stop:
        stop_process(stop, until_eof=until_eof)
        with Database(settings) as database:
            connector = database.connector(Role.PROJECTOR)
            embedder = Embedder(
                connector, chosen(settings), load, stop, say=say, note=note, idle_seconds_max=idle
            )
            well = embedder.run()
    if not well:
        raise typer.Exit(NO)


def _nothing(_: str) -> None: ...
