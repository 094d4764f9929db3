"""Replay for auditors: a chain's events as plain facts, from verified bytes alone."""

from datetime import UTC
from typing import Any

from ledger.events import (
    BranchClosed,
    ChainRecalled,
    ChainStarted,
    FeedbackGiven,
    Judgement,
    Scope,
    ThoughtAbandoned,
    ThoughtBranched,
    ThoughtRecorded,
    ThoughtRevised,
)
from ledger.serialization import ENVELOPE, Recorded

# Said once at the front of every fact, in this order; the event's other fields follow by name.
LEADING = ("thought_id", "parent_thought_id", "sequence", "thought_number", "branch_id", "text")
NOT_A_FACT = ENVELOPE | {"originator_topic"} | set(LEADING)


def facts(recorded: Recorded) -> dict[str, Any]:
    """One event as JSON-ready facts; what an event of its type does not say is null.

    ``type`` is the topic; the moment is UTC in ISO 8601.
    """
    event, header = recorded.event, recorded.header
    said: dict[str, Any] = vars(event)
    told: dict[str, Any] = {
        "type": header.topic,
        "version": header.version,
        "position": recorded.position,
        "recorded_at": header.recorded_at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": header.actor,
        "client": header.client,
        "client_version": header.client_version,
        "request_id": header.request_id,
        "event_id": header.event_id,
        "chain_id": header.chain_id,
    }
    told |= {name: said.get(name) for name in LEADING}
    told |= {name: value for name, value in sorted(said.items()) if name not in NOT_A_FACT}
    return told


def sentence(recorded: Recorded) -> str:
    """What happened, in a few words: ``thought 3 revises 2``."""
    match recorded.event:
        case ChainStarted(title=title):
            return f"started: {title}"
        case ThoughtRevised(thought_number=number, revises_thought_number=revised):
            return f"thought {number}{_on_branch(recorded)} revises {revised or 'an earlier one'}"
        case ThoughtBranched(thought_number=number, branch_from_thought_number=origin):
            return f"thought {number}{_on_branch(recorded)} branches from {origin or 'the root'}"
        case ThoughtRecorded(thought_number=number):
            return f"thought {number}{_on_branch(recorded)}"
        case ThoughtAbandoned(thought_number=number, reason=reason):
            return f"thought {number} given up{_because(reason)}"
        case BranchClosed(branch_id=branch_id, outcome=outcome):
            return f"branch {branch_id} closed: {outcome}"
        case FeedbackGiven():
            return _judged(recorded.event)
        case ChainRecalled(tool=tool, thought_ids=thought_ids):
            return f"{len(thought_ids)} thoughts returned by {tool}"
        case event:
            verb = recorded.header.topic.rpartition(".")[2]
            return verb + _because(vars(event).get("reason"))


def text_of(recorded: Recorded) -> str | None:
    """The text of a thought; None for an event that brings none."""
    return recorded.event.text if isinstance(recorded.event, ThoughtRecorded) else None


def _on_branch(recorded: Recorded) -> str:
    branch_id = vars(recorded.event).get("branch_id")
    return f" on branch {branch_id}" if branch_id else ""


def _judged(event: FeedbackGiven) -> str:
    about = " as a whole" if event.scope == Scope.CHAIN else ""
    judged = {Judgement.CONFIRMED: "confirmed", Judgement.CORRECTED: "corrected"}
    verb = judged.get(Judgement(event.signal)) if event.signal in [*Judgement] else event.signal
    return f"{verb}{about} by {event.source}{_because(event.note)}"


def _because(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
