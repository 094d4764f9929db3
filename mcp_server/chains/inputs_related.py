"""The arguments of ``get_related_chains``, as lenient as those of the other tools for chains."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ledger.aggregate import Status
from mcp_server.chains.values import list_of_text, to_choice
from mcp_server.inputs import (
    Arguments,
    InputError,
    describe,
    to_identifier,
    to_integer,
    to_thought,
)
from projections.recall.filters import RESULTS_MAX, RecallFilter

RELATED_CHAINS_DEFAULT = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedInput:
    """One call of ``get_related_chains``."""

    query: str
    wanted: RecallFilter
    request_id: None = None


def parse_related(arguments: Mapping[str, object]) -> RelatedInput:
    """Read the arguments of ``get_related_chains``.  Raises InputError."""
    given = Arguments(arguments)
    query = given.require("query", to_query, placeholder="")
    include = given.allow("include", to_statuses) or ()
    wanted = RecallFilter(
        statuses=(Status.ACTIVE, Status.COMPLETED, *include),
        session_id=given.allow("session_id", to_identifier),
        agent=given.allow("agent", to_identifier),
        limit=min(given.allow("limit", to_integer) or RELATED_CHAINS_DEFAULT, RESULTS_MAX),
    )
    given.refuse_problems()
    return RelatedInput(query=query, wanted=wanted)


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
