"""Policy 1 of trust, number by number and event by event."""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, getcontext
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.events import ChainRecalled, Judgement, Outcome, Scope
from ledger.header import Context
from ledger.recalls import recalls_of
from ledger.serialization import decode, store
from ledger.thought import Thought
from projections.trust import policy
from projections.trust.fold import TrustFold
from projections.trust.policy import Level, Signal

DAY = 24 * 60 * 60 * 1_000_000
START = datetime(2026, 1, 1, tzinfo=UTC)


class Story:
    """One chain, and what is said and done with it, day by day; ``fold`` has heard all of it."""

    def __init__(self) -> None:
        self.fold = TrustFold()
        self.now = START
        self.chain = ThoughtChain.start(uuid4(), title="t")
        self.told = []
        self._tell()

    def does(self, verb: str, *said, after_days: float = 0, **named) -> "Story":
        self.now += timedelta(days=after_days)
        getattr(self.chain, verb)(*said, **named)
        return self._tell()

    def thinks(self, number: int = 1, **fields) -> UUID:
        thought_id = uuid4()
        self.does(
            "add_thought",
            thought_id,
            Thought(
                text="t",
                thought_number=number,
                total_thoughts=9,
                next_thought_needed=True,
                **fields,
            ),
        )
        return thought_id

    def recalls(self, *thought_ids: UUID, after_days: float = 0) -> "Story":
        self.now += timedelta(days=after_days)
        event = ChainRecalled(
            originator_id=recalls_of(self.chain.id),
            originator_version=1,
            timestamp=self.now,
            chain_id=self.chain.id,
            tool="get_thought_chain",
            thought_ids=list(map(str, thought_ids)),
        )
        return self._hear(event)

    def score(self, thought_id: UUID, after_days: float = 0) -> int:
        chain = self.fold.chains[self.chain.id]
        moment = policy.microseconds(self.now + timedelta(days=after_days))
        return self.fold.memories[thought_id].value_at(chain.active_at(moment))

    def _tell(self) -> "Story":
        for event in self.chain.collect():
            vars(event)["timestamp"] = self.now
            self._hear(event)
        return self

    def _hear(self, event) -> "Story":
        recorded = decode(len(self.told) + 1, store(event, Context(actor="ada")))
        self.told.append(recorded)
        self.fold.apply(recorded)
        return self


@pytest.mark.parametrize(
    ("value", "days", "left"),
    [
        (500_000, 0, 500_000),
        (500_000, 90, 350_000),
        (500_000, 180, 275_000),
        (500_001, 90, 350_001),
        (500_000, 45, 412_132),
        (1_000_000, 36_500, 200_000),
        (200_001, 90, 200_001),
        (200_000, 90, 200_000),
        (150_000, 900, 150_000),
        (0, 900, 0),
        (500_000, -1, 500_000),
    ],
)
def test_decay_halves_what_is_above_the_floor_in_ninety_days(value, days, left):
    assert policy.decayed(value, days * DAY) == left


@given(value=st.integers(200_001, 1_000_000), elapsed=st.integers(0, 40_000 * DAY))
def test_decay_is_the_formula_rounded_half_up(value, elapsed):
    getcontext().prec = 40
    power = Decimal(2) ** (-Decimal(elapsed) / Decimal(90 * DAY))
    exact = (200_000 + (value - 200_000) * power).quantize(Decimal(1), ROUND_HALF_UP)

    assert policy.decayed(value, elapsed) == int(exact)


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (0, Level.ARCHIVED),
        (199_999, Level.ARCHIVED),
        (200_000, Level.LOW),
        (399_999, Level.LOW),
        (400_000, Level.MEDIUM),
        (699_999, Level.MEDIUM),
        (700_000, Level.HIGH),
        (799_999, Level.HIGH),
        (800_000, Level.PROMOTED),
        (1_000_000, Level.PROMOTED),
    ],
)
def test_levels(score, level):
    assert policy.level_of(score) is level


@pytest.mark.parametrize(
    ("signal", "delta"),
    [
        (Signal.AGENT_USED, 50_000),
        (Signal.USER_CONFIRMED, 100_000),
        (Signal.AGENT_IGNORED, -20_000),
        (Signal.USER_CORRECTED, -150_000),
        (Signal.SUPERSEDED, -50_000),
    ],
)
def test_signals(signal, delta):
    assert policy.signalled(500_000, signal) == 500_000 + delta
    assert policy.signalled(0, signal) == max(delta, 0)
    assert policy.signalled(1_000_000, signal) == 1_000_000 + min(delta, 0)


def test_means_and_what_is_shown_are_rounded_half_up():
    assert policy.mean([]) is None
    assert policy.mean([1, 2]) == 2
    assert policy.mean([1, 1, 2]) == 1
    assert policy.shown(123_450) == 0.1235
    assert policy.shown(123_449) == 0.1234


def test_a_completion_tells_once_in_a_chains_life_and_for_every_thought_there_was():
    story = Story()
    early = story.thinks()
    story.does("complete").does("resume")
    late = story.thinks()
    story.does("complete")

    assert (story.score(early), story.score(late)) == (550_000, 500_000)


def test_every_abandonment_tells_for_every_thought():
    story = Story()
    first = story.thinks()
    story.does("abandon").does("resume")
    second = story.thinks()
    story.does("abandon")

    assert (story.score(first), story.score(second)) == (460_000, 480_000)


