"""The event catalogue: everything that can ever be written to the log.

A stored event is immutable and is read for ever.  Three rules keep that true:

1. ``TOPIC`` is the name in the log.  Classes may move; topics never change.
2. A field is never removed, renamed or retyped without an upcaster beside it.
3. A class outside ``CATALOGUE`` cannot be recorded; a topic outside it cannot be read.

Fields are ``str``, ``int``, ``bool``, ``UUID``, ``datetime`` or lists of strings, or any of them
or ``None``.  Free-form metadata is one JSON string.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias
from uuid import UUID

from eventsourcing.domain import AggregateCreated, AggregateEvent
from eventsourcing.utils import register_topic


class Outcome(StrEnum):
    """How a branch ended."""

    KEPT = "kept"
    MERGED = "merged"
    ABANDONED = "abandoned"


class Judgement(StrEnum):
    """What feedback says of an outcome."""

    CONFIRMED = "user_confirmed"
    CORRECTED = "user_corrected"


class Scope(StrEnum):
    """What feedback is about, when it is not about one thought."""

    CHAIN = "chain"


class LedgerEvent(AggregateEvent):
    """One fact in the stream of a chain.

    ``originator_id`` is the chain, ``originator_version`` the place in its stream (1, 2, ...) and
    ``timestamp`` the moment of recording.  Who recorded it and why is in the header beside the
    event (``ledger.serialization.Header``), never in the event.
    """

    TOPIC: ClassVar[str]
    class_version: ClassVar[int] = 1

    def apply(self, aggregate: Any) -> None:
        aggregate.apply(self)


class ChainStarted(LedgerEvent, AggregateCreated):
    """A chain began."""

    TOPIC = "chain.started"

    title: str
    session_id: str | None
    parent_chain_id: UUID | None
    source: str | None
    metadata: str | None


class ThoughtRecorded(LedgerEvent):
    """What the three events that bring a thought have in common; never recorded itself.

    ``sequence`` (1, 2, ...) is the truth about order and ``parent_thought_id`` (None at the root)
    the truth about shape.  ``thought_number``, ``total_thoughts`` and
    ``branch_from_thought_number`` are what the model claimed, kept as they came.
    """

    thought_id: UUID
    sequence: int
    parent_thought_id: UUID | None
    text: str
    thought_number: int
    total_thoughts: int
    next_thought_needed: bool
    needs_more_thoughts: bool | None
    branch_id: str | None
    branch_from_thought_number: int | None
    confidence_millionths: int | None
    assumptions: list[str] | None
    critique: str | None
    counter_argument: str | None
    next_step_rationale: str | None
    claimed_at: datetime | None
    source: str | None
    metadata: str | None


class ThoughtAdded(ThoughtRecorded):
    """The next thought on the trunk or on an open branch."""

    TOPIC = "thought.added"


class ThoughtRevised(ThoughtRecorded):
    """A thought that reconsiders an earlier one, which stays as it was."""

    TOPIC = "thought.revised"

    revises_thought_number: int | None
    revises_thought_id: UUID | None
    reason: str | None


class ThoughtBranched(ThoughtRecorded):
    """The first thought of a branch; it may revise an earlier thought as well."""

    TOPIC = "thought.branched"

    branch_from_thought_id: UUID | None
    is_revision: bool
    revises_thought_number: int | None
    revises_thought_id: UUID | None
    reason: str | None


class ThoughtAbandoned(LedgerEvent):
    """A thought turned out to be a dead end; what hangs under it is derived, not stored."""

    TOPIC = "thought.abandoned"

    thought_id: UUID
    thought_number: int
    reason: str | None


class BranchClosed(LedgerEvent):
    """A branch takes no more thoughts.  ``outcome`` is one of ``Outcome``."""

    TOPIC = "branch.closed"

    branch_id: str
    outcome: str
    conclusion: str | None


class ChainPaused(LedgerEvent):
    """The chain takes no thoughts until it is resumed."""

    TOPIC = "chain.paused"

    reason: str | None


class ChainResumed(LedgerEvent):
    """A paused, completed or abandoned chain takes thoughts again."""

    TOPIC = "chain.resumed"

    reason: str | None


class ChainCompleted(LedgerEvent):
    """The chain came to its end."""

    TOPIC = "chain.completed"

    reason: str | None
    conclusion: str | None
    metadata: str | None


class ChainReopened(LedgerEvent):
    """A completed chain was taken up again by a further thought."""

    TOPIC = "chain.reopened"

    reason: str | None


class ChainAbandoned(LedgerEvent):
    """The chain was given up; it is kept for ever."""

    TOPIC = "chain.abandoned"

    reason: str | None
    metadata: str | None


class FeedbackGiven(LedgerEvent):
    """Somebody judged a chain or one of its thoughts; it is no thought, and moves no status.

    ``signal`` is one of ``Judgement``, ``scope`` one of ``Scope``.  ``source`` says who judged; who
    recorded it is in the header.  Without a thought or a scope it is for the policy of trust to
    say which thought is meant.
    """

    TOPIC = "feedback.given"

    signal: str
    thought_id: UUID | None
    scope: str | None
    source: str
    note: str | None


class ChainRecalled(LedgerEvent):
    """A chain was read again.

    It lives in a stream of its own (``originator_id`` is not the chain), so that readers never
    collide with writers and never move a chain's version.  Several recalls may be told by one
    event; ``thought_ids`` then has a thought as often as it was returned.
    """

    TOPIC = "chain.recalled"

    chain_id: UUID
    tool: str
    thought_ids: list[str]


ThoughtEvent: TypeAlias = ThoughtAdded | ThoughtRevised | ThoughtBranched

ChainEvent: TypeAlias = (
    ChainStarted
    | ThoughtEvent
    | ThoughtAbandoned
    | BranchClosed
    | ChainPaused
    | ChainResumed
    | ChainCompleted
    | ChainReopened
    | ChainAbandoned
    | FeedbackGiven
)

CATALOGUE: dict[str, type[LedgerEvent]] = {
    event_class.TOPIC: event_class
    for event_class in (
        ChainStarted,
        ThoughtAdded,
        ThoughtRevised,
        ThoughtBranched,
        ThoughtAbandoned,
        BranchClosed,
        ChainPaused,
        ChainResumed,
        ChainCompleted,
        ChainReopened,
        ChainAbandoned,
        FeedbackGiven,
        ChainRecalled,
    )
}

for _topic, _event_class in CATALOGUE.items():
    register_topic(_topic, _event_class)
