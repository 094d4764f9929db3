"""The tiers as text: never over their budget, whole lines, with where each comes from."""

import re
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from projections.tiers.text import (
    AVOIDED,
    IDENTITY_TOKENS_MAX,
    SOLVED,
    SUMMARY_TOKENS_MAX,
    Identity,
    Pattern,
    TrustedMemory,
    extract,
    identity_text,
    pattern_line,
    summary_text,
    tokens_of,
)

CHAIN = UUID(int=7)
texts = st.text(max_size=400) | st.text(alphabet="索引🧠e\u0301 \n", max_size=400)

patterns = st.builds(
    Pattern,
    kind=st.sampled_from([SOLVED, AVOIDED]),
    chain_id=st.uuids(),
    session_id=st.none() | texts,
    title=texts,
    approach=texts,
    trust=st.none() | st.floats(0, 1),
    recalls=st.integers(0, 10**6),
    positions=st.lists(st.integers(1, 2**62), max_size=3),
)
memories = st.builds(
    TrustedMemory,
    chain_id=st.uuids(),
    thought_id=st.uuids(),
    text=texts,
    trust=st.floats(0, 1),
    position=st.integers(1, 2**62),
)


def pattern(kind, **said):
    return Pattern(
        **{
            "kind": kind,
            "chain_id": CHAIN,
            "session_id": "S1",
            "title": "the slow export",
            "approach": "an index on created_at",
            "trust": 0.85,
            "recalls": 0,
            "positions": [3, 9],
        }
        | said
    )


def test_what_was_solved_is_one_line_with_its_session_confidence_and_events():
    assert pattern_line(pattern(SOLVED)) == (
        '- Solved "the slow export" via "an index on created_at" approach '
        f"(session S1, confidence 0.85) [chain {CHAIN}, events 3 9]"
    )


def test_a_dead_end_is_one_line_with_how_often_it_was_read():
    line = pattern_line(pattern(AVOIDED, session_id=None, recalls=3, positions=[5]))

    assert line == (
        '- Avoided dead end "an index on created_at" of "the slow export" (recalled 3 times) '
        f"[chain {CHAIN}, events 5]"
    )


@given(st.lists(patterns, max_size=40), st.lists(memories, max_size=40))
def test_a_summary_keeps_its_budget_in_whole_lines_and_tells_what_is_left_out(found, known):
    text = summary_text(found, known)

    assert tokens_of(text) <= SUMMARY_TOKENS_MAX
    told = [line for line in text.split("\n") if line.startswith("- ")]
    left_out = [line for line in told if re.fullmatch(r"- and \d+ more", line)]
    missing = sum(int(line.split()[2]) for line in left_out)
    assert len(told) - len(left_out) + missing == len(found) + len(known)
    assert (text == "") == (not found and not known)


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=5), st.integers(0, 10**12))
def test_the_identity_is_one_line_in_its_budget(agents, titles, count):
    text = identity_text(
        Identity(chains=count, thoughts=count, sessions=count, agents=agents, titles=titles)
    )

    assert tokens_of(text) <= IDENTITY_TOKENS_MAX
    assert len(text.splitlines()) == 1


@given(texts, st.integers(2, 200))
def test_an_extract_is_the_beginning_on_one_line(text, most):
    cut = extract(text, most)

    assert len(cut) <= most
    assert " ".join(text.split()).startswith(cut.removesuffix("…"))
