"""The operators' commands for what is parked: parked, show, retry, skip."""

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated
from uuid import UUID

import typer

from ledger.database import Role
from ledger.display import local_time, print_table, printable, printing
from ledger.limits import recordable
from ledger.options import Chain, DatabaseUrl, DataDir, Json, opened, operator, settings_of
from projections import retrying
from projections.catalogue import projection_of
from projections.cli_generations import Name
from projections.cli_words import print_json
from projections.parked import (
    WAITING_LISTED_MAX,
    Parked,
    ParkedChain,
    Skipped,
    parked_chain,
    parked_chains,
    skipped_events,
)
from projections.text import shown
from projections.unparking import Retried

PARKED_AGAIN = 3


def register(app: typer.Typer) -> None:
    """Add this module's commands to those of the read models."""
    for command in (parked, show, retry, skip):
        app.command()(command)


def parked(
    name: Annotated[
        str | None,
        typer.Argument(help="Only of this read model.", metavar="NAME", show_default=False),
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """List the chains of which an event cannot be applied, and what was skipped."""
    if name is not None:
        projection_of(name)
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.READER).connect() as connection,
    ):
        found = parked_chains(connection, name)
        left_out = skipped_events(connection, name)
    with printing():
        if as_json:
            for row in [*found, *left_out]:
                print_json(row)
            return
        if found:
            _print_parked(found)
        else:
            print("nothing is parked", file=sys.stderr)
        if left_out:
            _print_skipped(left_out)


def show(
    name: Name,
    chain: Chain,
    generation: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Which generation, when several have parked it.  Default: the live one, "
            "else the latest.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show a parked chain: the whole error, the event, what waits behind it, and what to do."""
    projection_of(name)
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.READER).connect() as connection,
    ):
        found = parked_chain(connection, name, chain, generation)
    with printing():
        if as_json:
            print_json(found)
        else:
            _print_chain(found)


def retry(
    name: Name,
    chain: Annotated[
        str | None,
        typer.Argument(help="The chain's id, a UUID.", metavar="CHAIN", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All its parked chains.")] = False,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Apply a parked chain from its parked event on, while workers go on.

    Ends with 3 when it, or a later event of the chain, cannot be applied still.
    """
    projection = projection_of(name)
    chain_id = _one_or_all(chain, every=every)
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.PROJECTOR).connect() as connection,
    ):
        retried: Iterable[Retried] = (
            retrying.retry_all(connection, projection)
            if chain_id is None
            else retrying.retry(connection, projection, chain_id)
        )
        _tell(retried, as_json=as_json)


def skip(
    name: Name,
    chain: Chain,
    reason: Annotated[
        str, typer.Option(help="Why; kept with what was skipped.", show_default=False)
    ],
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Leave out the event a chain is parked at, for good, and apply what comes after it.

    In this version of the read model; the next one tries the event again.  Ends with 3 when a
    later event of the chain cannot be applied.
    """
    projection = projection_of(name)
    why = shown(recordable(reason)).strip()
    if not why:
        raise typer.BadParameter("it is empty; say why", param_hint="--reason")
    settings = settings_of(data_dir, database_url)
    with (
        opened(settings) as database,
        database.connector(Role.PROJECTOR).connect() as connection,
    ):
        who = shown(operator(settings).actor)
        retried = retrying.skip(connection, projection, chain, reason=why, skipped_by=who)
        _tell(retried, as_json=as_json)


def _one_or_all(chain: str | None, *, every: bool) -> UUID | None:
    if every == (chain is not None):
        raise typer.BadParameter("name a CHAIN, or say --all for every one that is parked")
    if chain is None:
        return None
    try:
        return UUID(chain)
    except ValueError:
        raise typer.BadParameter(
            f"{chain!r} is not the id of a chain; `thought-ledger projections parked` lists those "
            "that are parked"
        ) from None


def _tell(retried: Iterable[Retried], *, as_json: bool) -> None:
    """Print what came of each chain as it comes; exits 3 when one is parked still."""
    count = again = 0
    with printing():
        for each in retried:
            count += 1
            again += each.parked is not None
            if as_json:
                print_json(each)
            else:
                print(_sentence(each))
        if not count:
            print("nothing is parked", file=sys.stderr)
    if again:
        raise typer.Exit(PARKED_AGAIN)


def _sentence(retried: Retried) -> str:
    where = f"{retried.name} generation {retried.generation}"
    applied = f"{retried.applied:,} event{'' if retried.applied == 1 else 's'} applied"
    if retried.parked is None:
        return f"{retried.chain_id}: {applied} to {where}"
    row = retried.parked
    return (
        f"{retried.chain_id}: {applied} to {where}, then parked at position {row.position}, "
        f"version {row.version} ({printable(row.topic)}): {_line(row.error)}"
    )


def _print_parked(found: Sequence[Parked]) -> None:
    titles = ("name", "generation", "state", "chain", "parked since", "position", "version")
    print_table(
        (*titles, "topic", "waiting", "error"),
        [
            (
                row.name,
                str(row.generation),
                row.state,
                str(row.chain_id),
                local_time(row.parked_at),
                str(row.position),
                str(row.version),
                row.topic,
                str(row.waiting),
                _line(row.error),
            )
            for row in found
        ],
    )


def _print_skipped(left_out: Sequence[Skipped]) -> None:
    titles = ("skipped in", "by version", "chain", "skipped at", "position", "version", "topic")
    print_table(
        (*titles, "by", "reason"),
        [
            (
                row.name,
                str(row.projection_version),
                str(row.chain_id),
                local_time(row.skipped_at),
                str(row.position),
                str(row.version),
                row.topic,
                row.skipped_by,
                row.reason,
            )
            for row in left_out
        ],
    )


def _print_chain(found: ParkedChain) -> None:
    row, event = found.parked, found.event
    others = ", ".join(map(str, found.other_generations))
    who = event.actor and f"{event.actor} with {event.client}" if event.client else event.actor
    lines = [
        ("chain", str(row.chain_id)),
        ("parked in", f"{row.name} generation {row.generation} ({row.state})"),
        ("also in generations", others),
        ("since", local_time(row.parked_at)),
        ("event", f"position {row.position}, version {row.version}, {row.topic}"),
        ("recorded at", event.recorded_at and local_time(event.recorded_at)),
        ("recorded by", who),
        ("event id", event.event_id and str(event.event_id)),
        ("what", event.what),
        ("text", event.text),
        ("cannot be read", event.unreadable),
        ("error", row.error),
        ("waiting", _waiting(found)),
    ]
    for title, text in lines:
        if text:
            indented = printable(text).replace("\n", "\n" + " " * 21)
            print(f"{title:<19}  {indented}")
    command = f"thought-ledger projections {{}} {row.name} {row.chain_id}"
    print(
        "\nMend the projection, or add an upcaster, and install that version everywhere; then\n"
        f"  {command.format('retry')}\n"
        "Or leave this event out of this read model, until its next version:\n"
        f"  {command.format('skip')} --reason WHY"
    )


def _waiting(found: ParkedChain) -> str:
    count = found.parked.waiting
    if count == 0:
        return "nothing behind it"
    more = f" and {count - WAITING_LISTED_MAX:,} more" if count > WAITING_LISTED_MAX else ""
    positions = ", ".join(map(str, found.waiting_positions))
    return f"{count:,} behind it, at positions {positions}{more}"


def _line(text: str) -> str:
    return " ".join(printable(text).split())
