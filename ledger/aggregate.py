"""The consistency boundary: what one chain allows, decided without I/O.

Commands decide: they refuse, return or trigger.  What they decided ``ChainState`` remembers.
"""

from dataclasses import replace
from typing import Self
from uuid import UUID

from ledger.chain_state import ChainState, Status
from ledger.errors import (
    BranchClosedError,
    BranchNotFoundError,
    ChainNotActiveError,
    FeedbackError,
    NothingToJudgeError,
    ReferenceOutOfRangeError,
    ThoughtAbandonedError,
    ThoughtExistsError,
    ThoughtNotFoundError,
    TransitionError,
)
from ledger.events import (
    BranchClosed,
    ChainAbandoned,
    ChainCompleted,
    ChainPaused,
    ChainReopened,
    ChainResumed,
    ChainStarted,
    FeedbackGiven,
    Judgement,
    Outcome,
    Scope,
    ThoughtAbandoned,
)
from ledger.limits import METADATA_BYTES_MAX, TEXT_BYTES_MAX, check_bytes, check_id
from ledger.placing import parent_of, placed
from ledger.thought import Thought


class ThoughtChain(ChainState):
    """One line of reasoning with its revisions and branches, in the order it happened."""

    TOPIC = "thought_chain"

    def __init__(self) -> None:
        # Without one here the library makes it, with all that is annotated as arguments.
        super().__init__()

    # -- Commands decide.  They may refuse; they change nothing directly. -------------------------

    @classmethod
    def start(
        cls,
        chain_id: UUID,
        *,
        title: str,
        session_id: str | None = None,
        parent_chain_id: UUID | None = None,
        source: str | None = None,
        metadata: str | None = None,
    ) -> Self:
        check_bytes("the title", title, TEXT_BYTES_MAX)
        check_id("the session id", session_id)
        check_id("the source", source)
        check_bytes("the metadata", metadata, METADATA_BYTES_MAX)
        return cls._create(
            ChainStarted,
            id=chain_id,
            title=title,
            session_id=session_id,
            parent_chain_id=parent_chain_id,
            source=source,
            metadata=metadata,
        )

    def add_thought(self, thought_id: UUID, thought: Thought) -> None:
        """Record a thought; only an active chain takes one."""
        thought.check_limits()
        self._require_active()
        self._record(thought_id, thought)

    def add_checked_thought(self, thought_id: UUID, thought: Thought) -> None:
        """Record a thought whose references must be there, and not be dead ends.

        A completed chain takes revisions, and stays completed.  An active one is completed when
        the trunk needs no further thought.
        """
        thought.check_limits()
        revised_id = self._checked(thought.revises_thought_id or thought.revises_thought_number)
        revises_when_completed = self.status is Status.COMPLETED and revised_id is not None
        if self.status is not Status.ACTIVE and not revises_when_completed:
            raise ChainNotActiveError(self.id, self.status)
        self._checked(thought.branch_from_thought_id or thought.branch_from_thought_number)
        self._record(thought_id, self._under_a_live_one(thought, revised_id))
        if self.status is Status.ACTIVE:
            self._complete_after(thought)

    def think(self, thought_id: UUID, thought: Thought) -> None:
        """Record a thought as the drop-in tool means it.

        It takes a completed chain up again, checks no references, and completes the chain when
        the trunk needs no further thought.
        """
        thought.check_limits()
        if self.status in (Status.PAUSED, Status.ABANDONED):
            raise ChainNotActiveError(self.id, self.status)
        self._check_thought(thought_id, thought)
        if self.status is Status.COMPLETED:
            self.trigger_event(ChainReopened, reason=None)
        self._record(thought_id, thought)
        self._complete_after(thought)

    def think_in_range(self, thought_id: UUID, thought: Thought) -> None:
        """``think``, refusing a reference beyond the number of thoughts there are."""
        self._check_range("revisesThought", thought.revises_thought_number)
        self._check_range("branchFromThought", thought.branch_from_thought_number)
        self.think(thought_id, thought)

    def abandon_thought(self, thought_id: UUID, *, reason: str | None = None) -> None:
        """Give a thought up as a dead end; once given up it stays so."""
        check_bytes("the reason", reason, TEXT_BYTES_MAX)
        self._require_active()
        if thought_id not in self.steps.sequences:
            raise ThoughtNotFoundError(self.id, thought_id)
        if thought_id not in self.steps.given_up:
            number = self.steps.of(thought_id).thought_number
            self.trigger_event(
                ThoughtAbandoned, thought_id=thought_id, thought_number=number, reason=reason
            )

    def close_branch(
        self, branch_id: str, outcome: Outcome, *, conclusion: str | None = None
    ) -> None:
        check_bytes("the conclusion", conclusion, TEXT_BYTES_MAX)
        self._require_active()
        if branch_id not in self.steps.heads:
            raise BranchNotFoundError(self.id, branch_id)
        if branch_id in self.closed:
            raise BranchClosedError(self.id, branch_id)
        self.trigger_event(
            BranchClosed, branch_id=branch_id, outcome=str(outcome), conclusion=conclusion
        )

    def pause(self, *, reason: str | None = None) -> None:
        check_bytes("the reason", reason, TEXT_BYTES_MAX)
        self._require("paused", Status.ACTIVE)
        self.trigger_event(ChainPaused, reason=reason)

    def resume(self, *, reason: str | None = None) -> None:
        check_bytes("the reason", reason, TEXT_BYTES_MAX)
        self._require("resumed", Status.PAUSED, Status.COMPLETED, Status.ABANDONED)
        self.trigger_event(ChainResumed, reason=reason)

    def complete(
        self,
        *,
        reason: str | None = None,
        conclusion: str | None = None,
        metadata: str | None = None,
    ) -> None:
        check_bytes("the reason", reason, TEXT_BYTES_MAX)
        check_bytes("the conclusion", conclusion, TEXT_BYTES_MAX)
        check_bytes("the metadata", metadata, METADATA_BYTES_MAX)
        self._require("completed", Status.ACTIVE)
        self.trigger_event(ChainCompleted, reason=reason, conclusion=conclusion, metadata=metadata)

    def abandon(self, *, reason: str | None = None, metadata: str | None = None) -> None:
        check_bytes("the reason", reason, TEXT_BYTES_MAX)
        check_bytes("the metadata", metadata, METADATA_BYTES_MAX)
        self._require("abandoned", Status.ACTIVE, Status.PAUSED)
        self.trigger_event(ChainAbandoned, reason=reason, metadata=metadata)

    def judge(
        self,
        judgement: Judgement,
        *,
        source: str,
        thought_id: UUID | None = None,
        scope: Scope | None = None,
        note: str | None = None,
    ) -> None:
        """Keep what somebody says of the outcome, whatever the chain's status."""
        check_id("the source", source)
        check_bytes("the note", note, TEXT_BYTES_MAX)
        if scope is not None and (thought_id is not None or judgement is Judgement.CORRECTED):
            raise FeedbackError(
                "only a confirmation can be about the whole chain, and then about no thought in "
                "particular; leave the scope out, or the thought"
            )
        if thought_id is not None and thought_id not in self.steps.sequences:
            raise ThoughtNotFoundError(self.id, thought_id)
        if not self.steps.recorded:
            raise NothingToJudgeError(self.id)
        if thought_id is None and judgement is Judgement.CORRECTED:
            thought_id = self.steps.conclusion()
        self.trigger_event(
            FeedbackGiven,
            signal=str(judgement),
            thought_id=thought_id,
            scope=scope and str(scope),
            source=source,
            note=note,
        )

    # -- Helpers ----------------------------------------------------------------------------------

    def _require_active(self) -> None:
        if self.status is not Status.ACTIVE:
            raise ChainNotActiveError(self.id, self.status)

    def _complete_after(self, thought: Thought) -> None:
        """Complete the chain when the trunk needs no thought after this one."""
        if not thought.next_thought_needed and thought.branch_id is None:
            self.trigger_event(ChainCompleted, reason=None, conclusion=None, metadata=None)

    def _require(self, verb: str, *allowed: Status) -> None:
        if self.status not in allowed:
            raise TransitionError(self.id, self.status, verb)

    def _check_range(self, field: str, thought_number: int | None) -> None:
        if thought_number is not None and thought_number > self.thought_count:
            raise ReferenceOutOfRangeError(field, thought_number, self.thought_count)

    def _checked(self, reference: UUID | int | None) -> UUID | None:
        return None if reference is None else self.find_thought(reference)

    def _under_a_live_one(self, thought: Thought, revised_id: UUID | None) -> Thought:
        """The thought under one that is alive: a revision, if need be, under what it revises."""
        parent_id = parent_of(self.steps, thought)
        if parent_id is None or not self.steps.is_abandoned(parent_id):
            return thought
        if revised_id is None or self.steps.is_abandoned(revised_id):
            live = self.steps.last_live()
            raise ThoughtAbandonedError(
                self.id, self.steps.of(parent_id).thought_number, live and live.thought_number
            )
        return replace(thought, parent_thought_id=revised_id)

    def _check_thought(self, thought_id: UUID, thought: Thought) -> None:
        if thought_id in self.steps.sequences:
            raise ThoughtExistsError(self.id, thought_id)
        if thought.branch_id is not None and thought.branch_id in self.closed:
            raise BranchClosedError(self.id, thought.branch_id)
        parent_id = thought.parent_thought_id
        if parent_id is not None and parent_id not in self.steps.sequences:
            raise ThoughtNotFoundError(self.id, parent_id)

    def _record(self, thought_id: UUID, thought: Thought) -> None:
        self._check_thought(thought_id, thought)
        event_class, fields = placed(self.steps, thought_id, thought)
        self.trigger_event(event_class, **fields)
