"""The arguments of the two searches, as lenient as those of other tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import cast

from ledger.chain_state import Status
from ledger.confidence import MILLION
from mcp_server.chains.values import list_of_text, to_choice, to_millionths
from mcp_server.inputs import (
    Arguments,
    InputError,
    describe,
    to_boolean,
    to_identifier,
    to_integer,
    to_thought,
)
from projections.recall.filters import RESULTS_MAX, RecallFilter
from projections.recall.ranking import Strategy

RESULTS_DEFAULT = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallInput:
    """One call: what is looked for, among what, how, and as of which position at least."""

    query: str
    wanted: RecallFilter
    strategy: Strategy = Strategy.HYBRID
    at_least: int = 0
    explain: bool = False
    warnings: tuple[str, ...] = ()
    request_id: None = None


def parse_recall(arguments: Mapping[str, object]) -> RecallInput:
    """Read the arguments of a search.  Raises InputError."""
    given = Arguments(arguments)
    query = given.require("query", to_query, placeholder="")
    include = given.allow("include", to_statuses) or ()
    trust_min = given.allow("min_trust", to_millionths)
    strategy = given.allow("strategy", partial(to_choice, choices=[*map(str, Strategy)]))
    wanted = RecallFilter(
        statuses=(Status.ACTIVE, Status.COMPLETED, *include),
        session_id=given.allow("session_id", to_identifier),
        agent=given.allow("agent", to_identifier),
        since=given.allow("since", to_moment),
        until=given.allow("until", to_moment),
        trust_min=None if trust_min is None else trust_min / MILLION,
        limit=min(given.allow("limit", to_integer) or RESULTS_DEFAULT, RESULTS_MAX),
    )
    said = RecallInput(
        query=query,
        wanted=wanted,
        strategy=Strategy(strategy or Strategy.HYBRID),
        at_least=given.allow("at_least", to_integer) or 0,
        explain=given.allow("explain", to_boolean) or False,
        warnings=tuple(given.unread()),
    )
    given.refuse_problems()
    return said


def to_query(field: str, value: object) -> str:
    """A text to search for; as long as a thought, for it may be one."""
    query = to_thought(field, value)
    if not query.strip():
        raise InputError((field, "must not be empty; give words, a name, or the text of a thought"))
    return query


def to_statuses(field: str, value: object) -> tuple[Status, ...]:
    """Statuses to search besides active and completed; one alone, or a list written as JSON, too.

    Those that are always searched may be named as well.
    """
    if isinstance(value, str):
        value = list_of_text(value) if value.lstrip().startswith("[") else value.split(",")
    if not isinstance(value, list):
        raise InputError((field, f"must be a list of statuses, got {describe(value)}"))
    statuses = cast("list[object]", value)
    return tuple(
        Status(to_choice(field, status, choices=[*map(str, Status)])) for status in statuses
    )


def to_moment(field: str, value: object) -> datetime:
    """A day or a moment in ISO 8601; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise InputError(
            (field, f"must be a day or a moment like 2026-05-01T12:00Z, got {describe(value)}")
        )
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
