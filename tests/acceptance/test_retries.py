"""Retries with a request id, and sessions that outlive their process."""

from uuid import uuid4

import pytest

from tests.acceptance.client import Server, thought
from tests.acceptance.product import is_one_clear_sentence, replay, run_well, texts

# Request ids


def test_a_retry_gets_the_first_answer_and_adds_nothing(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]
    arguments = {"number": 2, "chain_id": chain, "requestId": str(uuid4())}
    first = server.think("two", **arguments)
    server.think("three", number=3, chain_id=chain)

    again = server.think("two", **arguments)

    assert again.structured == first.structured
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two", "three"]


def test_a_retry_gets_the_first_answer_also_after_a_pause(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]
    arguments = {"number": 2, "chain_id": chain, "requestId": str(uuid4())}
    first = server.think("two", **arguments)
    run_well("pause", chain, data_dir=shared_data_dir)

    again = server.think("two", **arguments)

    assert again.structured == first.structured
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two"]


def test_a_retry_of_a_chains_first_thought_does_not_start_a_second_chain(shared_data_dir):
    request = {"number": 1, "requestId": str(uuid4())}
    with Server(shared_data_dir) as server:
        first = server.think("one", **request)
        again = server.think("one", **request)

    with Server(shared_data_dir) as another_process:
        later = another_process.think("one", **request)

    assert again.structured == first.structured
    assert later["chain_id"] == first["chain_id"]
    assert texts(replay(first["chain_id"], data_dir=shared_data_dir)) == ["one"]


def test_a_retry_sent_right_behind_the_call_is_recorded_once(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]
    two = thought("two", number=2, chain_id=chain, requestId=str(uuid4()))

    first, again = server.call_pipelined([("sequentialthinking", two)] * 2)

    assert again.structured == first.structured
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two"]


@pytest.mark.parametrize(
    "other",
    [{"text": "something else"}, {"number": 3}, {"branchFromThought": 1, "branchId": "b"}],
    ids=["text", "number", "branch"],
)
def test_a_request_id_with_a_different_command_is_refused(server, shared_data_dir, other):
    chain = server.think("one", number=1)["chain_id"]
    request = {"text": "two", "number": 2, "chain_id": chain, "requestId": str(uuid4())}
    server.think(**request)

    refused = server.think(**{**request, **other})

    assert refused.outcome == "isError"
    assert is_one_clear_sentence(refused.text), refused.text
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two"]


# Sessions


def test_a_named_session_goes_on_in_a_new_process(shared_data_dir):
    name = f"session-{uuid4()}"
    with Server(shared_data_dir, "--session", name) as server:
        server.think("an older chain", number=1)
        before = server.think("one", number=1)
        server.think("left", number=2, branchFromThought=1, branchId="left")

    with Server(shared_data_dir, "--session", name) as server:
        after = server.think("two", number=2)

    assert after["chain_id"] == before["chain_id"]
    assert after["thoughtHistoryLength"] == 4
    assert after["branches"] == ["left"]


def test_a_named_session_goes_on_after_kill_9(shared_data_dir):
    name = f"session-{uuid4()}"
    with Server(shared_data_dir, "--session", name) as server:
        before = server.think("one", number=1)
        server.kill()

    with Server(shared_data_dir, "--session", name) as server:
        after = server.think("two", number=2)

    assert after["chain_id"] == before["chain_id"]
    assert after["thoughtHistoryLength"] == 2


def test_another_session_and_no_session_know_nothing_of_it(shared_data_dir):
    with Server(shared_data_dir, "--session", f"session-{uuid4()}") as server:
        known = server.think("one", number=1)["chain_id"]

    with Server(shared_data_dir, "--session", f"session-{uuid4()}") as server:
        named = server.think("two", number=2)
    with Server(shared_data_dir) as server:
        unnamed = server.think("two", number=2)

    assert len({known, named["chain_id"], unnamed["chain_id"]}) == 3
    assert named["thoughtHistoryLength"] == unnamed["thoughtHistoryLength"] == 1
