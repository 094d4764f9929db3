"""The tiers as text: never over their budget, whole lines, with where each comes from."""

import re
from collections import Counter
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ledger.display import printable
from projections.tiers.text import (
    AVOIDED,
    IDENTITY_TOKENS_MAX,
    MEMORIES,
    SOLVED,
    SUMMARY_TOKENS_MAX,
    UUID_TOKENS,
    Best,
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


def patterns_of(kind):
    return st.builds(
        Pattern,
        kind=st.just(kind),
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


@st.composite
def best(draw, rows):
    """Some rows, and how many there are of them: as a rule there are no others."""
    found = draw(st.lists(rows, max_size=40))
    more = draw(st.just(0) | st.integers(0, 10**18)) if found else 0
    return Best(found, len(found) + more)


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


def memory(**said):
    return TrustedMemory(
        **{"chain_id": CHAIN, "thought_id": CHAIN, "text": "look", "trust": 0.9, "position": 4}
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


@given(best(patterns_of(SOLVED)), best(patterns_of(AVOIDED)), best(memories))
def test_a_summary_keeps_its_budget_and_tells_of_every_kind(solved, avoided, known):
    text = summary_text(solved, avoided, known)

    assert tokens_of(text) <= SUMMARY_TOKENS_MAX
    assert (text == "") == (not solved.rows and not avoided.rows and not known.rows)
    patterns_text, _, memories_text = text.partition(MEMORIES)
    for kind, part, said, more in (
        (solved, patterns_text, "- Solved ", "more solved"),
        (avoided, patterns_text, "- Avoided ", "more dead ends"),
        (known, memories_text, "- ", "more memories"),
    ):
        lines = [line for line in part.split("\n") if line.startswith(said)]
        left_out = [
            line for line in part.split("\n") if re.fullmatch(rf"- and [\d,]+ {more}", line)
        ]
        shown = len([line for line in lines if line not in left_out])
        assert (shown > 0) == (kind.total > 0)
        assert shown + sum(_count(line) for line in left_out) == kind.total


def _count(line):
    return int(line.split()[2].replace(",", ""))


def test_the_kinds_take_turns_and_keep_their_order():
    solved = [pattern(SOLVED, title=f"problem {n} {'x' * 100}") for n in range(100)]
    avoided = [pattern(AVOIDED, approach=f"dead end {n} {'x' * 100}") for n in range(100)]
    known = [memory(text=f"memory {n} {'x' * 100}") for n in range(3)]

    text = summary_text(Best(solved, 100), Best(avoided, 250), Best(known, 3))

    kinds = [re.match(r"- (Solved|Avoided|memory|and)|## \w+", line) for line in text.splitlines()]
    counts = Counter(found[0] for found in kinds if found)
    assert counts["- memory"] == 3
    assert abs(counts["- Solved"] - counts["- Avoided"]) <= 1
    assert counts["- Solved"] >= 5
    assert [*counts] == ["## Reasoning", "- Solved", "- and", "- Avoided", MEMORIES, "- memory"]
    assert f"- and {250 - counts['- Avoided']} more dead ends\n" in text
    assert tokens_of(text) > SUMMARY_TOKENS_MAX - 200


def test_a_uuid_is_counted_as_what_a_tokenizer_makes_of_it():
    assert tokens_of(str(CHAIN)) == UUID_TOKENS
    assert tokens_of(f"ab {CHAIN}, {CHAIN}") == 2 * UUID_TOKENS + 2


def test_what_would_drive_a_terminal_or_turn_the_text_around_is_not_passed_on():
    line = pattern_line(pattern(SOLVED, title="a\x1b[2Jb\u202ec\u2028d", session_id="S\x07"))

    assert line.startswith('- Solved "a\ufffd[2Jb\ufffdc d" via')
    assert "(session S\ufffd, " in line
    assert line.isprintable()


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=5), st.integers(0, 10**12))
def test_the_identity_is_one_line_in_its_budget(agents, titles, count):
    text = identity_text(
        Identity(chains=count, thoughts=count, sessions=count, agents=agents, titles=titles)
    )

    assert tokens_of(text) <= IDENTITY_TOKENS_MAX
    assert text.isprintable()


@given(texts, st.integers(2, 200))
def test_an_extract_is_the_beginning_on_one_line(text, most):
    cut = extract(text, most)

    assert len(cut) <= most
    assert printable(" ".join(text.split())).startswith(cut.removesuffix("…"))
    assert cut.isprintable()
