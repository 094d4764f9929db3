"""How sure a line of thought is: means over what its thoughts claimed."""

from dataclasses import dataclass

from ledger.steps import Steps

MILLION = 1_000_000


@dataclass(slots=True)
class Confidence:
    """The thoughts of a line that claim a confidence, and the sum of it."""

    count: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        """The mean from 0 to 1; 0 when no thought claims any."""
        return self.total / self.count if self.count else 0.0


def confidences(steps: Steps) -> dict[str | None, Confidence]:
    """The confidence of the trunk (None) and of each branch.

    Added up in floats, in the order recorded, so that every reader of the log gets the same digits.
    """
    lines: dict[str | None, Confidence] = {None: Confidence()}
    for step in steps.recorded:
        if step.confidence_millionths is not None:
            line = lines.setdefault(step.branch_id, Confidence())
            line.count += 1
            line.total += step.confidence_millionths / MILLION
    return lines
