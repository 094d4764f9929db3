"""``get_related_chains`` over stdio: what was just thought is found, and real reasoning is."""

import json
import random
from uuid import uuid4

import pytest

from tests.acceptance.client import Server, thought
from tests.acceptance.product import eventually, is_one_clear_sentence, run_well, temporary_data_dir
from tests.acceptance.traces import read_operations

TOOLSETS = ("--toolsets", "compat,chains")
CHAINS, SAMPLES, CHARACTERS_MIN = 1_000, 100, 40
SECONDS_MAX = 120

pytestmark = pytest.mark.timeout(3 * SECONDS_MAX)


@pytest.fixture(scope="module")
def server():
    """One server for all tests of the module, which look for words of their own."""
    with temporary_data_dir() as data_dir, Server(data_dir, *TOOLSETS) as server:
        # Its worker is up a moment after the first answers.
        eventually(lambda: "stale" not in search(server, "anything").structured)
        yield server


def search(server, query, **wanted):
    answer = server.call("get_related_chains", {"query": query, **wanted})
    assert answer.outcome == "answered", answer.text
    assert json.loads(answer.text) == answer.structured
    assert answer["count"] == len(answer["chains"])
    assert answer["how"] == "text"
    assert answer["because"]
    return answer


def found(server, query, **wanted):
    answer = search(server, query, **wanted)
    assert "stale" not in answer.structured
    return [chain["chain_id"] for chain in answer["chains"]]


def test_what_was_just_thought_is_found(server):
    for number in range(10):
        words = f"The xylophone {uuid4()} is number {number} of them."
        added = server.call("add_thought", thought(words, 1, session_id="music"))

        answer = search(server, words)

        assert "stale" not in answer.structured
        assert answer["position"] >= added["position"]
        row = answer["chains"][0]
        # How far it is trusted is folded beside; until it is there, nothing is known of it.
        assert row.pop("trust") in {None, 0.5}
        assert row == {
            "chain_id": added["chain_id"],
            "session_id": "music",
            "status": "active",
            "snippet": words,
            "score": 1,
            "thought_count": 1,
        }


def test_the_drop_in_tool_s_thoughts_are_found(server):
    chain = server.think("Is the marimba in src/BarScale.py out of tune?", number=1)["chain_id"]

    assert found(server, "marimba") == found(server, "barscale") == [chain]
    assert found(server, "src/barscale.py") == found(server, "scale") == [chain]


def test_a_chain_is_found_with_the_status_it_has_now(server):
    chain = server.call("add_thought", thought("about a vibraphone", 1))["chain_id"]

    def seen(**wanted):
        return [row["status"] for row in search(server, "vibraphone", **wanted)["chains"]]

    assert seen() == ["active"]
    server.call("pause_thought_chain", {"chain_id": chain})
    assert (seen(), seen(include="paused")) == ([], ["paused"])
    server.call("abandon_thought_chain", {"chain_id": chain})
    assert (seen(include="paused"), seen(include=["abandoned"])) == ([], ["abandoned"])
    server.call("resume_thought_chain", {"chain_id": chain})
    assert seen() == ["active"]
    server.call("complete_thought_chain", {"chain_id": chain})
    assert seen() == ["completed"]


def test_a_dead_end_is_told(server):
    chain = server.call("add_thought", thought("tune the glockenspiel", 1))["chain_id"]
    server.call("abandon_thought_chain", {"chain_id": chain, "thought_number": 1})

    (row,) = search(server, "some glockenspiel")["chains"]

    assert (row["chain_id"], row["status"], row["dead_end"]) == (chain, "active", True)


def test_filters_and_limit(server):
    chains = {
        session: [
            server.call("add_thought", thought("a celesta", 1, session_id=session))["chain_id"]
            for _ in range(3)
        ]
        for session in ("c1", "c2")
    }

    assert sorted(found(server, "celesta", session_id="c1")) == sorted(chains["c1"])
    assert len(found(server, "celesta", limit="4")) == 4
    assert len(found(server, "celesta", agent="acceptance")) == 6
    assert found(server, "celesta", agent="somebody else") == []


@pytest.mark.parametrize(
    "arguments", [{}, {"query": ""}, {"query": "q", "include": "all"}, {"query": "q", "limit": 0}]
)
def test_what_cannot_be_understood_is_refused(server, arguments):
    answer = server.call("get_related_chains", arguments)

    assert answer.outcome == "isError"
    assert answer.structured is None
    assert is_one_clear_sentence(answer.text)


def test_it_answers_before_any_worker_has_built_anything_and_as_far_as_one_has():
    with temporary_data_dir() as data_dir:
        with Server(data_dir, *TOOLSETS, "--no-worker") as server:
            first = server.call("add_thought", thought("one celesta", 1))

            empty = search(server, "celesta")
        run_well("chains", data_dir=data_dir)
        with Server(data_dir, *TOOLSETS, "--no-worker") as server:
            filled = search(server, "celesta")
            server.call("add_thought", thought("another celesta", 1))
            behind = search(server, "celesta")

    assert (empty["count"], empty["position"], empty["stale"]) == (0, 0, True)
    (row,) = filled["chains"]
    assert row["chain_id"] == first["chain_id"]
    assert filled["position"] == first["position"]
    assert "stale" not in filled.structured
    assert behind["chains"] == filled["chains"]
    assert behind["stale"] is True


# Real reasoning


def test_any_recorded_thought_finds_a_chain_that_holds_it_first(tmp_path):
    operations = read_operations()
    keys = list(dict.fromkeys(operation["chain"] for operation in operations))
    # Every so many, so that all kinds of reasoning are among them.
    wanted = set(keys[:: max(len(keys) // CHAINS, 1)])
    kept = [operation for operation in operations if operation["chain"] in wanted]
    file = tmp_path / "traces.jsonl"
    file.write_text("".join(json.dumps(operation) + "\n" for operation in kept))
    texts = {
        operation["content"]
        for operation in kept
        if operation["op"] in ("append", "branch", "revise")
        and len(operation["content"]) >= CHARACTERS_MIN
    }

    with temporary_data_dir() as data_dir:
        run_well("import", file, data_dir=data_dir, timeout=SECONDS_MAX)
        run_well("chains", data_dir=data_dir, timeout=SECONDS_MAX)
        with Server(data_dir, *TOOLSETS) as server:
            for text in random.Random(5).sample(sorted(texts), SAMPLES):
                (chain, *_) = found(server, text, include=["abandoned", "paused"], limit=3)
                assert text in _texts(server, chain), text


def _texts(server, chain_id):
    texts, wanted = set(), {"chain_id": chain_id}
    while True:
        page = server.call("get_thought_chain", wanted)
        texts |= {said["thought"] for said in page["thoughts"]}
        if "next" not in page.structured:
            return texts
        wanted["from"] = page["next"]
