"""The part of a text that is shown of what was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.recall import snippets
from projections.recall.snippets import (
    PIECE_CHARACTERS,
    PIECES_MAX,
    SNIPPET_CHARACTERS_MAX,
    snippet_of,
)
from projections.tokens import TEXT_CHARACTERS_MAX, places_of, terms_of

words = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "x" * 300, "索引", "\0", "e\u0301"]), max_size=120
)


def test_a_short_text_is_shown_whole_on_one_line():
    assert snippet_of(" a\n b\0 ", {"b": 1.0}) == "a b\ufffd"


def test_the_place_with_most_of_what_was_asked_is_shown():
    far = "filler " * 80
    text = f"{far} cache once {far} the cache holds every index {far}"

    snippet = snippet_of(text, {"cache": 1.0, "index": 2.0})

    assert "cache holds every index" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_a_term_that_is_said_again_and_again_counts_once():
    text = "cache " * 60 + "filler " * 60 + "cache index" + " filler" * 60

    assert "index" in snippet_of(text, {"cache": 1.0, "index": 0.5})


def test_the_end_of_a_text_is_shown_without_an_ellipsis_after_it():
    snippet = snippet_of("filler " * 80 + "the index", {"index": 1.0})

    assert snippet.endswith("the index")


def test_without_a_place_the_beginning_is_shown():
    snippet = snippet_of("word " * 100, {"absent": 1.0})

    assert snippet.startswith("word word")
    assert snippet.endswith("word…")


@given(words, st.dictionaries(st.sampled_from(["alpha", "gamma", "索引"]), st.floats(0.1, 1)))
def test_a_snippet_is_bounded_and_of_the_text(said, weights):
    text = " ".join(said)

    snippet = snippet_of(text, weights)

    assert len(snippet) <= SNIPPET_CHARACTERS_MAX
    assert "\n" not in snippet
    assert snippet.strip("…") in " ".join(text.replace("\0", "\ufffd").split())


@given(
    st.lists(st.sampled_from(["filler", "cache", "IndexPage", "e\u0301te\u0301"]), max_size=900),
    st.sampled_from(["zebra", "straße", "ZEBRA", "ze\u0301bra", "aZebra_b", "索引zebra"]),
)
def test_a_word_is_found_wherever_it_stands_in_a_long_text(said, word):
    text = " ".join(["far"] * 200 + said + [word] + ["off"] * 200)

    assert word in snippet_of(text, dict.fromkeys(terms_of(word), 1.0))


def test_of_a_long_text_a_bounded_part_is_taken_apart(monkeypatch):
    looked_at = []

    def look(text):
        looked_at.append(len(text))
        return places_of(text)

    monkeypatch.setattr(snippets, "places_of", look)
    text = "azebra az_ebra zebr " * (TEXT_CHARACTERS_MAX // 20)

    snippet_of(text, {"zebra": 1.0, "ebra": 1.0, "absent": 1.0})

    assert 0 < sum(looked_at) <= PIECES_MAX * (PIECE_CHARACTERS + SNIPPET_CHARACTERS_MAX)


@pytest.mark.parametrize("query", ["zebra", "ZebraCrossing", "zebra_9", "a/zebra.py"])
def test_words_in_the_midst_of_others_do_not_hide_a_word(query):
    text = "brazebra crossings " * 800 + query + " brazebra crossings" * 800

    assert f" {query} " in snippet_of(text, dict.fromkeys(terms_of(query), 1.0))
