"""Histories of several chains, made by driving ``ThoughtChain``, and how they get into the log."""

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from hypothesis import strategies as st

from ledger.aggregate import Status, ThoughtChain
from ledger.header import Context
from ledger.recorder import repository
from ledger.thought import Thought

CHAINS_MAX = 3
CONTEXT = Context(actor="ada", client="cur\0sor")

texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["a\0b", "\0", ""])
optional_texts = st.none() | texts
numbers = st.integers(1, 3)


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
            ["think"] * 6 + ["give up"] * 2 + ["under"] + ["pause", "resume", "complete", "abandon"]
        )
    )
    detail = {"think": thoughts(), "under": thoughts(), "complete": optional_texts}
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
        self.events = 0

    def play(self, history) -> None:
        for number, verb, (detail, which) in history:
            if number not in self.chains:
                self.chains[number] = ThoughtChain.start(uuid4(), title=f"chain\0{number}")
            chain = self.chains[number]
            # An abandoned chain stays so for a while, a completed one is reopened by thinking.
            takes = {"abandon": set(Status), "think": {Status.ACTIVE, Status.COMPLETED}}
            if chain.status not in takes.get(verb, {Status.ACTIVE}):
                chain.resume()
            COMMANDS[verb](chain, detail, which)
            events = chain.collect()
            if events:
                self._store.put(events)
            self.events += len(events)


def _think(chain: ThoughtChain, thought: Thought, _which: int) -> None:
    chain.think(uuid4(), thought)


def _under(chain: ThoughtChain, thought: Thought, which: int) -> None:
    """Somewhere in the middle of the tree."""
    parent_id = chain.steps.recorded[which % len(chain.steps)].thought_id if chain.steps else None
    chain.add_thought(uuid4(), replace(thought, parent_thought_id=parent_id))


def _give_up(chain: ThoughtChain, _detail: object, which: int) -> None:
    if chain.steps:
        chain.abandon_thought(chain.steps.recorded[which % len(chain.steps)].thought_id)


def _abandon(chain: ThoughtChain, _detail: object, _which: int) -> None:
    if chain.status in (Status.ACTIVE, Status.PAUSED):
        chain.abandon()


COMMANDS: dict[str, Callable] = {
    "think": _think,
    "under": _under,
    "give up": _give_up,
    "pause": lambda chain, *_: chain.pause(),
    "resume": lambda chain, *_: None,
    "complete": lambda chain, conclusion, _: chain.complete(conclusion=conclusion),
    "abandon": _abandon,
}
