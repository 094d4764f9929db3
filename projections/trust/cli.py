"""The command ``trust``: what a chain's score is, was, and rests on, by the log alone."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import typer
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.display import local_time, print_table, printing
from ledger.errors import LedgerError
from ledger.options import Chain, DatabaseUrl, DataDir, Json, opened, settings_of
from ledger.recalls import recalls_of
from ledger.serialization import Recorded, decode
from projections.cli_words import print_json
from projections.trust.explaining import ChainTrust, Evidence, ThoughtTrust, explain
from projections.trust.policy import shown

NOTHING = 3


class NothingBeforeError(LedgerError):
    """The log has nothing before the position that was asked for."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the log begins after position {position}; name a later one")


def _moment(value: str) -> datetime:
    try:
        # Without a zone it is the time of the clock on the wall here.
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{value!r} is no moment; write one like 2026-12-31T18:00 or 2026-12-31T18:00Z"
        ) from None


def trust(
    chain: Chain,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=_moment,
            metavar="TIME",
            help="As it was at a moment, ISO 8601.  Default: now.",
            show_default=False,
        ),
    ] = None,
    as_of: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="POSITION",
            help="As it was when the log had come to a position.",
            show_default=False,
        ),
    ] = None,
    thought: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Only this thought, with every event its score rests on.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Show how far a chain and its thoughts are to be trusted, and why.

    Folded from the log, every event verified; the read models are not asked.
    """
    if at is not None and as_of is not None:
        raise typer.BadParameter("--at and --as-of exclude each other")
    with (
        opened(settings_of(data_dir, database_url)) as database,
        database.connector(Role.AUDITOR).connect() as connection,
    ):
        found, wanted = _asked(connection, chain, at, as_of, thought)
    with printing():
        if as_json:
            _print_json(found, wanted)
        elif thought is None:
            _print_chain(found, wanted)
        else:
            _print_thought(wanted[0])
    if not found.thoughts:
        raise typer.Exit(NOTHING)


def _asked(
    connection: Connection[TupleRow],
    chain_id: UUID,
    at: datetime | None,
    as_of: int | None,
    number: int | None,
) -> tuple[ChainTrust, Sequence[ThoughtTrust]]:
    moment = at or datetime.now(UTC)
    if as_of is not None:
        moment = _moment_of(connection, as_of)
    chain: ThoughtChain | None = None
    events: list[Recorded] = []
    for recorded in log.history(connection, chain_id):
        if _is_there(recorded, at, as_of):
            chain = recorded.event.mutate(chain)
            events.append(recorded)
    events += (one for one in _recalls(connection, chain_id) if _is_there(one, at, as_of))
    found = explain(chain_id, events, moment)
    if number is None or chain is None:
        return found, found.thoughts
    thought = found.of(chain.find_thought(number))
    return found, [] if thought is None else [thought]


def _is_there(recorded: Recorded, at: datetime | None, as_of: int | None) -> bool:
    if as_of is not None:
        return recorded.position <= as_of
    return at is None or recorded.event.timestamp <= at


def _recalls(connection: Connection[TupleRow], chain_id: UUID) -> Iterator[Recorded]:
    after = 0
    for page in log.stream_pages(
        connection, recalls_of(chain_id), after_version=0, to_position=log.POSITION_MAX
    ):
        for row in page:
            recorded = decode(*row)
            log.check_next(recorded, after)
            after = recorded.header.version
            yield recorded


def _moment_of(connection: Connection[TupleRow], position: int) -> datetime:
    """When the last event up to a position was recorded, of whatever chain."""
    row = log.last_stored(connection, position)
    if row is None:
        raise NothingBeforeError(position)
    return decode(*row).header.recorded_at


def _print_json(found: ChainTrust, thoughts: Sequence[ThoughtTrust]) -> None:
    print_json(
        {
            "chain_id": found.chain_id,
            "at": found.at,
            "score": found.score and shown(found.score),
            "score_millionths": found.score,
            "level": found.level,
        }
    )
    for thought in thoughts:
        print_json(
            asdict(thought)
            | {"score": shown(thought.score), "score_millionths": thought.score}
            | {"evidence": [_facts(each) for each in thought.evidence]}
        )


def _facts(evidence: Evidence) -> dict[str, Any]:
    scores = {name: shown(getattr(evidence, name)) for name in ("delta", "before", "after")}
    return asdict(evidence) | scores


def _print_chain(found: ChainTrust, thoughts: Sequence[ThoughtTrust]) -> None:
    if not thoughts:
        print(f"chain {found.chain_id} had no thoughts then", file=sys.stderr)
        return
    score = "no score, for none of its thoughts counts"
    if found.score is not None:
        score = f"{_score(found.score)}, {found.level}"
    print(f"{found.chain_id}: {score}; at {local_time(found.at)}\n")
    print_table(
        ("thought", "score", "level", "recalls", "because"),
        [
            (
                str(thought.thought_number),
                _score(thought.score),
                str(thought.level) + ("" if thought.counts else ", not counted"),
                str(thought.recalls),
                ", ".join(_because(each) for each in thought.evidence),
            )
            for thought in thoughts
        ],
    )


def _print_thought(thought: ThoughtTrust) -> None:
    counted = "" if thought.counts else "; it does not count in the score of its chain"
    print(
        f"thought {thought.thought_number} ({thought.thought_id}): {_score(thought.score)}, "
        f"{thought.level}{counted}\n"
    )
    print_table(
        ("position", "recorded", "by", "event", "before", "delta", "after"),
        [
            (
                str(each.position),
                local_time(each.at),
                _who(each),
                f"{each.topic} ({each.signal})",
                _score(each.before),
                f"{each.delta / 1_000_000:+.2f}",
                _score(each.after),
            )
            for each in thought.evidence
        ],
    )


def _who(evidence: Evidence) -> str:
    """Who recorded it, and who judged if that was another."""
    if evidence.source in (None, evidence.actor):
        return evidence.actor
    return f"{evidence.actor} for {evidence.source}"


def _because(evidence: Evidence) -> str:
    return f"{evidence.delta / 1_000_000:+.2f} {evidence.signal} at {evidence.position}"


def _score(score: int) -> str:
    return f"{shown(score):.4f}"
