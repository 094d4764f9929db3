"""What a text is found by: its terms, in any script, whole and in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.tokens import (
    TERM_CHARACTERS_MAX,
    TERMS_MAX,
    TEXT_CHARACTERS_MAX,
    digest_of,
    places_of,
    terms_of,
    tokens_of,
)

anything = st.text(st.characters(codec="utf-8"), max_size=60)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cache, the CACHE!", {"the": 2, "cache": 2}),
        ("snake_case", {"snake_case": 1, "snake": 1, "case": 1}),
        ("__init__", {"__init__": 1, "init": 1}),
        ("CamelCase", {"camelcase": 1, "camel": 1, "case": 1}),
        ("HTTPServer2", {"httpserver2": 1, "http": 1, "server2": 1}),
        ("well-known", {"well-known": 1, "well": 1, "known": 1}),
        ("3.14", {"3.14": 1, "3": 1, "14": 1}),
        ("Straße STRASSE", {"strasse": 2}),
        ("e\u0301te\u0301 ÉTÉ", {"été": 2}),
        ("ﬁne fullｗidth", {"fine": 1, "fullwidth": 1}),
        ("हिन्दी में", {"हिन्दी": 1, "में": 1}),
        ("데이터베이스", {"데이터베이스": 1}),
        ("索引か", {"索": 1, "引": 1, "か": 1, "索引": 1, "引か": 1}),
        ("SQLの索引", {"sql": 1, "の": 1, "索": 1, "引": 1, "の索": 1, "索引": 1}),
        ("--- ... ___ \u200d", {}),
        ("a\0b", {"a": 1, "b": 1}),
        ("", {}),
    ],
)
def test_the_terms_of_a_text(text, terms):
    assert terms_of(text) == terms


@pytest.mark.parametrize(
    "asked", ["src/index/BarBaz_page.py", "BarBaz_page.py", "barbaz", "bar", "Baz", "page", "py"]
)
def test_a_path_is_found_whole_by_its_name_and_by_each_part(asked):
    terms = terms_of("look into src/index/BarBaz_page.py.")

    assert next(iter(terms_of(asked))) in terms


def test_a_term_has_a_limit_and_is_cut_alike_when_it_is_asked_for():
    word = "x" * 10 * TERM_CHARACTERS_MAX

    assert list(terms_of(word)) == ["x" * TERM_CHARACTERS_MAX]


def test_a_text_has_limits():
    many = " ".join(f"w{number}" for number in range(2 * TERMS_MAX))
    late = "a " * (TEXT_CHARACTERS_MAX // 2) + "late"
    ligature = "\ufdfa" * TEXT_CHARACTERS_MAX

    assert len(terms_of(many)) == TERMS_MAX
    assert terms_of(late) == {"a": TEXT_CHARACTERS_MAX // 2}
    assert sum(map(len, tokens_of(ligature))) <= TEXT_CHARACTERS_MAX


@given(anything)
def test_each_word_of_a_text_alone_asks_for_terms_of_the_text(text):
    terms = terms_of(text)

    for word in text.split():
        assert terms_of(word).keys() <= terms.keys()


@given(anything)
def test_terms_can_be_passed_joined_by_blanks(text):
    for term in terms_of(text):
        assert term.split() == [term]
        assert 0 < len(term) <= TERM_CHARACTERS_MAX


@given(anything)
def test_each_place_is_of_a_token_that_is_there(text):
    places = list(places_of(text))

    assert all(0 <= start < end <= len(text) for start, end, _ in places)
    assert [start for start, _, _ in places] == sorted(start for start, _, _ in places)


def test_a_digest_knows_no_case_form_or_white_space():
    assert digest_of("Which index?\n A b-tree.") == digest_of("which  INDEX? a B-tree. ")
    assert digest_of("which index") != digest_of("which index?")
    assert digest_of("a\0b") == digest_of("a\ufffdb")
    assert digest_of(" \n") is None


@given(anything)
def test_a_digest_fits_the_database(text):
    digest = digest_of(text)

    assert digest is None or -(2**63) <= digest < 2**63
