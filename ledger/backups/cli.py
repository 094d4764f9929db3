"""The commands ``backup`` and ``restore``."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import FileSizeColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ledger.backups.backup import take_backup
from ledger.backups.restore import Restored, restore_backup
from ledger.database import Database
from ledger.options import DatabaseUrl, DataDir, Json, operator, settings_of

QUIET_SECONDS = 1.0


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    for command in (backup, restore):
        app.command()(command)


def backup(
    file: Annotated[
        Path, typer.Argument(help="The file to make.", metavar="FILE", show_default=False)
    ],
    log_only: Annotated[
        bool,
        typer.Option("--log-only", help="Without the read models, which can be built again."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file of that name.")
    ] = False,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Back the database up into one file, beside all that goes on.

    The file is the state of one moment; it appears when it is whole.
    """
    settings = settings_of(data_dir, database_url)
    database = Database(settings)
    try:
        with _progress("backing up", quiet=as_json) as tell:
            taken = take_backup(
                database,
                file,
                taken_by=operator(settings).actor,
                log_only=log_only,
                overwrite=overwrite,
                tell=tell,
            )
    finally:
        database.close()
    if as_json:
        print(orjson.dumps(taken).decode())
        return
    left_out = ", without read models" if log_only else ""
    print(
        f"backed up {taken.events:,} events up to position {taken.head_position:,}{left_out} "
        f"into {file}: {decimal(taken.bytes)} in {taken.seconds:.1f} s"
    )


def restore(
    file: Annotated[
        Path,
        typer.Argument(help="What `backup` has made.", metavar="FILE", show_default=False),
    ],
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Restore a backup into a new data directory or an empty database.

    All of it or nothing; a database that has a ledger is left alone.
    """
    database = Database(settings_of(data_dir, database_url))
    try:
        with _progress("restoring", quiet=as_json) as tell:
            restored = restore_backup(database, file, tell)
    finally:
        database.close()
    if as_json:
        print(orjson.dumps(restored).decode())
    else:
        _print_restored(restored)


def _print_restored(restored: Restored) -> None:
    print(
        f"restored {restored.events:,} events up to position {restored.head_position:,}, "
        f"as they were at {restored.taken_at}, in {restored.seconds:.1f} s"
    )
    for name in restored.migrations:
        print(f"applied {name}")
    what = "builds the read models" if restored.log_only else "brings the read models up to date"
    print(f"next: `thought-ledger projections run`, or a server, {what}")


@contextmanager
def _progress(words: str, *, quiet: bool) -> Generator[Callable[[int], None]]:
    """Tells a terminal how far it is, once it takes longer than a moment."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        FileSizeColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    task = progress.add_task(words, total=None)
    began = time.monotonic()

    def tell(done: int) -> None:
        if time.monotonic() - began > QUIET_SECONDS:
            progress.start()
            progress.update(task, completed=done)

    try:
        yield tell
    finally:
        progress.stop()
