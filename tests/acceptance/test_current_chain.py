"""Which chain the drop-in tool takes a thought for, and when a chain refuses it."""

import pytest

from tests.acceptance.client import thought
from tests.acceptance.product import is_one_clear_sentence, replay, run_well, texts, topics

# Which chain


def test_a_first_thought_starts_a_chain_and_the_next_ones_go_on_with_it(server):
    first = server.think("one", number=1)
    second = server.think("two", number=2)

    assert second["chain_id"] == first["chain_id"]
    assert second["thoughtHistoryLength"] == 2


def test_a_first_thought_with_any_number_starts_a_chain(server, shared_data_dir):
    answer = server.think("in the middle", number=7)

    assert texts(replay(answer["chain_id"], data_dir=shared_data_dir)) == ["in the middle"]


def test_another_thought_number_1_starts_another_chain_and_leaves_the_old_one(
    server, shared_data_dir
):
    old = server.think("old", number=1, branchFromThought=1, branchId="left")

    new = server.think("new", number=1)

    assert new["chain_id"] != old["chain_id"]
    assert new["thoughtHistoryLength"] == 2, "without chain_id the whole connection counts"
    assert new["branches"] == ["left"], "without chain_id the whole connection counts"
    events = replay(old["chain_id"], data_dir=shared_data_dir)
    assert texts(events) == ["old"]
    assert "chain.completed" not in topics(events)
    assert "chain.abandoned" not in topics(events)


@pytest.mark.parametrize(
    "others",
    [
        {"isRevision": True},
        {"revisesThought": 1},
        {"branchFromThought": 1, "branchId": "b"},
    ],
    ids=["a revision", "what it revises", "a branch"],
)
def test_thought_number_1_that_revises_or_branches_stays_in_the_chain(server, others):
    first = server.think("one", number=1)

    again = server.think("again", number=1, **others)

    assert again["chain_id"] == first["chain_id"]


@pytest.mark.parametrize(
    "half",
    [{"branchFromThought": 1}, {"branchId": "b"}, {"branchFromThought": 1, "branchId": ""}],
    ids=["no id", "no origin", "empty id"],
)
def test_half_a_branch_is_none(server, half):
    first = server.think("one", number=1)

    answer = server.think("again", number=1, **half)

    assert answer["branches"] == []
    assert answer["chain_id"] != first["chain_id"]


def test_two_first_thoughts_sent_at_once_go_into_one_chain(server):
    one, two = server.call_pipelined(
        [
            ("sequentialthinking", thought("one", number=1)),
            ("sequentialthinking", thought("two", number=2)),
        ]
    )

    assert one["chain_id"] == two["chain_id"]


def test_two_thoughts_number_1_sent_at_once_start_two_chains(server):
    calls = [("sequentialthinking", thought(text, number=1)) for text in ("this", "that")]

    this, that = server.call_pipelined(calls)

    assert this["chain_id"] != that["chain_id"]


def test_with_a_chain_id_history_and_branches_are_those_of_the_chain(server):
    old = server.think("old", number=1)
    server.think("other chain", number=1)
    server.think("other branch", number=2, branchFromThought=1, branchId="elsewhere")

    answer = server.think(
        "old goes on", number=2, branchFromThought=1, branchId="here", chain_id=old["chain_id"]
    )

    assert answer["chain_id"] == old["chain_id"]
    assert answer["thoughtHistoryLength"] == 2
    assert answer["branches"] == ["here"]


def test_a_named_chain_takes_a_thought_number_1_too(server):
    first = server.think("one", number=1)

    again = server.think("one again", number=1, chain_id=first["chain_id"])

    assert again["chain_id"] == first["chain_id"]
    assert again["thoughtHistoryLength"] == 2


@pytest.mark.parametrize(
    "chain_id",
    ["00000000-0000-4000-8000-000000000000", "not-a-uuid"],
    ids=["unknown", "malformed"],
)
def test_a_chain_that_is_not_there_is_refused_and_nothing_is_recorded(server, chain_id):
    server.think("one", number=1)

    refused = server.think("lost", number=2, chain_id=chain_id)

    assert refused.outcome == "isError"
    assert refused.structured is None
    assert is_one_clear_sentence(refused.text), refused.text
    assert server.think("two", number=2)["thoughtHistoryLength"] == 2


# The life of a chain


def test_the_last_thought_completes_the_chain_and_a_later_one_reopens_it(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]
    server.think("done", number=2, more=False)

    server.think("not yet", number=3)

    assert topics(replay(chain, data_dir=shared_data_dir)) == [
        "chain.started",
        "thought.added",
        "thought.added",
        "chain.completed",
        "chain.reopened",
        "thought.added",
    ]


def test_the_last_thought_of_a_branch_does_not_complete_the_chain(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]

    server.think("end of a branch", number=2, more=False, branchFromThought=1, branchId="b")

    assert "chain.completed" not in topics(replay(chain, data_dir=shared_data_dir))


@pytest.mark.parametrize("command", ["pause", "abandon"])
@pytest.mark.parametrize("named", [True, False], ids=["named", "current"])
def test_a_paused_or_abandoned_chain_refuses_until_it_is_resumed(
    server, shared_data_dir, command, named
):
    chain = server.think("one", number=1)["chain_id"]
    where = {"chain_id": chain} if named else {}
    run_well(command, chain, "--reason", "out of context", data_dir=shared_data_dir)

    refused = server.think("too late", number=2, **where)
    run_well("resume", chain, data_dir=shared_data_dir)
    taken = server.think("in time", number=2, **where)

    assert refused.outcome == "isError"
    assert is_one_clear_sentence(refused.text), refused.text
    assert "resume" in refused.text.lower()
    assert taken["chain_id"] == chain
    assert taken["thoughtHistoryLength"] == 2
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "in time"]


def test_beside_a_paused_chain_thought_number_1_starts_anew(server, shared_data_dir):
    paused = server.think("one", number=1)["chain_id"]
    run_well("pause", paused, data_dir=shared_data_dir)

    anew = server.think("something else", number=1)

    assert anew["chain_id"] != paused


def test_references_are_recorded_as_they_were_given(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]

    server.think("dangling", number=2, isRevision=True, revisesThought=99)
    server.think("gap", number=50)
    server.think("from nowhere", number=3, branchFromThought=77, branchId="b")

    events = replay(chain, data_dir=shared_data_dir)
    assert texts(events) == ["one", "dangling", "gap", "from nowhere"]
    assert topics(events)[2] == "thought.revised"
    assert events[4]["branch_id"] == "b"
