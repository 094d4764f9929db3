"""What a chain allows, and that its history is all there is to know about it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.chain_state import Status
from ledger.errors import (
    BranchClosedError,
    BranchNotFoundError,
    ChainNotActiveError,
    LedgerError,
    LimitExceededError,
    ThoughtExistsError,
    ThoughtNotFoundError,
    TransitionError,
)
from ledger.events import (
    CATALOGUE,
    BranchClosed,
    ChainCompleted,
    ChainEvent,
    ChainPaused,
    ChainReopened,
    ChainResumed,
    ChainStarted,
    FeedbackGiven,
    Outcome,
    ThoughtAbandoned,
    ThoughtAdded,
    ThoughtBranched,
    ThoughtRevised,
)
from ledger.limits import (
    ID_CHARACTERS_MAX,
    METADATA_BYTES_MAX,
    TEXT_BYTES_MAX,
    THOUGHT_BYTES_MAX,
)
from ledger.thought import Thought
from tests.histories import Command, accepted, command_lists, commands, start

Move = Callable[[ThoughtChain], None]
MOVES: dict[str, Move] = {
    "pause": ThoughtChain.pause,
    "resume": ThoughtChain.resume,
    "complete": ThoughtChain.complete,
    "abandon": ThoughtChain.abandon,
}
WAYS: dict[Status, list[str]] = {
    Status.ACTIVE: [],
    Status.PAUSED: ["pause"],
    Status.COMPLETED: ["complete"],
    Status.ABANDONED: ["abandon"],
}
ALLOWED = {
    ("active", "pause"): "paused",
    ("active", "complete"): "completed",
    ("active", "abandon"): "abandoned",
    ("paused", "resume"): "active",
    ("paused", "abandon"): "abandoned",
    ("completed", "resume"): "active",
    ("abandoned", "resume"): "active",
}


def a_thought(number: int = 1, **said: Any) -> Thought:
    plain = {"text": "t", "thought_number": number, "total_thoughts": 9}
    return Thought(**(plain | {"next_thought_needed": True} | said))


def add(chain: ThoughtChain, number: int = 1, **said: Any) -> UUID:
    """Add a thought and return its id."""
    thought_id = uuid4()
    chain.add_thought(thought_id, a_thought(number, **said))
    return thought_id


def last(chain: ThoughtChain) -> Any:
    """The event decided last."""
    return chain.pending_events[-1]


def begun() -> ThoughtChain:
    """A chain whose start is recorded."""
    chain = start()
    chain.collect()
    return chain


def in_status(status: Status) -> ThoughtChain:
    chain = start()
    for move in WAYS[status]:
        MOVES[move](chain)
    chain.collect()
    return chain


def state(chain: ThoughtChain) -> dict[str, Any]:
    return deepcopy(vars(chain))


def replay(events: list[ChainEvent]) -> ThoughtChain:
    chain: ThoughtChain | None = None
    for event in events:
        chain = event.mutate(chain)
    assert chain is not None
    return chain


# A chain


def test_a_started_chain_is_active_and_has_no_thoughts():
    parent_id = uuid4()

    chain = ThoughtChain.start(
        uuid4(), title="which index?", session_id="s", parent_chain_id=parent_id, source="here"
    )

    (event,) = chain.collect()
    assert isinstance(event, ChainStarted)
    assert (event.title, event.session_id, event.parent_chain_id) == (
        "which index?",
        "s",
        parent_id,
    )
    assert (chain.status, chain.session_id, chain.thought_count) == (Status.ACTIVE, "s", 0)
    assert (event.originator_id, event.originator_version) == (chain.id, 1)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("move", MOVES)
def test_a_chain_moves_only_as_its_status_allows(status, move):
    chain = in_status(status)
    expected = ALLOWED.get((status, move))

    if expected:
        MOVES[move](chain)
        assert chain.status == expected
        return
    with pytest.raises(TransitionError) as refusal:
        MOVES[move](chain)
    assert (refusal.value.chain_id, refusal.value.status) == (chain.id, status)
    assert chain.status is status


@pytest.mark.parametrize("status", [Status.PAUSED, Status.COMPLETED, Status.ABANDONED])
@pytest.mark.parametrize(
    "command",
    [
        lambda chain: chain.add_thought(uuid4(), a_thought()),
        lambda chain: chain.abandon_thought(uuid4()),
        lambda chain: chain.close_branch("b", Outcome.KEPT),
    ],
)
def test_only_an_active_chain_takes_thoughts_dead_ends_and_closures(status, command):
    chain = in_status(status)

    with pytest.raises(ChainNotActiveError) as refusal:
        command(chain)

    assert (refusal.value.chain_id, refusal.value.status) == (chain.id, status)


def test_a_resumed_chain_goes_on_where_it_was():
    chain = start()
    first = add(chain, 1)
    chain.pause(reason="context evicted")
    chain.resume()

    add(chain, 2)

    assert (last(chain).sequence, last(chain).parent_thought_id) == (2, first)


def test_reasons_and_conclusions_are_recorded():
    chain = start()

    chain.pause(reason="lunch")
    chain.resume(reason="back")
    chain.complete(reason="done", conclusion="42", metadata="{}")

    paused, resumed, completed = chain.collect()[1:]
    assert isinstance(paused, ChainPaused)
    assert isinstance(resumed, ChainResumed)
    assert isinstance(completed, ChainCompleted)
    assert (paused.reason, resumed.reason) == ("lunch", "back")
    assert (completed.reason, completed.conclusion, completed.metadata) == ("done", "42", "{}")


# Thoughts and their order


def test_thoughts_are_counted_and_hang_under_the_one_before():
    chain = start()

    ids = [add(chain, number) for number in (1, 2, 2)]

    events = chain.collect()[1:]
    assert all(type(event) is ThoughtAdded for event in events)
    assert [event.sequence for event in events] == [1, 2, 3]
    assert [event.parent_thought_id for event in events] == [None, ids[0], ids[1]]
    assert [event.thought_number for event in events] == [1, 2, 2]


def test_everything_said_about_a_thought_is_recorded():
    chain = start()
    said = {
        "needs_more_thoughts": False,
        "confidence_millionths": 1,
        "assumptions": ("a", "b"),
        "critique": "c",
        "counter_argument": "d",
        "next_step_rationale": "e",
        "source": "s",
        "metadata": "{}",
    }

    add(chain, 3, text="kept\x00exactly", **said)

    event = last(chain)
    assert (event.text, event.total_thoughts, event.next_thought_needed) == (
        "kept\x00exactly",
        9,
        True,
    )
    assert {name: getattr(event, name) for name in said} == said | {"assumptions": ["a", "b"]}


def test_a_thought_may_name_its_parent():
    chain = start()
    first, _second = add(chain, 1), add(chain, 2)

    add(chain, 3, parent_thought_id=first)

    assert last(chain).parent_thought_id == first


def test_a_thought_id_is_taken_once():
    chain = start()
    thought_id = add(chain)

    with pytest.raises(ThoughtExistsError) as refusal:
        chain.add_thought(thought_id, a_thought(2))

    assert (refusal.value.chain_id, refusal.value.thought_id) == (chain.id, thought_id)


# Revisions


def test_a_revision_hangs_under_the_thought_before_it_not_the_one_it_revises():
    chain = start()
    first, second = add(chain, 1), add(chain, 2)

    add(chain, 3, is_revision=True, revises_thought_number=1, reason="wrong")

    event = last(chain)
    assert isinstance(event, ThoughtRevised)
    assert (event.parent_thought_id, event.revises_thought_id) == (second, first)
    assert (event.revises_thought_number, event.reason) == (1, "wrong")


@pytest.mark.parametrize("number", [None, 7])
def test_a_revision_of_a_thought_that_is_not_there_is_recorded_without_it(number):
    chain = start()
    add(chain, 1)

    add(chain, 2, is_revision=True, revises_thought_number=number)

    assert isinstance(last(chain), ThoughtRevised)
    assert last(chain).revises_thought_number == number
    assert last(chain).revises_thought_id is None


# Branches


def test_the_first_thought_of_a_branch_hangs_under_the_branching_point():
    chain = start()
    first, _second = add(chain, 1), add(chain, 2)

    add(chain, 3, branch_id="b", branch_from_thought_number=1)

    event = last(chain)
    assert isinstance(event, ThoughtBranched)
    assert (event.parent_thought_id, event.branch_from_thought_id) == (first, first)
    assert (event.branch_id, event.is_revision) == ("b", False)
    assert chain.branches == ["b"]


def test_branch_and_trunk_go_on_each_for_itself():
    chain = start()
    first = add(chain, 1)
    on_branch = add(chain, 2, branch_id="b", branch_from_thought_number=1)

    add(chain, 2)
    assert (type(last(chain)), last(chain).parent_thought_id) == (ThoughtAdded, first)
    add(chain, 3, branch_id="b", branch_from_thought_number=1)
    assert (type(last(chain)), last(chain).parent_thought_id) == (ThoughtAdded, on_branch)
    assert last(chain).sequence == 4


def test_a_branch_that_revises_is_one_event_that_says_both():
    chain = start()
    first = add(chain, 1)

    add(
        chain,
        2,
        branch_id="b",
        branch_from_thought_number=1,
        is_revision=True,
        revises_thought_number=1,
    )

    assert isinstance(last(chain), ThoughtBranched)
    assert last(chain).is_revision
    assert last(chain).revises_thought_id == first


@pytest.mark.parametrize("number", [None, 9])
def test_a_branch_from_a_thought_that_is_not_there_hangs_under_nothing(number):
    chain = start()
    add(chain, 1)

    add(chain, 2, branch_id="b", branch_from_thought_number=number)

    assert isinstance(last(chain), ThoughtBranched)
    assert last(chain).branch_from_thought_number == number
    assert last(chain).branch_from_thought_id is None
    assert last(chain).parent_thought_id is None


def test_branches_are_listed_by_first_appearance():
    chain = start()
    for branch_id in ("z", "a", "z", "m", "a"):
        add(chain, 1, branch_id=branch_id)

    assert chain.branches == ["z", "a", "m"]


def test_a_closed_branch_takes_no_more_thoughts():
    chain = start()
    add(chain, 1)
    add(chain, 2, branch_id="b", branch_from_thought_number=1)

    chain.close_branch("b", Outcome.MERGED, conclusion="agreed")

    event = last(chain)
    assert isinstance(event, BranchClosed)
    assert (event.branch_id, event.outcome, event.conclusion) == ("b", "merged", "agreed")
    for command in (chain.add_thought, chain.think):
        with pytest.raises(BranchClosedError) as refusal:
            command(uuid4(), a_thought(3, branch_id="b"))
        assert (refusal.value.chain_id, refusal.value.branch_id) == (chain.id, "b")
    add(chain, 3)


def test_a_branch_is_closed_once():
    chain = start()
    add(chain, 1, branch_id="b")
    chain.close_branch("b", Outcome.KEPT)

    with pytest.raises(BranchClosedError):
        chain.close_branch("b", Outcome.ABANDONED)


def test_a_branch_that_is_not_there_cannot_be_closed():
    chain = start()
    add(chain, 1)

    with pytest.raises(BranchNotFoundError) as refusal:
        chain.close_branch("b", Outcome.KEPT)

    assert refusal.value.branch_id == "b"


# Finding a thought by the number its author gave it


def test_the_latest_thought_of_a_number_is_found():
    chain = start()
    add(chain, 1)
    again = add(chain, 1)

    assert chain.steps.find(1) == again
    assert chain.steps.find(2) is None


def test_the_trunk_is_searched_before_the_branches():
    chain = start()
    on_trunk = add(chain, 1)
    on_branch = add(chain, 2, branch_id="b", branch_from_thought_number=1)
    add(chain, 1, branch_id="b")

    assert chain.steps.find(1) == on_trunk
    assert chain.steps.find(2) == on_branch


def test_a_dead_end_is_found_only_when_nothing_else_has_its_number():
    chain = start()
    first = add(chain, 1)
    dead = add(chain, 1)
    chain.abandon_thought(dead)

    assert chain.steps.find(1) == first

    chain.abandon_thought(first)
    assert chain.steps.find(1) == dead


def test_a_parent_that_is_not_there_is_refused():
    chain = start()
    missing = uuid4()

    with pytest.raises(ThoughtNotFoundError) as refusal:
        add(chain, 1, parent_thought_id=missing)

    assert refusal.value.thought == missing
    assert chain.thought_count == 0


def test_a_thought_is_not_its_own_parent():
    chain = start()
    thought_id = uuid4()

    with pytest.raises(ThoughtNotFoundError):
        chain.add_thought(thought_id, a_thought(parent_thought_id=thought_id))


# Dead ends


def test_a_thought_given_up_is_recorded_with_its_number():
    chain = start()
    thought_id = add(chain, 4)

    chain.abandon_thought(thought_id, reason="leads nowhere")

    event = last(chain)
    assert isinstance(event, ThoughtAbandoned)
    assert (event.thought_id, event.thought_number, event.reason) == (
        thought_id,
        4,
        "leads nowhere",
    )


def test_what_hangs_under_a_dead_end_is_given_up_with_it():
    chain = start()
    root = add(chain, 1)
    dead = add(chain, 2, branch_id="b", branch_from_thought_number=1)
    under_it = add(chain, 3, branch_id="b")
    beside_it = add(chain, 2)

    chain.abandon_thought(dead)
    later = add(chain, 4, branch_id="b")

    assert [
        chain.steps.is_abandoned(each) for each in (root, dead, under_it, later, beside_it)
    ] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_giving_up_a_thought_twice_is_recorded_once():
    chain = start()
    thought_id = add(chain)
    chain.abandon_thought(thought_id)
    chain.collect()

    chain.abandon_thought(thought_id)

    assert chain.collect() == []


def test_a_thought_that_is_not_there_cannot_be_given_up():
    chain = start()
    thought_id = uuid4()

    with pytest.raises(ThoughtNotFoundError) as refusal:
        chain.abandon_thought(thought_id)

    assert (refusal.value.chain_id, refusal.value.thought) == (chain.id, thought_id)


# The drop-in tool


@pytest.mark.parametrize("status", [Status.PAUSED, Status.ABANDONED])
def test_thinking_on_a_paused_or_abandoned_chain_is_refused(status):
    chain = in_status(status)

    with pytest.raises(ChainNotActiveError) as refusal:
        chain.think(uuid4(), a_thought())

    assert refusal.value.status == status


def test_the_last_thought_of_the_trunk_completes_the_chain():
    chain = start()

    chain.think(uuid4(), a_thought(next_thought_needed=False))

    assert [event.TOPIC for event in chain.collect()] == [
        "chain.started",
        "thought.added",
        "chain.completed",
    ]
    assert chain.status is Status.COMPLETED


def test_the_last_thought_of_a_branch_completes_nothing():
    chain = start()
    chain.think(uuid4(), a_thought())

    chain.think(uuid4(), a_thought(2, branch_id="b", next_thought_needed=False))

    assert chain.status is Status.ACTIVE


def test_a_completed_chain_is_taken_up_again_by_thinking():
    chain = in_status(Status.COMPLETED)

    chain.think(uuid4(), a_thought(2))

    reopened, thought = chain.collect()
    assert isinstance(reopened, ChainReopened)
    assert isinstance(thought, ThoughtAdded)
    assert chain.status is Status.ACTIVE


def test_a_refused_thought_does_not_reopen_a_completed_chain():
    chain = start()
    add(chain, 1, branch_id="b")
    chain.close_branch("b", Outcome.KEPT)
    chain.complete()
    chain.collect()

    with pytest.raises(BranchClosedError):
        chain.think(uuid4(), a_thought(2, branch_id="b"))

    assert chain.status is Status.COMPLETED
    assert chain.collect() == []


# Limits


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ({"text": "é" * (THOUGHT_BYTES_MAX // 2)}, THOUGHT_BYTES_MAX),
        ({"metadata": "m" * METADATA_BYTES_MAX}, METADATA_BYTES_MAX),
        ({"reason": "r" * TEXT_BYTES_MAX}, TEXT_BYTES_MAX),
        ({"critique": "\U0001f9e0" * (TEXT_BYTES_MAX // 4)}, TEXT_BYTES_MAX),
        ({"counter_argument": "c" * TEXT_BYTES_MAX}, TEXT_BYTES_MAX),
        ({"next_step_rationale": "n" * TEXT_BYTES_MAX}, TEXT_BYTES_MAX),
        ({"assumptions": ("a" * TEXT_BYTES_MAX,)}, TEXT_BYTES_MAX),
        ({"branch_id": "b" * ID_CHARACTERS_MAX}, ID_CHARACTERS_MAX),
        ({"source": "s" * ID_CHARACTERS_MAX}, ID_CHARACTERS_MAX),
    ],
)
@pytest.mark.parametrize("verb", ["add_thought", "think"])
def test_a_thought_at_its_limit_is_taken_and_one_over_it_refused(verb, said, limit):
    chain = start()
    ((name, value),) = said.items()
    longer = (value[0] + "x",) if isinstance(value, tuple) else value + "x"

    getattr(chain, verb)(uuid4(), a_thought(**said))
    with pytest.raises(LimitExceededError) as refusal:
        getattr(chain, verb)(uuid4(), a_thought(**{name: longer}))

    assert (refusal.value.size, refusal.value.limit) == (limit + 1, limit)
    assert chain.thought_count == 1


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ({"title": "t" * TEXT_BYTES_MAX}, TEXT_BYTES_MAX),
        ({"title": "", "session_id": "s" * ID_CHARACTERS_MAX}, ID_CHARACTERS_MAX),
        ({"title": "", "source": "s" * ID_CHARACTERS_MAX}, ID_CHARACTERS_MAX),
        ({"title": "", "metadata": "m" * METADATA_BYTES_MAX}, METADATA_BYTES_MAX),
    ],
)
def test_a_start_at_its_limit_is_taken_and_one_over_it_refused(said, limit):
    *_, (name, value) = said.items()

    ThoughtChain.start(uuid4(), **said)
    with pytest.raises(LimitExceededError) as refusal:
        ThoughtChain.start(uuid4(), **(said | {name: value + "x"}))

    assert refusal.value.limit == limit


@pytest.mark.parametrize(
    "command",
    [
        lambda chain: chain.pause(reason="r" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.resume(reason="r" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.complete(reason="r" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.complete(conclusion="c" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.complete(metadata="m" * (METADATA_BYTES_MAX + 1)),
        lambda chain: chain.abandon(reason="r" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.abandon(metadata="m" * (METADATA_BYTES_MAX + 1)),
        lambda chain: chain.abandon_thought(uuid4(), reason="r" * (TEXT_BYTES_MAX + 1)),
        lambda chain: chain.close_branch("b", Outcome.KEPT, conclusion="c" * (TEXT_BYTES_MAX + 1)),
    ],
)
def test_reasons_and_conclusions_over_the_limit_are_refused(command):
    with pytest.raises(LimitExceededError):
        command(start())


# Properties


@given(said=command_lists)
def test_replay_equals_live_at_every_version(said):
    chain = start()
    history = chain.collect()
    lived = {chain.version: state(chain)}
    for command in said:
        for event in accepted(chain, command) or []:
            history.append(event)
            lived[event.originator_version] = {}
        lived[chain.version] = state(chain)

    assert [event.originator_version for event in history] == list(range(1, len(history) + 1))
    # Between the events of one command there was no moment to look at the chain.
    for version in (version for version, then in lived.items() if then):
        assert state(replay(history[:version])) == lived[version]


@given(said=command_lists)
def test_order_shape_and_count_follow_from_the_events(said):
    chain = start()
    history = chain.collect()
    for command in said:
        history += accepted(chain, command) or []

    thoughts = [
        e for e in history if isinstance(e, ThoughtAdded | ThoughtRevised | ThoughtBranched)
    ]
    opened = [e.branch_id for e in thoughts if isinstance(e, ThoughtBranched)]
    assert [e.sequence for e in thoughts] == list(range(1, len(thoughts) + 1))
    assert len({e.thought_id for e in thoughts}) == len(thoughts) == chain.thought_count
    assert opened == chain.branches
    assert all(
        chain.steps.of(e.thought_id)[:2] == (e.thought_id, e.thought_number) for e in thoughts
    )


@given(said=command_lists, undone=st.lists(commands, min_size=1, max_size=6))
def test_forget_undoes_exactly_what_was_decided_since_the_mark(said, undone):
    chain = begun()
    for command in said:
        accepted(chain, command)
    before, order, mark = state(chain), list(chain.steps.heads), chain.mark()

    decided = [event for command in undone for event in accepted(chain, command) or []]
    chain.forget(decided, mark)

    assert state(chain) == before
    assert list(chain.steps.heads) == order


@given(said=command_lists)
def test_a_refused_command_leaves_no_trace(said):
    chain = begun()
    for command in said:
        before = state(chain)
        try:
            command.perform(chain)
        except LedgerError:
            assert state(chain) == before
        chain.collect()


@given(said=command_lists)
def test_a_chain_forgotten_and_asked_again_decides_the_same(said):
    chain, twin = begun(), begun()
    for command in said:
        mark = chain.mark()
        chain.forget(accepted(chain, command) or [], mark)

        again = accepted(chain, command)
        once = accepted(twin, command)

        assert (again is None) == (once is None)
        assert [facts(event) for event in again or []] == [facts(event) for event in once or []]


def facts(event: ChainEvent) -> dict[str, Any]:
    return vars(event) | {"timestamp": None, "topic": event.TOPIC}


def test_feedback_moves_the_version_and_nothing_else():
    chain = start()
    before = state(chain)

    chain.trigger_event(
        FeedbackGiven, signal="helpful", thought_id=None, scope=None, source="human", note=None
    )

    changed = {name for name, value in state(chain).items() if value != before[name]}
    assert changed <= {"_version", "_modified_on", "_pending_events"}
    assert chain.version == 2


def test_the_histories_of_these_tests_meet_refusals_and_every_kind_of_event():
    seen: set[str] = set()
    refused: set[str] = set()

    @settings(max_examples=400)
    @given(said=command_lists)
    def live(said: list[Command]) -> None:
        chain = begun()
        for command in said:
            events = accepted(chain, command)
            seen.update(event.TOPIC for event in events or [])
            if events is None:
                refused.add(command.verb)

    live()

    assert seen == CATALOGUE.keys() - {"chain.started", "chain.recalled"}
    assert len(refused) == 10
