"""What a server offers: whole toolsets, single tools, or only what records nothing."""

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import assert_cannot_answer, is_one_clear_sentence, run

READERS = {"get_thought_chain", "list_thought_chains", "get_related_chains"}
DEFAULT = {"sequentialthinking", "add_thought", "start_thought_chain", "close_branch", *READERS}


def offered(data_dir, *arguments):
    with Server(data_dir, *arguments) as server:
        return [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]


def test_by_default_the_drop_in_and_the_chains_are_offered(shared_data_dir):
    names = offered(shared_data_dir)

    assert set(names) >= DEFAULT
    assert not {"criticalthinking", "sequential_thinking"} & set(names)


@pytest.mark.parametrize(
    ("chosen", "first", "others"),
    [
        ("compat", "sequentialthinking", set()),
        ("chains", "add_thought", READERS),
        ("critical, kodegen", "criticalthinking", {"sequential_thinking"}),
        ("kodegen,critical", "sequential_thinking", {"criticalthinking"}),
        ("compat,compat", "sequentialthinking", set()),
    ],
)
def test_toolsets_are_offered_in_the_order_given(shared_data_dir, chosen, first, others):
    names = offered(shared_data_dir, "--toolsets", chosen)

    assert names[0] == first
    assert len(names) == len(set(names))
    assert others <= set(names)
    assert len(names) > 2 or set(names) == {first, *others}


def test_single_tools_are_offered_in_the_order_given(shared_data_dir):
    names = offered(shared_data_dir, "--tools", "get_thought_chain, criticalthinking")

    assert names == ["get_thought_chain", "criticalthinking"]


def test_a_tool_that_is_not_offered_cannot_be_called(shared_data_dir):
    with Server(shared_data_dir, "--tools", "get_thought_chain") as server:
        answer = server.think("t")

    assert answer.outcome == "protocol error"


def test_read_only_offers_what_records_nothing_and_still_reads(shared_data_dir):
    with Server(shared_data_dir) as writer:
        chain = writer.think("a thought to be read")["chain_id"]

    with Server(shared_data_dir, "--read-only") as reader:
        tools = reader.request("tools/list")["result"]["tools"]
        read = reader.call("get_thought_chain", {"chain_id": chain})
        refused = reader.think("t", chain_id=chain)

    assert {tool["name"] for tool in tools} >= READERS
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert [one["thought"] for one in read["thoughts"]] == ["a thought to be read"]
    assert refused.outcome == "protocol error"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--toolsets", "nothing"),
        ("--toolsets", ""),
        ("--toolsets", ","),
        ("--tools", "no_such_tool"),
        ("--tools", " "),
        ("--toolsets", "compat", "--tools", "get_thought_chain"),
        ("--toolsets", "compat", "--read-only"),
        ("--tools", "add_thought", "--read-only"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_before_anything_starts(tmp_path, arguments):
    directory = tmp_path / "data"

    refused = run("serve", *arguments, "--data-dir", directory)

    assert_cannot_answer(refused)
    assert is_one_clear_sentence(refused.stderr.strip())
    assert not directory.exists()


@pytest.mark.parametrize("option", [("--host", "0.0.0.0"), ("--port", "80"), ("--path", "/mcp")])
def test_an_option_for_http_is_refused_over_stdio(tmp_path, option):
    refused = run("serve", *option, "--data-dir", tmp_path / "data")

    assert_cannot_answer(refused)
    assert "--transport http" in refused.stderr


def test_who_may_only_read_is_not_told_to_record(shared_data_dir):
    with Server(shared_data_dir, "--read-only") as reader, Server(shared_data_dir) as writer:
        told, other = (s.initialize()["instructions"] for s in (reader, writer))

    assert "Record" not in told
    assert "Record" in other