def test_a_confirmation_is_for_the_latest_thought_and_a_correction_for_the_last_of_the_trunk():
    story = Story()
    root, trunk = story.thinks(1), story.thinks(2)
    branch = story.thinks(3, branch_id="b", branch_from_thought_number=1)
    story.does("judge", Judgement.CONFIRMED, source="u").does(
        "judge", Judgement.CORRECTED, source="u"
    )

    assert [*map(story.score, (root, trunk, branch))] == [500_000, 350_000, 600_000]


def test_feedback_about_a_thought_is_for_that_thought_each_time():
    story = Story()
    root, last = story.thinks(1), story.thinks(2)
    for _ in range(2):
        story.does("judge", Judgement.CONFIRMED, source="u", thought_id=root)
    story.does("judge", Judgement.CORRECTED, source="u", thought_id=last)

    assert (story.score(root), story.score(last)) == (700_000, 350_000)


def test_a_chain_is_confirmed_once_by_each_source():
    story = Story()
    thoughts = [story.thinks(number) for number in (1, 2)]
    for source in ("ada", "bob", "ada"):
        story.does("judge", Judgement.CONFIRMED, source=source, scope=Scope.CHAIN)

    assert [*map(story.score, thoughts)] == [700_000, 700_000]


def test_each_revision_tells_against_what_it_revises():
    story = Story()
    first = story.thinks(1)
    again = [
        story.thinks(2, is_revision=True, revises_thought_number=1, revises_thought_id=first)
        for _ in range(2)
    ]

    assert story.score(first) == 400_000
    assert not story.fold.memories[first].counts
    assert [*map(story.score, again)] == [500_000, 500_000]


def test_a_dead_end_takes_what_hangs_under_it_along():
    story = Story()
    root, dead, under = (story.thinks(number) for number in (1, 2, 3))
    beside = story.thinks(4, branch_id="b", branch_from_thought_number=1)
    story.does("abandon_thought", dead)
    later = story.thinks(5)

    assert [*map(story.score, (root, dead, under, beside))] == [500_000, 480_000, 480_000, 500_000]
    # What comes to hang under it afterwards is part of it and was not ignored.
    assert story.score(later) == 500_000
    assert [story.fold.memories[one].counts for one in (root, dead, under, beside, later)] == [
        True,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(("outcome", "score"), [("kept", 500_000), ("abandoned", 480_000)])
def test_a_branch_given_up_is_a_dead_end(outcome, score):
    story = Story()
    root = story.thinks(1)
    branch = story.thinks(2, branch_id="b", branch_from_thought_number=1)
    on_it = story.thinks(3, branch_id="c", branch_from_thought_id=branch)
    story.does("close_branch", "b", Outcome(outcome))

    assert [*map(story.score, (root, branch, on_it))] == [500_000, score, score]


def test_a_value_decays_to_its_signal_and_from_there():
    story = Story()
    thought = story.thinks()
    story.does("judge", Judgement.CONFIRMED, source="u", after_days=90)

    assert story.score(thought) == 450_000
    assert story.score(thought, after_days=90) == 325_000


def test_days_in_which_a_chain_was_paused_do_not_count():
    story = Story()
    thought = story.thinks()
    story.does("pause", after_days=45)

    assert story.score(thought, after_days=500) == policy.decayed(500_000, 45 * DAY)
    story.does("judge", Judgement.CONFIRMED, source="u", after_days=10)
    assert story.score(thought) == policy.decayed(500_000, 45 * DAY) + 100_000
    story.does("resume", after_days=10)
    assert (
        story.score(thought, after_days=90)
        == 200_000 + (policy.decayed(500_000, 45 * DAY) - 100_000 + 1) // 2
    )


def test_a_clock_that_goes_back_gives_nothing_back_and_takes_nothing_twice():
    story = Story()
    thought = story.thinks()
    story.does("judge", Judgement.CONFIRMED, source="u", after_days=90)
    story.does("judge", Judgement.CONFIRMED, source="u", after_days=-30)

    assert story.score(thought, after_days=30) == 550_000
    assert story.score(thought, after_days=120) == 375_000


days = st.floats(0, 400, allow_nan=False)


@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["confirm", "correct", "pause", "complete", "abandon", "think"]), days
        ),
        max_size=8,
    ),
    recalls=st.lists(days, min_size=1, max_size=5),
    asked=st.lists(days, min_size=1),
)
def test_a_recall_never_raises_a_score_at_any_time(said, recalls, asked):
    without, recalled = (_lived(said, times) for times in ([], recalls))

    for memory, other in zip(
        without.fold.memories.values(), recalled.fold.memories.values(), strict=True
    ):
        for day in asked:
            score = recalled.score(other.thought_id, day)
            assert score <= without.score(memory.thought_id, day)
    assert sum(each.count for each in recalled.fold.recalls.values()) == len(recalls)


def _lived(said, recalls) -> Story:
    """The same story for the same said, with a recall of its first thought after each of them."""
    story = Story()
    first = story.thinks()
    times = iter(recalls)
    for verb, day in said:
        half = next(times, None)
        if half is not None:
            story.now += timedelta(days=day / 2)
            story.recalls(first)
            story.now -= timedelta(days=day / 2)
        story.now += timedelta(days=day)
        _does(story, verb)
    for _ in times:
        story.recalls(first)
    return story


def _does(story: Story, verb: str) -> None:
    judgements = {"confirm": Judgement.CONFIRMED, "correct": Judgement.CORRECTED}
    if verb in judgements:
        story.does("judge", judgements[verb], source="u")
        return
    if story.chain.status != "active":
        story.does("resume")
    if verb == "think":
        story.thinks(2)
    else:
        story.does(verb)
