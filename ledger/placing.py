"""Where a thought goes in a chain, and the event that says so; pure."""

from typing import Any
from uuid import UUID

from ledger.events import ThoughtAdded, ThoughtBranched, ThoughtEvent, ThoughtRevised
from ledger.steps import Steps
from ledger.thought import Thought


def placed(
    steps: Steps, thought_id: UUID, thought: Thought
) -> tuple[type[ThoughtEvent], dict[str, Any]]:
    """The event that brings a thought, as its class and its fields."""
    fields = _fields(steps, thought_id, thought)
    revision = {
        "revises_thought_number": thought.revises_thought_number,
        "revises_thought_id": thought.revises_thought_id
        or _referenced(steps, thought.revises_thought_number),
        "reason": thought.reason,
    }
    if thought.branch_id is not None and thought.branch_id not in steps.heads:
        origin = {
            "branch_from_thought_id": fields["parent_thought_id"],
            "is_revision": thought.is_revision,
        }
        return ThoughtBranched, {**fields, **origin, **revision}
    if thought.is_revision:
        return ThoughtRevised, {**fields, **revision}
    return ThoughtAdded, fields


def parent_of(steps: Steps, thought: Thought) -> UUID | None:
    """The thought before it on its branch, or the branching point of a branch's first."""
    if thought.parent_thought_id is not None:
        return thought.parent_thought_id
    if thought.branch_id in steps.heads or thought.branch_id is None:
        return steps.heads.get(thought.branch_id)
    if thought.branch_from_thought_id is not None:
        return thought.branch_from_thought_id
    return _referenced(steps, thought.branch_from_thought_number)


def _fields(steps: Steps, thought_id: UUID, thought: Thought) -> dict[str, Any]:
    return {
        "thought_id": thought_id,
        "sequence": len(steps) + 1,
        "parent_thought_id": parent_of(steps, thought),
        "text": thought.text,
        "thought_number": thought.thought_number,
        "total_thoughts": thought.total_thoughts,
        "next_thought_needed": thought.next_thought_needed,
        "needs_more_thoughts": thought.needs_more_thoughts,
        "branch_id": thought.branch_id,
        "branch_from_thought_number": thought.branch_from_thought_number,
        "confidence_millionths": thought.confidence_millionths,
        "assumptions": None if thought.assumptions is None else list(thought.assumptions),
        "critique": thought.critique,
        "counter_argument": thought.counter_argument,
        "next_step_rationale": thought.next_step_rationale,
        "claimed_at": thought.claimed_at,
        "source": thought.source,
        "metadata": thought.metadata,
    }


def _referenced(steps: Steps, thought_number: int | None) -> UUID | None:
    return None if thought_number is None else steps.find(thought_number)
