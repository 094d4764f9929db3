"""One thought as its author says it: what a chain is asked to record."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.limits import (
    METADATA_BYTES_MAX,
    TEXT_BYTES_MAX,
    THOUGHT_BYTES_MAX,
    check_bytes,
    check_id,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Thought:
    """One thought as its author says it, before the chain decides where it goes.

    With ``branch_id`` it goes on that branch, which it opens if there is none of that name.
    ``parent_thought_id``, when given, overrides the place the chain would choose;
    ``revises_thought_id`` and ``branch_from_thought_id`` the thoughts it would find by the numbers.
    """

    text: str
    thought_number: int
    total_thoughts: int
    next_thought_needed: bool
    needs_more_thoughts: bool | None = None
    branch_id: str | None = None
    branch_from_thought_number: int | None = None
    is_revision: bool = False
    revises_thought_number: int | None = None
    revises_thought_id: UUID | None = None
    branch_from_thought_id: UUID | None = None
    parent_thought_id: UUID | None = None
    reason: str | None = None
    confidence_millionths: int | None = None
    assumptions: tuple[str, ...] | None = None
    critique: str | None = None
    counter_argument: str | None = None
    next_step_rationale: str | None = None
    claimed_at: datetime | None = None
    source: str | None = None
    metadata: str | None = None

    def check_limits(self) -> None:
        """Raise LimitExceededError for anything longer than the ledger records."""
        check_bytes("the thought", self.text, THOUGHT_BYTES_MAX)
        check_id("the branch id", self.branch_id)
        check_id("the source", self.source)
        check_bytes("the metadata", self.metadata, METADATA_BYTES_MAX)
        check_bytes("the reason", self.reason, TEXT_BYTES_MAX)
        check_bytes("the critique", self.critique, TEXT_BYTES_MAX)
        check_bytes("the counter argument", self.counter_argument, TEXT_BYTES_MAX)
        check_bytes("the next step rationale", self.next_step_rationale, TEXT_BYTES_MAX)
        for assumption in self.assumptions or ():
            check_bytes("an assumption", assumption, TEXT_BYTES_MAX)
