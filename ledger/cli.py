"""The auditors' door, and what changes a chain by hand: replay, pause, import and so on."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar
from uuid import UUID

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ledger import audit, log
from ledger.application import Ledger
from ledger.commands import Receipt
from ledger.database import Database, Role
from ledger.display import local_time, printable, printing
from ledger.events import Judgement, Scope
from ledger.imports import Imported, check_traces, import_traces
from ledger.judging import Feedback, judge
from ledger.limits import recordable
from ledger.options import Chain, DatabaseUrl, DataDir, Json, opened, operator, settings_of
from ledger.serialization import Recorded

Reason = Annotated[str | None, typer.Option(help="Why; kept with the event.", show_default=False)]
_T = TypeVar("_T")


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    for command in (replay, pause, resume, complete, abandon, feedback, migrate):
        app.command()(command)
    app.command("import")(import_file)


def replay(
    chain: Chain,
    at: Annotated[
        int | None, typer.Option(min=1, help="Only up to this version.", show_default=False)
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print the events of a chain: who, when, what.

    Every event is verified against its commitment before it is shown.
    """
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.AUDITOR).connect() as connection,
    ):
        history = log.history(connection, chain, to_version=at or log.VERSION_MAX)
        with printing():
            if as_json:
                _print_json(history)
            else:
                _print_story(history)


def pause(
    chain: Chain,
    reason: Reason = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let a chain rest until it is resumed."""
    _move(chain, Ledger.pause, reason, data_dir, database_url)


def resume(
    chain: Chain,
    reason: Reason = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Let a chain take thoughts again."""
    _move(chain, Ledger.resume, reason, data_dir, database_url)


def complete(
    chain: Chain,
    reason: Reason = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Mark a chain as come to its end."""
    _move(chain, Ledger.complete, reason, data_dir, database_url)


def abandon(
    chain: Chain,
    reason: Reason = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Give a chain up; it is kept for ever."""
    _move(chain, Ledger.abandon, reason, data_dir, database_url)


def feedback(
    chain: Chain,
    confirmed: Annotated[
        bool,
        typer.Option("--confirmed/--corrected", help="Whether it was right.", show_default=False),
    ],
    thought: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="The thought it is about.  Default: the last one, or when corrected the chain's "
            "conclusion.",
            show_default=False,
        ),
    ] = None,
    whole_chain: Annotated[
        bool, typer.Option("--whole-chain", help="Confirm every thought, once for each source.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="Who judged.  Default: you.", show_default=False)
    ] = None,
    note: Annotated[
        str | None, typer.Option(help="What was right or wrong.", show_default=False)
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Say whether a chain's outcome was right, whatever its status.

    What that does to its score, `trust` shows.
    """
    settings = settings_of(data_dir, database_url)
    said = Feedback(
        judgement=Judgement.CONFIRMED if confirmed else Judgement.CORRECTED,
        reference=thought,
        scope=Scope.CHAIN if whole_chain else None,
        source=source and recordable(source),
        note=note and recordable(note),
    )

    async def run(ledger: Ledger) -> Receipt:
        return await judge(ledger, operator(settings), chain, said)

    with opened(settings) as database:
        receipt = asyncio.run(_with_ledger(database, run))
    if as_json:
        facts = {"chain_id": chain, "signal": said.judgement, "position": receipt.position}
        print(orjson.dumps(facts).decode())
    else:
        word = "confirmed" if confirmed else "corrected"
        print(f"{chain}: {word}; `thought-ledger trust {chain}` shows what that does")


def import_file(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, plain or .gz.", metavar="FILE", show_default=False)
    ],
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Record the reasoning traces of a file.

    The whole file is checked first; a file with a mistake in it records nothing.  Repeated, it
    goes on where it stopped.
    """
    settings = settings_of(data_dir, database_url)
    count = check_traces(file)

    async def run(ledger: Ledger) -> Imported:
        with _progress(quiet=as_json) as progress:
            task = progress.add_task("importing", total=count)
            return await import_traces(
                ledger,
                operator(settings),
                file,
                lambda done: progress.update(task, completed=done),
            )

    with opened(settings) as database:
        imported = asyncio.run(_with_ledger(database, run))
    if as_json:
        print(orjson.dumps(imported).decode())
    else:
        print(
            f"{_counted(imported.chains, 'chain')}, "
            f"{_counted(imported.operations, 'operation')}: "
            f"{imported.added:,} added, {imported.operations - imported.added:,} there already"
        )


def migrate(
    as_json: Json = False, data_dir: DataDir = None, database_url: DatabaseUrl = None
) -> None:
    """Create or upgrade the log's tables.

    The other commands do it too, if they may.
    """
    database = Database(settings_of(data_dir, database_url))
    try:
        applied = database.open()
    finally:
        database.close()
    if as_json:
        print(orjson.dumps({"applied": applied}).decode())
    else:
        print("\n".join(f"applied {name}" for name in applied) or "up to date")


def _move(
    chain: UUID,
    command: Callable[..., Awaitable[Receipt]],
    reason: str | None,
    data_dir: Path | None,
    database_url: str | None,
) -> None:
    settings = settings_of(data_dir, database_url)

    async def run(ledger: Ledger) -> Receipt:
        return await command(ledger, operator(settings), chain, reason and recordable(reason))

    with opened(settings) as database:
        receipt = asyncio.run(_with_ledger(database, run))
    answer = receipt.answer
    print(f"{chain}: {answer['previous_status']} -> {answer['new_status']}")


async def _with_ledger(database: Database, run: Callable[[Ledger], Awaitable[_T]]) -> _T:
    async with Ledger(database) as ledger:
        return await run(ledger)


def _progress(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )


def _print_json(history: Iterator[Recorded]) -> None:
    for recorded in history:
        sys.stdout.buffer.write(orjson.dumps(audit.facts(recorded)) + b"\n")
    sys.stdout.buffer.flush()


def _print_story(history: Iterator[Recorded]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for recorded in history:
        moment = local_time(recorded.header.recorded_at)
        head = f"{recorded.header.version:>4}  {moment}  {recorded.header.actor}  "
        line = Text(printable(head), style="dim")
        console.print(line.append(printable(audit.sentence(recorded)), style="not dim bold"))
        for text_line in (audit.text_of(recorded) or "").splitlines():
            console.print(Text(f"      {printable(text_line)}"))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
