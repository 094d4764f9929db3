"""What a question is reduced to, and what its terms are worth."""

import pytest

from projections.recall.question import (
    QUERY_CHARACTERS_MAX,
    QUERY_TERMS_MAX,
    AskedTerms,
    asked_terms,
    weigh,
)


def test_a_question_is_reduced_to_its_longest_terms():
    words = ["x" * length for length in range(1, 61)] + ["the", "of", "an", "is", "so"]

    assert len(asked_terms(" ".join(words))) == QUERY_TERMS_MAX
    assert asked_terms("of the cache") == ["cache", "the", "of"]


def test_of_a_question_so_much_is_looked_at():
    assert asked_terms("a " * (QUERY_CHARACTERS_MAX // 2) + "late") == ["a"]


def test_so_many_entries_are_gone_through_from_the_rarest_term_on():
    terms = AskedTerms(weights={}, entries={"rare": 1, "some": 50, "most": 100})

    assert terms.rarest(151) == ["rare", "some", "most"]
    assert terms.rarest(150) == ["rare", "some"]
    assert terms.rarest(0) == ["rare"], "one at least"
    assert AskedTerms(weights={}, entries={}).rarest(9) == []


def test_a_rare_term_is_worth_more_and_one_that_nobody_says_takes_its_part():
    known = weigh(["common", "rare", "absent"], {"common": 900, "rare": 3}, 1_000)

    assert list(known.entries) == ["rare", "common"]
    assert known.weights["rare"] > known.weights["common"] > 0
    assert sum(known.weights.values()) < 1
    assert sum(weigh(["rare"], {"rare": 3}, 9).weights.values()) == pytest.approx(1)


def test_more_texts_than_were_counted_do_no_harm():
    assert weigh(["new"], {"new": 5}, 3).weights == {"new": 1}
