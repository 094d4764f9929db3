"""The thoughts of a chain as its next decision needs them: never their texts."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from ledger.events import ThoughtBranched, ThoughtEvent, ThoughtRevised


class Step(NamedTuple):
    """What the next decision needs of a recorded thought: never its text.

    ``head_before`` is what its branch ended with before it, so that it can be forgotten again.
    ``version`` is where in the stream its event is found.
    """

    thought_id: UUID
    thought_number: int
    branch_id: str | None
    parent_thought_id: UUID | None
    head_before: UUID | None
    confidence_millionths: int | None
    total_thoughts: int
    revises_thought_id: UUID | None
    version: int


@dataclass(slots=True)
class Steps:
    """The thoughts of one chain in order, and the ways to find them.

    ``sequences`` finds a thought's place (1, 2, ...), ``numbers`` the places of those that claim a
    number, ``heads`` the last thought of each branch (None is the trunk) by first appearance.
    ``given_up`` holds the dead ends themselves, not what hangs under them.
    """

    recorded: list[Step] = field(default_factory=list[Step])
    sequences: dict[UUID, int] = field(default_factory=dict[UUID, int])
    numbers: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    heads: dict[str | None, UUID] = field(default_factory=dict["str | None", UUID])
    given_up: set[UUID] = field(default_factory=set[UUID])

    def __len__(self) -> int:
        return len(self.recorded)

    def of(self, thought_id: UUID) -> Step:
        """The step of a thought the chain has."""
        return self.recorded[self.sequences[thought_id] - 1]

    def resolve(self, reference: UUID | int) -> UUID | None:
        """The thought that is meant: an id is exact, for a number see ``find``."""
        if isinstance(reference, int):
            return self.find(reference)
        return reference if reference in self.sequences else None

    def find(self, thought_number: int) -> UUID | None:
        """The latest live thought with that number on the trunk, else the latest anywhere."""
        candidates = self.numbers.get(thought_number, [])
        for sequence in reversed(candidates):
            step = self.recorded[sequence - 1]
            if step.branch_id is None and not self.is_abandoned(step.thought_id):
                return step.thought_id
        return self.recorded[candidates[-1] - 1].thought_id if candidates else None

    def is_abandoned(self, thought_id: UUID) -> bool:
        """Whether the thought, or any thought above it, was given up as a dead end."""
        if not self.given_up:
            return False
        above: UUID | None = thought_id
        # A parent was recorded before its child, whatever somebody wrote into the log since.
        before = len(self.recorded) + 1
        while above is not None and (sequence := self.sequences.get(above, before)) < before:
            if above in self.given_up:
                return True
            before = sequence
            above = self.recorded[sequence - 1].parent_thought_id
        return False

    def abandoned(self) -> set[UUID]:
        """The dead ends and all that hangs under them: a parent comes before its children."""
        abandoned: set[UUID] = set()
        if self.given_up:
            for step in self.recorded:
                if step.thought_id in self.given_up or step.parent_thought_id in abandoned:
                    abandoned.add(step.thought_id)
        return abandoned

    def conclusion(self) -> UUID:
        """The last thought of the trunk; of a chain without a trunk, the last of all."""
        return self.heads.get(None) or self.recorded[-1].thought_id

    def last_live(self) -> Step | None:
        """The latest thought that was not given up, on whatever branch."""
        abandoned = self.abandoned()
        live = (step for step in reversed(self.recorded) if step.thought_id not in abandoned)
        return next(live, None)

    def add(self, event: ThoughtEvent) -> None:
        branch_id = event.branch_id
        revises = isinstance(event, ThoughtRevised | ThoughtBranched)
        self.recorded.append(
            Step(
                event.thought_id,
                event.thought_number,
                branch_id,
                event.parent_thought_id,
                self.heads.get(branch_id),
                event.confidence_millionths,
                event.total_thoughts,
                event.revises_thought_id if revises else None,
                event.originator_version,
            )
        )
        self.sequences[event.thought_id] = event.sequence
        self.numbers.setdefault(event.thought_number, []).append(event.sequence)
        self.heads[branch_id] = event.thought_id

    def remove_last(self) -> None:
        step = self.recorded.pop()
        del self.sequences[step.thought_id]
        self.numbers[step.thought_number].pop()
        if not self.numbers[step.thought_number]:
            del self.numbers[step.thought_number]
        if step.head_before is None:
            del self.heads[step.branch_id]
        else:
            self.heads[step.branch_id] = step.head_before
