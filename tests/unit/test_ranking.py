"""What is ranked before what: the rules of one score."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.recall.candidates import Candidate
from projections.recall.ranking import Strategy, rank_chains, rank_thoughts

CHAIN = UUID(int=1)
HOW = [Strategy.HYBRID, Strategy.VECTOR, Strategy.TEXT]
shares = st.floats(0, 0.99)  # the words of a text never make up all that could be said
trusts = st.none() | st.floats(0, 1)


def text(position=1, chain_id=CHAIN, thought_id=None, **known):
    return Candidate(position, chain_id, thought_id or uuid4(), **known)


def title(position=1, chain_id=CHAIN, **known):
    return Candidate(position, chain_id, None, **known)


candidates = st.lists(
    st.builds(
        Candidate,
        position=st.integers(1, 2**40),
        chain_id=st.sampled_from([UUID(int=n) for n in range(1, 5)]),
        thought_id=st.none() | st.uuids(),
        share=shares,
        is_exact=st.booleans(),
        similarity=st.none() | st.floats(-1, 1),
        dead_end=st.booleans(),
        trust=trusts,
    ),
    max_size=12,
    unique_by=lambda candidate: candidate.position,
)


@given(candidates, st.sampled_from(HOW))
def test_a_chain_is_one_row_best_first_from_0_to_1(found, how):
    ranked = rank_chains(found, how, {})

    chains = [row.best.chain_id for row in ranked]
    assert len(chains) == len(set(chains))
    assert [row.score for row in ranked] == sorted((row.score for row in ranked), reverse=True)
    assert all(0 < row.score <= 1 for row in ranked)
    assert all(row.best in found for row in ranked)


@given(candidates, st.sampled_from([Strategy.HYBRID, Strategy.TEXT]), st.floats(0, 1))
def test_the_exact_text_is_worth_1_and_nothing_else_is(found, how, trust):
    for row in rank_chains(found, how, dict.fromkeys([UUID(int=n) for n in range(1, 5)], trust)):
        holds_it = any(c.is_exact for c in found if c.chain_id == row.best.chain_id)
        assert (row.score == 1) == holds_it


@given(shares, st.floats(-1, 1), trusts, trusts, st.sampled_from(HOW))
def test_more_trust_never_means_less(share, similarity, one, other, how):
    def score(trust):
        known = {} if trust is None else {CHAIN: trust}
        found = [text(share=share, similarity=similarity)]
        return sum(row.score for row in rank_chains(found, how, known))

    if one is not None and other is not None:
        assert (score(one) <= score(other)) or one > other
    assert score(0.5) == score(None)


def test_a_chain_has_the_best_of_its_words_and_of_its_likeness():
    words, alike = text(1, share=0.6, similarity=0.1), text(2, share=0.0, similarity=0.9)
    other = text(3, UUID(int=2), share=0.5, similarity=0.5)

    first, second = rank_chains([other, words, alike], Strategy.HYBRID, {})

    assert (first.best, first.score) == (words, pytest.approx((0.6 + 0.45) / 1.5))
    assert (second.best, second.score) == (other, pytest.approx((0.5 + 0.25) / 1.5))


def test_what_is_not_embedded_yet_counts_by_its_words_alone():
    (row,) = rank_chains([text(share=0.7)], Strategy.HYBRID, {})

    assert row.score == 0.7
    assert rank_chains([text(share=0.7)], Strategy.VECTOR, {}) == []


@pytest.mark.parametrize("how", HOW)
def test_a_dead_end_is_worth_half_and_comes_after_its_equal(how):
    live = text(1, UUID(int=1), share=0.4, similarity=0.4)
    dead = text(2, UUID(int=2), share=0.8, similarity=0.8, dead_end=True)

    ranked = rank_chains([dead, live], how, {})

    assert [row.best for row in ranked] == [live, dead]
    assert ranked[0].score == ranked[1].score


def test_a_revised_thought_comes_after_its_revision():
    revision = text(1, share=0.5)
    revised = text(2, share=0.6, superseded_by=revision.thought_id)

    assert [row.best for row in rank_thoughts([revised, revision], Strategy.TEXT)] == [
        revision,
        revised,
    ]


def test_a_title_stands_for_its_chain_when_nothing_better_does():
    (row,) = rank_chains([title(share=0.9), text(2, share=0.1)], Strategy.TEXT, {})

    assert row.best.thought_id is None
    assert row.score == pytest.approx(0.36)
    assert rank_thoughts([title(share=0.9)], Strategy.TEXT) == []


def test_a_thought_is_ranked_by_its_own_trust():
    good, poor = text(1, share=0.5, trust=0.9), text(2, share=0.5, trust=0.1)

    assert [row.best for row in rank_thoughts([poor, good], Strategy.TEXT)] == [good, poor]
