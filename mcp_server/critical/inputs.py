"""What one call of ``criticalthinking`` says, checked in the order of its contract."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ledger.confidence import MILLION
from ledger.limits import check_id, recordable
from ledger.thought import Thought
from mcp_server.critical.strict import check_shape
from mcp_server.inputs import INTEGER_MAX, InputError, ThoughtInput, describe, thought_of

REQUIRED = (
    "thought",
    "thoughtNumber",
    "totalThoughts",
    "nextThoughtNeeded",
    "confidence",
    "assumptions",
    "critique",
    "counterArgument",
)
HINT = (
    f"Every call requires: {', '.join(REQUIRED)} — plus nextStepRationale "
    "whenever nextThoughtNeeded=true."
)


@dataclass(frozen=True, slots=True)
class CriticalInput:
    """One call, as it is to be recorded.

    ``marked_revision``: it names a thought and says that it revises it.  One that only names a
    thought is recorded as a revision as well, but not told as one.
    """

    said: ThoughtInput
    thought: Thought
    episode: str | None
    marked_revision: bool

    @property
    def request_id(self) -> str | None:
        return self.said.request_id


def parse_criticalthinking(arguments: Mapping[str, Any]) -> CriticalInput:
    """Read a call's arguments.

    Raises InputError for the first thing that is wrong, LimitExceededError for what is too long.
    """
    check_shape(arguments, REQUIRED)
    _check_values(arguments)
    said = _said(arguments)
    thought = replace(
        thought_of(said),
        confidence_millionths=round(arguments["confidence"] * MILLION),
        assumptions=tuple(map(recordable, arguments["assumptions"])),
        critique=recordable(arguments["critique"]),
        counter_argument=recordable(arguments["counterArgument"]),
        next_step_rationale=recordable(arguments.get("nextStepRationale", "")) or None,
    )
    thought.check_limits()
    episode = _identifier(arguments, "episodeId")
    check_id("the episode id", episode)
    check_id("the request id", said.request_id)
    marked = arguments.get("isRevision") is True and said.revises_thought is not None
    return CriticalInput(said, thought, episode, marked)


def _check_values(given: Mapping[str, Any]) -> None:
    _require_text(given, "thought")
    for field in ("thoughtNumber", "totalThoughts"):
        _require_number(given, field, quote=False)
    if given["nextThoughtNeeded"] is None:
        raise InputError(("nextThoughtNeeded", "must be present (true or false)"))
    if not 0 <= given["confidence"] <= 1:
        problem = f"must be between 0.0 and 1.0 (got {describe(given['confidence'])})"
        raise InputError(("confidence", problem))
    if given["assumptions"] is None:
        raise InputError(("assumptions", "must be present (use [] if none)"))
    _require_text(given, "critique")
    _require_text(given, "counterArgument")
    if given["nextThoughtNeeded"] and not given.get("nextStepRationale"):
        raise InputError(("nextStepRationale", "required when nextThoughtNeeded is true"))
    if (given.get("branchFromThought") is None) != (not given.get("branchId")):
        raise InputError(("branchFromThought", "and branchId must both be present or both omitted"))
    for field in ("branchFromThought", "revisesThought"):
        if given.get(field) is not None:
            _require_number(given, field, quote=True)


def _require_text(given: Mapping[str, Any], field: str) -> None:
    if not given[field]:
        raise InputError((field, "must be a non-empty string"))


def _require_number(given: Mapping[str, Any], field: str, *, quote: bool) -> None:
    if given[field] < 1:
        got = f" (got {describe(given[field])})" if quote else ""
        raise InputError((field, f"must be ≥ 1{got}"))
    if given[field] > INTEGER_MAX:
        raise InputError((field, f"must be ≤ {INTEGER_MAX}"))


def _said(given: Mapping[str, Any]) -> ThoughtInput:
    revises_thought = given.get("revisesThought")
    return ThoughtInput(
        thought=recordable(given["thought"]),
        next_thought_needed=given["nextThoughtNeeded"],
        thought_number=given["thoughtNumber"],
        total_thoughts=max(given["totalThoughts"], given["thoughtNumber"]),
        is_revision=bool(given.get("isRevision")) or revises_thought is not None,
        revises_thought=revises_thought,
        branch_from_thought=given.get("branchFromThought"),
        branch_id=_identifier(given, "branchId"),
        needs_more_thoughts=given.get("needsMoreThoughts"),
        chain_id=None,
        request_id=_identifier(given, "requestId"),
    )


def _identifier(given: Mapping[str, Any], field: str) -> str | None:
    """An id, without U+0000, which the database cannot hold; None when absent or empty."""
    return recordable(given.get(field, "")).replace("\0", "\ufffd") or None
