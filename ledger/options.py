"""What every command of the command line takes, and how it gets at the database."""

import getpass
import os
from pathlib import Path
from typing import Annotated

import typer

from ledger.header import Context
from ledger.limits import recordable_name
from ledger.settings import DATA_DIR_VARIABLE, DATABASE_URL_VARIABLE, Settings

DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Directory of the embedded PostgreSQL.  "
        f"Default: ${DATA_DIR_VARIABLE}, else the platform's place for user data.",
        show_default=False,
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        help="A PostgreSQL to use instead of the embedded one.  "
        f"Default: ${DATABASE_URL_VARIABLE}.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def settings_of(
    data_dir: Path | None, database_url: str | None, actor: str | None = None
) -> Settings:
    """The settings of one run of the command."""
    return Settings.from_environment(
        os.environ, data_dir=data_dir, database_url=database_url, actor=actor
    )


def operator(settings: Settings) -> Context:
    """Who records when a command of the command line does."""
    return Context(actor=settings.actor or recordable_name(_user()), client="thought-ledger")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
