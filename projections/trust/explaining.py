"""Why a thought is trusted as it is: its chain folded from the log, with every signal kept."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from ledger.application import Ledger
from ledger.errors import ChainNotFoundError
from ledger.events import FeedbackGiven, ThoughtRecorded
from ledger.log import PAGE_BYTES_MAX, PAGE_EVENTS_MAX, check_next
from ledger.recalls import recalls_of
from ledger.serialization import Recorded
from projections.trust import policy
from projections.trust.fold import TrustFold
from projections.trust.policy import DELTAS, Level, Signal
from projections.trust.state import Memory

# A note may be as long as a thought.
NOTE_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signal of one event: the value it found, decayed to its moment, and the one it left.

    Of feedback, ``source`` is who judged, and ``note`` the beginning of what was said of it.
    """

    position: int
    topic: str
    at: datetime
    actor: str
    signal: Signal
    delta: int
    before: int
    after: int
    source: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ThoughtTrust:
    """A thought's score, in millionths, and what it rests on.

    ``position`` is that of the thought's own event, with which it starts at 0.5.
    """

    thought_id: UUID
    thought_number: int
    sequence: int
    position: int
    score: int
    level: Level
    counts: bool
    dead_end: bool
    recalls: int
    last_recalled_at: datetime | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class ChainTrust:
    """A chain's score at a moment: the mean of its thoughts that count, None when none does."""

    chain_id: UUID
    at: datetime
    score: int | None
    level: Level | None
    thoughts: tuple[ThoughtTrust, ...]

    def of(self, thought_id: UUID) -> ThoughtTrust | None:
        return next((each for each in self.thoughts if each.thought_id == thought_id), None)

    def judged_at(self, position: int) -> list[tuple[ThoughtTrust, Evidence]]:
        """What the event at a position told for or against, each with that signal."""
        return [
            (thought, evidence)
            for thought in self.thoughts
            for evidence in thought.evidence
            if evidence.position == position
        ]


class Explanation:
    """Folds the events of one chain and of its recalls, each stream in its order."""

    def __init__(self, chain_id: UUID) -> None:
        self._chain_id = chain_id
        self._fold = TrustFold(self._keep)
        self._numbers: dict[UUID, int] = {}
        self._evidence: dict[UUID, list[Evidence]] = {}

    def add(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, ThoughtRecorded):
            self._numbers[event.thought_id] = event.thought_number
        self._fold.apply(recorded)

    def at(self, moment: datetime) -> ChainTrust:
        """Where that leaves every thought at a moment; of no chain there is nothing to say."""
        chain = self._fold.chains.get(self._chain_id)
        if chain is None:
            return ChainTrust(self._chain_id, moment, None, None, ())
        active = chain.active_at(policy.microseconds(moment))
        thoughts = tuple(
            self._trust(memory, memory.value_at(active))
            for memory in self._fold.members(self._chain_id)
        )
        score = policy.mean([thought.score for thought in thoughts if thought.counts])
        level = None if score is None else policy.level_of(score)
        return ChainTrust(self._chain_id, moment, score, level, thoughts)

    def _trust(self, memory: Memory, score: int) -> ThoughtTrust:
        recalls = self._fold.recalls.get(memory.thought_id)
        return ThoughtTrust(
            thought_id=memory.thought_id,
            thought_number=self._numbers[memory.thought_id],
            sequence=memory.sequence,
            position=memory.position,
            score=score,
            level=policy.level_of(score),
            counts=memory.counts,
            dead_end=memory.dead_end,
            recalls=recalls.count if recalls else 0,
            last_recalled_at=recalls.last_at if recalls else None,
            evidence=tuple(self._evidence.get(memory.thought_id, ())),
        )

    def _keep(
        self, recorded: Recorded, memory: Memory, signal: Signal, before: int, after: int
    ) -> None:
        position, header, event = recorded
        said = event if isinstance(event, FeedbackGiven) else None
        self._evidence.setdefault(memory.thought_id, []).append(
            Evidence(
                position,
                header.topic,
                event.timestamp,
                header.actor,
                signal,
                DELTAS[signal],
                before,
                after,
                said and said.source,
                said and said.note and said.note[:NOTE_CHARACTERS_MAX],
            )
        )


def explain(chain_id: UUID, events: Iterable[Recorded], at: datetime) -> ChainTrust:
    """The trust of a chain at a moment, by its *events* and those of its recalls until then."""
    explanation = Explanation(chain_id)
    for recorded in events:
        explanation.add(recorded)
    return explanation.at(at)


async def explain_now(ledger: Ledger, chain_id: UUID, at: datetime | None = None) -> ChainTrust:
    """The same by the log, as the chain stands; *at* is now.

    Raises ChainNotFoundError, TamperedEventError, UnreadableEventError.
    """
    explanation = Explanation(chain_id)
    async for recorded in stream(ledger, chain_id):
        explanation.add(recorded)
    async for recorded in stream(ledger, recalls_of(chain_id)):
        explanation.add(recorded)
    trust = explanation.at(at or datetime.now(UTC))
    if not trust.thoughts and not await ledger.events(chain_id, after=0, limit=1):
        raise ChainNotFoundError(chain_id)
    return trust


async def stream(ledger: Ledger, stream_id: UUID) -> AsyncIterator[Recorded]:
    """The events of one stream in their order, read in pages; none when there is no such stream.

    Raises TamperedEventError, UnreadableEventError.
    """
    after = 0
    while True:
        versions = list(range(after + 1, after + 1 + PAGE_EVENTS_MAX))
        page = await ledger.recorded(stream_id, versions, bytes_max=PAGE_BYTES_MAX)
        if not page:
            return
        for recorded in page:
            check_next(recorded, after)
            after = recorded.header.version
            yield recorded
