"""What every command of the command line takes, and how it gets at the database."""

import getpass
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from ledger.database import Database
from ledger.embedded import default_data_dir
from ledger.header import Context
from ledger.limits import recordable_name
from ledger.settings import (
    DATA_DIR_VARIABLE,
    DATABASE_URL_VARIABLE,
    LOG_FORMAT_VARIABLE,
    LogFormat,
    Settings,
)


def _data_dir(value: str) -> Path:
    if not value:
        raise typer.BadParameter("it is empty; name a directory, or leave the option out")
    return Path(value)


def _chain_id(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise typer.BadParameter(
            f"{value!r} is not the id of a chain; `thought-ledger chains --all` lists the ids"
        ) from None


Chain = Annotated[
    UUID,
    typer.Argument(
        help="The chain's id, a UUID.", metavar="CHAIN", show_default=False, parser=_chain_id
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        parser=_data_dir,
        metavar="DIRECTORY",
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
LogFormatOption = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        help="How what is said on stderr is written: lines, or JSON, one object a line.  "
        f"Default: ${LOG_FORMAT_VARIABLE}, else text.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def settings_of(
    data_dir: Path | None,
    database_url: str | None,
    actor: str | None = None,
    log_format: LogFormat | None = None,
) -> Settings:
    """The settings of one run of the command."""
    return Settings.from_environment(
        os.environ,
        data_dir=data_dir,
        database_url=database_url,
        actor=actor,
        log_format=log_format,
    )


def operator(settings: Settings) -> Context:
    """Who records when a command of the command line does."""
    return Context(actor=settings.actor or recordable_name(_user()), client="thought-ledger")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


@contextmanager
def opened(settings: Settings) -> Generator[Database]:
    """The database of a command; a new one is announced, for its place may be a slip of the pen."""
    with Database(settings) as database:
        if database.is_new:
            where = settings.data_dir or default_data_dir()
            place = "the given database" if settings.database_url else str(where)
            print(f"thought-ledger: made a new ledger in {place}", file=sys.stderr)
        yield database
