"""Texts in Unicode's form NFKC: what any library makes of them, but in bounds."""

import unicodedata
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.normal import LIGATURE, MARKS_MAX, nfkc
from projections.recall.snippets import snippet_of
from projections.tokens import digest_of, places_of, terms_of

NORMALIZE = unicodedata.normalize
MARKS = ["\u0300", "\u0315", "\u0f73", "\uff9e", "\u0344", "\U0001e94a", "\u05b0", "\u3099"]

anything = st.text(st.characters(codec="utf-8") | st.sampled_from([*MARKS, LIGATURE]), max_size=60)


def longest_run(text):
    """Of marks, as NFKC sees them: it sorts each run, one mark past one other at a time."""
    classes = map(unicodedata.combining, NORMALIZE("NFKD", text))
    return max((len(list(run)) for is_run, run in groupby(classes, bool) if is_run), default=0)


@pytest.fixture
def runs(monkeypatch):
    """The longest run of each text that was normalised."""
    seen = []

    def look(form, text):
        seen.append(longest_run(text))
        return NORMALIZE(form, text)

    monkeypatch.setattr(unicodedata, "normalize", look)
    return seen


@given(anything)
def test_a_text_without_a_long_run_of_marks_is_normalised_as_ever(text):
    if longest_run(text) <= MARKS_MAX:
        assert nfkc(text) == unicodedata.normalize("NFKC", text)


@given(anything, st.text(st.sampled_from(MARKS), min_size=MARKS_MAX, max_size=200), anything)
def test_no_run_of_marks_is_long_after_it(before, marks, after):
    # Where the text is cut a mark may stand for two, and a letter have two of its own.
    assert longest_run(nfkc(before + marks + after)) <= 2 * MARKS_MAX + 2


def test_a_run_is_cut_after_its_first_marks():
    assert nfkc("x" + MARKS_MAX * "\u0315") == "x" + MARKS_MAX * "\u0315"
    assert nfkc("x" + 99 * "\u0315" + "y") == "x" + MARKS_MAX * "\u0315" + "y"


@pytest.mark.parametrize("marks", ["\u0315\u0300", "\u0315\uff9e", "\u0f73\u0f71", "\u0344"])
@pytest.mark.parametrize(
    "read",
    [
        digest_of,
        terms_of,
        lambda text: list(places_of(text)),
        lambda text: snippet_of(text, {"zebra": 1.0}),
    ],
    ids=["digest", "terms", "places", "snippet"],
)
def test_marks_without_end_are_never_sorted_at_once(runs, marks, read):
    read("a" + marks * 500)

    assert 0 < max(runs) <= 2 * MARKS_MAX
