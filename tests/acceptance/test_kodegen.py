"""kodegen's sequential thinking: the examples of its README, and what sessions promise."""

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import chains, is_one_clear_sentence, replay, texts, topics

KODEGEN = ("--toolsets", "kodegen")


@pytest.fixture
def server(shared_data_dir):
    with Server(shared_data_dir, *KODEGEN) as server:
        yield server


# The examples


def test_basic(server, shared_data_dir):
    steps = [
        "I need to calculate 15 * 24 step by step",
        "Using distribution: 15 * 24 = 15 * (20 + 4)",
        "15*20 = 300, 15*4 = 60, so 300 + 60 = 360",
    ]

    answers = [
        think(server, step, number, total=3, more=number < 3)
        for number, step in enumerate(steps, start=1)
    ]

    session, chain = answers[0]["session_id"], answers[0]["chain_id"]
    assert [answer.structured for answer in answers] == [
        {
            "session_id": session,
            "thought_number": number,
            "total_thoughts": 3,
            "next_thought_needed": number < 3,
            "branches": [],
            "thought_history_length": number,
            "chain_id": chain,
        }
        for number in (1, 2, 3)
    ]
    assert texts(replay(chain, data_dir=shared_data_dir)) == steps


def test_revision(server, shared_data_dir):
    think(server, "The capital of Australia is Sydney", 1, total=5)
    think(server, "So the parliament is in Sydney", 2, total=5)

    answer = think(
        server,
        "Wait, I need to revise my earlier assumption",
        3,
        total=5,
        is_revision=True,
        revises_thought=2,
    )

    assert answer["is_revision"] is True
    assert answer["revises_thought"] == 2
    assert answer["thought_history_length"] == 3
    events = replay(answer["chain_id"], data_dir=shared_data_dir)
    assert topics(events)[-1] == "thought.revised"


def test_branch(server):
    think(server, "Reads are slow", 1, total=5)
    think(server, "An index would help", 2, total=5)
    branch = {"branch_from_thought": 2, "branch_id": "denormalize-approach"}

    left = think(server, "Let me explore denormalization as an alternative", 3, total=5, **branch)
    trunk = think(server, "The index it is, for now", 3, total=5)
    again = think(server, "Denormalized, writes cost more", 4, total=5, **branch)

    assert left["branch_id"] == "denormalize-approach"
    assert left["branch_from_thought"] == 2
    assert left["branches"] == ["denormalize-approach"]
    assert "branch_id" not in trunk.structured
    assert again["branches"] == ["denormalize-approach"]
    assert again["thought_history_length"] == 5


def test_dynamic_adjustment(server):
    think(server, "Three steps should do", 1, total=5)
    think(server, "Or not", 2, total=5)

    more = think(
        server,
        "Actually, this needs more steps than I thought",
        3,
        total=7,
        needs_more_thoughts=True,
    )
    beyond = think(server, "Even more", 9, total=7)

    assert more["total_thoughts"] == 7
    assert beyond["total_thoughts"] == 9


# Sessions


def test_interleaved_sessions_do_not_see_each_other(server):
    lengths = {}
    for number in (1, 2, 3):
        for session in ("a", "b"):
            answer = think(
                server,
                f"{session}{number}",
                number,
                session_id=session,
                branch_from_thought=1,
                branch_id=f"branch of {session}",
            )
            lengths.setdefault(session, []).append(answer["thought_history_length"])
            assert answer["session_id"] == session
            assert answer["branches"] == [f"branch of {session}"]

    assert lengths == {"a": [1, 2, 3], "b": [1, 2, 3]}


def test_a_session_named_by_nobody_is_the_connections_and_can_be_named_later(shared_data_dir):
    with Server(shared_data_dir, *KODEGEN) as server:
        first = think(server, "one", 1)
        named = think(server, "two", 2, session_id=first["session_id"])

    with Server(shared_data_dir, *KODEGEN) as server:
        stranger = think(server, "elsewhere", 2)
        later = think(server, "three", 3, session_id=first["session_id"])

    assert named["chain_id"] == later["chain_id"] == first["chain_id"]
    assert later["thought_history_length"] == 3
    assert stranger["thought_history_length"] == 1
    assert stranger["session_id"] != first["session_id"]


def test_a_session_survives_the_kill_of_its_server(data_dir):
    with Server(data_dir, *KODEGEN) as server:
        first = think(server, "one", 1, session_id="s", branch_from_thought=1, branch_id="b")
        think(server, "the end", 2, more=False, session_id="s")
        server.kill()

    with Server(data_dir, *KODEGEN) as server:
        later = think(server, "not yet", 3, session_id="s")

    assert later["chain_id"] == first["chain_id"]
    assert later["thought_history_length"] == 3
    assert later["branches"] == ["b"]


def test_a_new_thought_number_1_keeps_the_chain_before_it(server, shared_data_dir):
    old = think(server, "old", 1, session_id="two-chains")

    new = think(server, "new", 1, session_id="two-chains")

    assert new["chain_id"] != old["chain_id"]
    assert new["thought_history_length"] == 2
    assert texts(replay(old["chain_id"], data_dir=shared_data_dir)) == ["old"]


def test_a_chain_records_the_session_it_is_of(data_dir):
    with Server(data_dir, *KODEGEN) as server:
        chain = think(server, "one", 1, session_id="mine")["chain_id"]

    assert set(chains(data_dir)) == {chain}
    assert replay(chain, data_dir=data_dir)[0]["session_id"] == "mine"


# Arguments


def test_arguments_are_read_as_clients_send_them(server):
    said = {
        "thought": "t",
        "thought_number": "1",
        "totalThoughts": 3.0,
        "next_thought_needed": "true",
        "session_id": None,
        "is_revision": False,
        "revises_thought": None,
        "branch_from_thought": None,
        "branch_id": "",
        "needs_more_thoughts": "null",
    }

    answer = server.call("sequential_thinking", said)

    assert answer["thought_number"] == 1
    assert answer["total_thoughts"] == 3


def test_a_refusal_names_every_field_as_this_tool_does_and_records_nothing(server):
    said = {"thought": "t", "thought_number": 0, "total_thoughts": 1, "session_id": 7}

    refused = server.call("sequential_thinking", said)

    assert refused.outcome == "isError"
    assert refused.structured is None
    assert is_one_clear_sentence(refused.text)
    for field in ("thought_number", "next_thought_needed", "session_id"):
        assert field in refused.text
    assert "thoughtNumber" not in refused.text
    assert think(server, "first", 1)["thought_history_length"] == 1


def think(server, text, number, total=3, more=True, **others):
    said = {
        "thought": text,
        "thought_number": number,
        "total_thoughts": total,
        "next_thought_needed": more,
    }
    return server.call("sequential_thinking", {**said, **others})
