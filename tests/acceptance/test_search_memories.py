"""``search_memories``: single thoughts, with how far they are trusted and why."""

import pytest

from tests.acceptance.client import Server, thought
from tests.acceptance.product import eventually, is_one_clear_sentence, temporary_data_dir

TOOLSETS = ("--toolsets", "compat,chains,memory")


@pytest.fixture(scope="module")
def server():
    """One server for all tests of the module, which look for words of their own."""
    with temporary_data_dir() as data_dir, Server(data_dir, *TOOLSETS) as server:
        eventually(lambda: "stale" not in search(server, "anything").structured)
        yield server


def search(server, query, **wanted):
    answer = server.call("search_memories", {"query": query, **wanted})
    assert answer.outcome == "answered", answer.text
    assert answer["count"] == len(answer["memories"])
    return answer


def rows(server, query, **wanted):
    answer = search(server, query, **wanted)
    assert "stale" not in answer.structured
    return answer["memories"]


def think(server, *texts, **where):
    added = None
    for number, text in enumerate(texts, 1):
        where |= {"chain_id": added["chain_id"]} if added else {}
        added = server.call("add_thought", thought(text, number, **where))
    return added


def trusted(server, query, scores):
    """Once trust is folded up to what was told, each row's score."""
    eventually(lambda: [row.get("trust") for row in rows(server, query)] == scores)


def test_each_thought_is_a_row_the_exact_text_first(server):
    texts = ["the oboe is flat", "the oboe is flat when it is cold", "so warm the oboe"]
    added = think(server, *texts, session_id="winds")

    found = rows(server, texts[0])

    assert [row["snippet"] for row in found[:2]] == texts[:2]
    assert found[0]["score"] == 1
    assert {row["chain_id"] for row in found} == {added["chain_id"]}
    assert [row["thought_number"] for row in found[:2]] == [1, 2]
    assert {row["session_id"] for row in found} == {"winds"}


def test_what_was_confirmed_comes_first_and_what_was_corrected_sinks_with_its_reasons(server):
    chains = [think(server, "tune the bassoon by its reed")["chain_id"] for _ in range(3)]
    for chain_id, signal in zip(chains, ["corrected", "confirmed"], strict=False):
        server.call("record_feedback", {"chain_id": chain_id, "signal": signal})
    trusted(server, "bassoon reed tune", [0.6, 0.5, 0.35])

    found = rows(server, "bassoon reed tune", explain=True)

    assert [row["chain_id"] for row in found] == [chains[1], chains[2], chains[0]]
    ((reason,), (), (fault,)) = [row["because"] for row in found]
    assert (reason["signal"], reason["before"], reason["after"]) == ("user_confirmed", 0.5, 0.6)
    assert (fault["signal"], fault["delta"]) == ("user_corrected", -0.15)
    assert [row["level"] for row in found] == ["medium", "medium", "low"]


def test_a_floor_of_trust_leaves_out_what_is_trusted_less(server):
    good, poor = (think(server, "the piccolo is loud")["chain_id"] for _ in range(2))
    server.call("record_feedback", {"chain_id": good, "signal": "confirmed"})
    trusted(server, "piccolo loud", [0.6, 0.5])

    assert [row["chain_id"] for row in rows(server, "piccolo", min_trust=0.55)] == [good]
    assert {row["chain_id"] for row in rows(server, "piccolo", min_trust="0.5")} == {good, poor}


def test_what_is_archived_is_left_out_unless_asked_for(server):
    chain_id = think(server, "a contrabassoon is a flute")["chain_id"]
    for _ in range(3):
        server.call("record_feedback", {"chain_id": chain_id, "signal": "corrected"})
    eventually(lambda: not rows(server, "contrabassoon"))

    (row,) = rows(server, "contrabassoon", min_trust=0)

    assert (row["chain_id"], row["trust"]) == (chain_id, 0.05)


def test_filters_by_session_agent_status_and_time(server):
    added = think(server, "a clarinet in A", session_id="reeds")
    think(server, "a clarinet in B")

    assert len(rows(server, "clarinet")) == 2
    assert [row["chain_id"] for row in rows(server, "clarinet", session_id="reeds")] == [
        added["chain_id"]
    ]
    assert rows(server, "clarinet", agent="nobody") == []
    assert rows(server, "clarinet", since="2020-01-01") == rows(server, "clarinet")
    assert rows(server, "clarinet", since="2999-01-01T00:00Z") == []
    assert rows(server, "clarinet", until="2020-01-01") == []
    server.call("pause_thought_chain", {"chain_id": added["chain_id"]})
    assert len(rows(server, "clarinet")) == 1
    assert len(rows(server, "clarinet", include=["paused"])) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": ""},
        {"query": "q", "strategy": "magic"},
        {"query": "q", "since": "yesterday"},
        {"query": "q", "min_trust": 2},
        {"query": "q", "at_least": -1},
    ],
)
def test_what_cannot_be_understood_is_refused(server, arguments):
    answer = server.call("search_memories", arguments)

    assert answer.outcome == "isError"
    assert is_one_clear_sentence(answer.text)
