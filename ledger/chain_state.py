"""What a chain remembers of its events: state, and going back.

Thin, what the next decision needs, so that thousands of chains fit in memory.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, assert_never, cast
from uuid import UUID

from eventsourcing.domain import BaseAggregate

from ledger.errors import StaleVersionError, ThoughtNotFoundError
from ledger.events import (
    BranchClosed,
    ChainAbandoned,
    ChainCompleted,
    ChainEvent,
    ChainPaused,
    ChainReopened,
    ChainResumed,
    ChainStarted,
    FeedbackGiven,
    ThoughtAbandoned,
    ThoughtAdded,
    ThoughtBranched,
    ThoughtRevised,
)
from ledger.steps import Steps


class Status(StrEnum):
    """What a chain allows: see ``docs/architecture.md``."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


class Mark(NamedTuple):
    """What ``ChainState.forget`` cannot tell from the events it undoes."""

    status: Status
    modified_on: datetime


class ChainState(BaseAggregate[UUID]):
    """Remembers, answers and forgets; it decides nothing."""

    status: Status
    session_id: str | None
    source: str | None
    steps: Steps
    closed: dict[str, str]

    def __init__(self) -> None:
        self.status = Status.ACTIVE
        self.session_id = None
        self.source = None
        self.steps = Steps()
        self.closed = {}

    # -- Questions --------------------------------------------------------------------------------

    @property
    def thought_count(self) -> int:
        return len(self.steps)

    @property
    def branches(self) -> list[str]:
        """The ids of all branches, by first appearance."""
        return [branch_id for branch_id in self.steps.heads if branch_id is not None]

    def find_thought(self, reference: UUID | int) -> UUID:
        """The thought that is meant by an id or a number.  Raises ThoughtNotFoundError."""
        thought_id = self.steps.resolve(reference)
        if thought_id is None:
            raise ThoughtNotFoundError(self.id, reference)
        return thought_id

    def require_version(self, expected: int | None) -> None:
        """Raise StaleVersionError when a version is expected that is not the chain's."""
        if expected is not None and expected != self.version:
            raise StaleVersionError(self.id, expected, self.version)

    # -- apply() remembers.  It runs on every replay: no refusals, no clocks. ---------------------

    def apply(self, event: ChainEvent) -> None:
        match event:
            case ChainStarted():
                self.session_id = event.session_id
                self.source = event.source
            case ThoughtAdded() | ThoughtRevised() | ThoughtBranched():
                self.steps.add(event)
            case ThoughtAbandoned():
                self.steps.given_up.add(event.thought_id)
            case BranchClosed():
                self.closed[event.branch_id] = event.outcome
            case ChainPaused():
                self.status = Status.PAUSED
            case ChainResumed() | ChainReopened():
                self.status = Status.ACTIVE
            case ChainCompleted():
                self.status = Status.COMPLETED
            case ChainAbandoned():
                self.status = Status.ABANDONED
            case FeedbackGiven():
                pass  # judged by the trust read model; no decision here needs it
            case _:
                assert_never(event)

    def mark(self) -> Mark:
        """Where the chain stands, to come back to with ``forget``."""
        return Mark(self.status, self.modified_on)

    def forget(self, events: Sequence[ChainEvent], mark: Mark) -> None:
        """Undo ``apply`` of events that were decided since *mark* and never recorded.

        The library changes an aggregate before anything is stored; without this, every conflict
        would cost a replay of the whole chain.
        """
        for event in reversed(events):
            match event:
                case ThoughtAdded() | ThoughtRevised() | ThoughtBranched():
                    self.steps.remove_last()
                case ThoughtAbandoned():
                    self.steps.given_up.discard(event.thought_id)
                case BranchClosed():
                    del self.closed[event.branch_id]
                case _:
                    pass  # it moved the status, which the mark remembers
            self.version = event.originator_version - 1
        self.status, self.modified_on = mark

    def collect(self) -> list[ChainEvent]:
        """The events decided since the last call, typed as ours."""
        return cast("list[ChainEvent]", list(self.collect_events()))
