"""The strict arguments of the critical tool, its ranges and its means, without a database."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.confidence import confidences
from ledger.episodes import Episode
from ledger.errors import LedgerError, LimitExceededError, ReferenceOutOfRangeError
from ledger.limits import TEXT_BYTES_MAX
from ledger.thought import Thought
from mcp_server.critical.inputs import parse_criticalthinking
from mcp_server.critical.strict import TYPES, SchemaError
from mcp_server.inputs import InputError

PLAIN = {
    "thought": "t",
    "thoughtNumber": 1,
    "totalThoughts": 3,
    "nextThoughtNeeded": True,
    "confidence": 0.5,
    "assumptions": [],
    "critique": "c",
    "counterArgument": "a",
    "nextStepRationale": "n",
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


def thought(confidence=None, **others):
    said = {"text": "t", "thought_number": 1, "total_thoughts": 3, "next_thought_needed": True}
    return Thought(**{**said, "confidence_millionths": confidence, **others})


@given(st.dictionaries(st.sampled_from([*TYPES, "foo"]), json_values))
def test_any_arguments_are_read_or_refused(others):
    try:
        heard = parse_criticalthinking({**PLAIN, **others})
    except (InputError, LedgerError):
        return

    assert 0 <= heard.thought.confidence_millionths <= 1_000_000
    assert heard.thought.text


@pytest.mark.parametrize(("confidence", "millionths"), [(0, 0), (1, 1_000_000), (0.1, 100_000)])
def test_a_confidence_is_kept_in_millionths(confidence, millionths):
    heard = parse_criticalthinking({**PLAIN, "confidence": confidence})

    assert heard.thought.confidence_millionths == millionths


@pytest.mark.parametrize("confidence", [float("nan"), float("inf"), 10**400, -1])
def test_a_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(InputError):
        parse_criticalthinking({**PLAIN, "confidence": confidence})


@pytest.mark.parametrize("field", ["nextThoughtNeeded", "assumptions"])
def test_a_required_field_that_may_be_null_must_still_be_there(field):
    with pytest.raises(InputError) as refusal:
        parse_criticalthinking({**PLAIN, field: None})
    with pytest.raises(SchemaError):
        parse_criticalthinking({name: PLAIN[name] for name in PLAIN if name != field})

    assert not isinstance(refusal.value, SchemaError)


def test_a_text_over_its_limit_is_refused():
    with pytest.raises(LimitExceededError):
        parse_criticalthinking({**PLAIN, "assumptions": ["a" * (TEXT_BYTES_MAX + 1)]})


def test_what_only_names_an_earlier_thought_is_recorded_as_a_revision_but_not_told_as_one():
    heard = parse_criticalthinking({**PLAIN, "revisesThought": 1})

    assert heard.thought.is_revision
    assert not heard.marked_revision


def test_a_reference_beyond_the_thoughts_there_are_is_refused_and_leaves_no_trace():
    chain = ThoughtChain.start(uuid4(), title="t")
    chain.think_in_range(uuid4(), thought())

    for reference in ({"revises_thought_number": 2}, {"branch_from_thought_number": 2}):
        with pytest.raises(ReferenceOutOfRangeError) as refusal:
            chain.think_in_range(uuid4(), thought(**reference))
        assert refusal.value.length == 1

    assert chain.thought_count == 1


def test_means_are_those_of_the_trunk_and_of_each_branch_and_forgotten_with_their_thoughts():
    chain = ThoughtChain.start(uuid4(), title="t")
    for confidence in (600_000, None, 700_000):
        chain.think(uuid4(), thought(confidence))
    chain.think(uuid4(), thought(200_000, branch_id="b", branch_from_thought_number=1))
    chain.collect()
    mark = chain.mark()
    chain.think(uuid4(), thought(900_000))

    chain.forget(chain.collect(), mark)

    lines = confidences(chain.steps)
    assert {line: (c.count, c.mean) for line, c in lines.items()} == {
        None: (2, 0.6499999999999999),
        "b": (1, 0.2),
    }


def test_an_episode_has_one_chain_and_another_name_another():
    names = ["default", "session", "criticalthinking", "episode"]
    chain_id = Episode(*names).chain_id

    others = {Episode(*names[:i], "x", *names[i + 1 :]).chain_id for i in range(4)}

    assert Episode(*names).chain_id == chain_id
    assert len(others | {chain_id}) == 5


def test_an_episode_starts_a_chain_that_says_where_it_is_from():
    episode = Episode("default", "session", "criticalthinking", "night")

    chain = episode.start("first line\nsecond")

    assert (chain.id, chain.session_id, chain.source) == (
        episode.chain_id,
        "session",
        "criticalthinking",
    )
