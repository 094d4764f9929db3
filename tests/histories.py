"""Hypothesis strategies for events of every topic and for what callers may ask of a chain."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args, get_type_hints
from uuid import UUID

from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.errors import LedgerError
from ledger.events import CATALOGUE, ChainEvent, Judgement, LedgerEvent, Outcome, Scope
from ledger.serialization import ENVELOPE
from ledger.thought import Thought

INTEGER_MAX = 2**53 - 1
CHAIN_ID = UUID("00000000-0000-4000-8000-0000000c0a17")

# Zones with odd offsets too; near the ends of time UTC would fall off the calendar.
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001  Hypothesis wants the bounds naive
    max_value=datetime(9998, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-720, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
_VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(-INTEGER_MAX, INTEGER_MAX),
    bool: st.booleans(),
    UUID: st.uuids(),
    datetime: moments,
    list[str]: st.lists(st.text(), max_size=4),
    type(None): st.none(),
}


def _values(hint: Any) -> st.SearchStrategy[Any]:
    arms = [hint] if hint in _VALUES else get_args(hint)
    return st.one_of(*(_VALUES[arm] for arm in arms))


def events_of(event_class: type[LedgerEvent]) -> st.SearchStrategy[LedgerEvent]:
    """Any event of one class."""
    hints = get_type_hints(event_class)
    names = {field.name for field in fields(event_class)} - ENVELOPE
    return st.builds(
        event_class,
        originator_id=st.uuids(),
        originator_version=st.integers(1, INTEGER_MAX),
        timestamp=moments.map(lambda moment: moment.astimezone(UTC)),
        **{name: _values(hints[name]) for name in sorted(names)},
    )


events = st.one_of(*(events_of(event_class) for event_class in CATALOGUE.values()))


@dataclass(frozen=True)
class Command:
    """Something asked of a chain: a method and what it is given, the chain's id aside."""

    verb: str
    arguments: tuple[Any, ...] = ()

    def perform(self, chain: ThoughtChain) -> None:
        """Ask it of *chain*.  Raises LedgerError when the chain refuses."""
        _PERFORM[self.verb](chain, *self.arguments)


def start() -> ThoughtChain:
    return ThoughtChain.start(CHAIN_ID, title="a chain", session_id="a session")


def thought_id(number: int) -> UUID:
    """Few enough ids that commands meet the same one twice."""
    return UUID(int=number)


def accepted(chain: ThoughtChain, command: Command) -> list[ChainEvent] | None:
    """What the command decided; None when it was refused, which must leave the chain alone."""
    mark = chain.mark()
    try:
        command.perform(chain)
    except LedgerError:
        chain.forget(chain.collect(), mark)
        return None
    return chain.collect()


def _close_branch(chain: ThoughtChain, branch_id: str, outcome: Outcome) -> None:
    chain.close_branch(branch_id, outcome, conclusion="enough")


def _abandon_thought(chain: ThoughtChain, number: int) -> None:
    """Give up one of the chain's thoughts, or one it does not have."""
    steps = chain.steps.recorded[number - 1 : number]
    chain.abandon_thought(steps[0].thought_id if steps else thought_id(number))


def _judge(chain: ThoughtChain, judgement: Judgement, number: int | None) -> None:
    """Judge one of the chain's thoughts, one it does not have, or the chain."""
    scope = Scope.CHAIN if number == 0 else None
    about = thought_id(number) if number else None
    chain.judge(judgement, source="ada", thought_id=about, scope=scope, note="it worked")


_PERFORM: dict[str, Callable[..., None]] = {
    "add_thought": ThoughtChain.add_thought,
    "add_checked_thought": ThoughtChain.add_checked_thought,
    "think": ThoughtChain.think,
    "abandon_thought": _abandon_thought,
    "close_branch": _close_branch,
    "pause": ThoughtChain.pause,
    "resume": ThoughtChain.resume,
    "complete": ThoughtChain.complete,
    "abandon": ThoughtChain.abandon,
    "judge": _judge,
}

thought_ids = st.integers(1, 12).map(thought_id)
branch_ids = st.sampled_from(["a", "b"])
thoughts = st.builds(
    Thought,
    text=st.text(max_size=20),
    thought_number=st.integers(1, 6),
    total_thoughts=st.integers(1, 6),
    next_thought_needed=st.booleans() | st.just(True),
    branch_id=st.none() | branch_ids,
    branch_from_thought_number=st.none() | st.integers(1, 8),
    is_revision=st.booleans(),
    revises_thought_number=st.none() | st.integers(1, 8),
    # Most often none: a parent that is not there yet is refused.
    parent_thought_id=st.none() | st.none() | st.none() | st.integers(1, 4).map(thought_id),
    reason=st.none() | st.text(max_size=5),
    assumptions=st.none() | st.lists(st.text(max_size=5), max_size=2).map(tuple),
    claimed_at=st.none() | moments,
)
too_long_thoughts = thoughts.map(lambda thought: replace(thought, branch_id="b" * 256))
commands = st.one_of(
    st.builds(lambda *said: Command("add_thought", said), thought_ids, thoughts),
    st.builds(lambda *said: Command("add_checked_thought", said), thought_ids, thoughts),
    st.builds(lambda *said: Command("think", said), thought_ids, thoughts),
    st.builds(lambda *said: Command("think", said), thought_ids, thoughts | too_long_thoughts),
    st.builds(lambda said: Command("abandon_thought", (said,)), st.integers(1, 6)),
    st.builds(
        lambda *said: Command("close_branch", said), branch_ids, st.sampled_from(list(Outcome))
    ),
    st.sampled_from([Command(verb) for verb in ("pause", "resume", "resume")]),
    st.sampled_from([Command(verb) for verb in ("complete", "abandon", "resume")]),
    st.builds(
        lambda *said: Command("judge", said),
        st.sampled_from(list(Judgement)),
        st.none() | st.integers(0, 6),
    ),
)
command_lists = st.lists(commands, max_size=30)
