"""Histories of several chains, made by driving ``ThoughtChain``, and how they get into the log."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.chain_state import Status
from ledger.errors import BranchClosedError
from ledger.events import ChainRecalled, Judgement, Outcome, Scope
from ledger.header import Context
from ledger.recalls import recalls_of
from ledger.recorder import repository
from ledger.thought import Thought

CHAINS_MAX = 3
CONTEXT = Context(actor="ada", client="cur\0sor")

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["a\0b", "\0", ""])
optional_texts = st.none() | texts
numbers = st.integers(1, 3)
# Judgement, whether of a thought in particular, scope.
JUDGEMENTS = [
    (Judgement.CONFIRMED, False, None),
    (Judgement.CONFIRMED, True, None),
    (Judgement.CONFIRMED, False, Scope.CHAIN),
    (Judgement.CORRECTED, False, None),
    (Judgement.CORRECTED, True, None),
]


@st.composite
def thoughts(draw) -> Thought:
    return Thought(
        text=draw(texts),
        thought_number=draw(numbers | st.just(2**53 - 1)),
        total_thoughts=draw(numbers),
        next_thought_needed=draw(st.booleans()),
        needs_more_thoughts=draw(st.none() | st.booleans()),
        branch_id=draw(st.sampled_from([None, None, None, "b", "c\0"])),
        branch_from_thought_number=draw(st.none() | numbers),
        is_revision=draw(st.booleans()),
        revises_thought_number=draw(st.none() | numbers),
        confidence_millionths=draw(st.none() | st.integers(0, 1_000_000)),
        assumptions=draw(st.none() | st.lists(texts, max_size=2).map(tuple)),
        critique=draw(optional_texts),
        next_step_rationale=draw(optional_texts),
    )


@st.composite
def steps(draw) -> tuple[int, str, object]:
    """Which chain, which command, with what; the command may turn out to be refused."""
    verb = draw(
        st.sampled_from(
            ["think"] * 6
            + ["give up"] * 2
            + ["under", "close branch", "judge", "judge", "recall"]
            + ["pause", "resume", "complete", "abandon"]
        )
    )
    detail = {
        "think": thoughts(),
        "under": thoughts(),
        "complete": optional_texts,
        "judge": st.tuples(st.sampled_from(JUDGEMENTS), st.sampled_from(["ada", "b\0b"])),
    }
    return (
        draw(st.integers(0, CHAINS_MAX - 1)),
        verb,
        (draw(detail.get(verb, st.none())), draw(st.integers(0, 30))),
    )


class Histories:
    """Plays steps on chains and records what they decide, each command in one save."""

    def __init__(self, connection) -> None:
        self._store = repository(connection, CONTEXT).event_store
        self.chains: dict[int, ThoughtChain] = {}
        self._recalls: dict[UUID, int] = {}
        self.now = datetime(2020, 1, 1, tzinfo=UTC)
        self.events = 0

    def play(self, history) -> None:
        for number, verb, (detail, which) in history:
            if number not in self.chains:
                self.chains[number] = ThoughtChain.start(uuid4(), title=f"chain\0{number}")
            chain = self.chains[number]
            # An abandoned chain stays so for a while, a completed one is reopened by thinking.
            takes = {
                "abandon": set(Status),
                "judge": set(Status),
                "recall": set(Status),
                "think": {Status.ACTIVE, Status.COMPLETED},
            }
            if chain.status not in takes.get(verb, {Status.ACTIVE}):
                chain.resume()
            mark = chain.mark()
            try:
                self._perform(chain, verb, detail, which)
            except BranchClosedError:
                chain.forget(chain.collect(), mark)
            events = chain.collect()
            self._put(events, days=which)

    def _put(self, events, days: int = 0) -> None:
        """Record them, so many days after what was recorded before."""
        self.now += timedelta(days=days)
        dated = [replace(event, timestamp=self.now) for event in events]
        if dated:
            self._store.put(dated)
        self.events += len(dated)

    def _perform(self, chain: ThoughtChain, verb: str, detail: object, which: int) -> None:
        if verb == "recall":
            self._recall(chain)
        else:
            COMMANDS[verb](chain, detail, which)

    def _recall(self, chain: ThoughtChain) -> None:
        """All thoughts there are are returned, the last one twice."""
        ids = [str(step.thought_id) for step in chain.steps.recorded]
        stream_id = recalls_of(chain.id)
        version = self._recalls[stream_id] = self._recalls.get(stream_id, 0) + 1
        recalled = ChainRecalled(
            originator_id=stream_id,
            originator_version=version,
            timestamp=self.now,
            chain_id=chain.id,
            tool="get_thought_chain",
            thought_ids=ids + ids[-1:],
        )
        self._put([recalled])


def _think(chain: ThoughtChain, thought: Thought, _which: int) -> None:
    chain.think(uuid4(), thought)


def _under(chain: ThoughtChain, thought: Thought, which: int) -> None:
    """Somewhere in the middle of the tree."""
    parent_id = chain.steps.recorded[which % len(chain.steps)].thought_id if chain.steps else None
    chain.add_thought(uuid4(), replace(thought, parent_thought_id=parent_id))


def _give_up(chain: ThoughtChain, _detail: object, which: int) -> None:
    if chain.steps:
        chain.abandon_thought(chain.steps.recorded[which % len(chain.steps)].thought_id)


def _close_branch(chain: ThoughtChain, _detail: object, which: int) -> None:
    open_ones = [branch_id for branch_id in chain.branches if branch_id not in chain.closed]
    if open_ones:
        outcomes = [*Outcome, Outcome.ABANDONED]
        chain.close_branch(open_ones[0], outcomes[which % len(outcomes)])


def _judge(chain: ThoughtChain, detail: tuple, which: int) -> None:
    (judgement, is_named, scope), source = detail
    if chain.steps:
        named = chain.steps.recorded[which % len(chain.steps)].thought_id if is_named else None
        chain.judge(judgement, source=source, thought_id=named, scope=scope)


def _abandon(chain: ThoughtChain, _detail: object, _which: int) -> None:
    if chain.status in (Status.ACTIVE, Status.PAUSED):
        chain.abandon()


COMMANDS: dict[str, Callable] = {
    "think": _think,
    "under": _under,
    "give up": _give_up,
    "close branch": _close_branch,
    "judge": _judge,
    "pause": lambda chain, *_: chain.pause(),
    "resume": lambda chain, *_: None,
    "complete": lambda chain, conclusion, _: chain.complete(conclusion=conclusion),
    "abandon": _abandon,
}
