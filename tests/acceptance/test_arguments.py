"""What the drop-in tool takes for a number, a boolean, a text, and what it tells about it."""

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import database, read_log, replay, topics


@pytest.mark.parametrize("number", [3.0, "3", " 3 ", [3], ["3"], "0b11", 2**53 - 1])
def test_numbers_are_taken_as_javascript_takes_them(server, number):
    expected = 2**53 - 1 if number == 2**53 - 1 else 3

    assert server.think(number=number)["thoughtNumber"] == expected


@pytest.mark.parametrize("number", [0, -1, 1.5, 2**53, "0", "", None, "３", [[]], "1e400"])
def test_what_is_no_positive_integer_is_refused(server, number):
    assert server.think(number=number).outcome == "isError"


@pytest.mark.parametrize(("word", "meaning"), [("TRUE", True), ("False", False), ("true", True)])
def test_words_are_taken_for_booleans(server, word, meaning):
    assert server.think(more=word)["nextThoughtNeeded"] is meaning


@pytest.mark.parametrize("word", [" true", "yes", "1", 1, 0, "", None, []])
def test_nothing_else_is_a_boolean(server, word):
    assert server.think(more=word).outcome == "isError"


def test_null_means_that_an_optional_argument_is_absent(server, shared_data_dir):
    optional = ["isRevision", "revisesThought", "branchFromThought", "branchId"]
    optional += ["needsMoreThoughts", "chain_id", "requestId"]

    answer = server.think("one", number=1, **dict.fromkeys(optional))

    events = replay(answer["chain_id"], data_dir=shared_data_dir)
    assert answer["branches"] == []
    assert topics(events) == ["chain.started", "thought.added"]


def test_any_text_is_recorded_exactly_but_for_lone_surrogates(data_dir):
    given = ["", " \t\n", "a\r\nb\u2028c\x00d\x7f", "e\u0301", "🧠🏽\u200d🚀", "a\ud800b\udc00"]
    with Server(data_dir) as server:
        for number, text in enumerate(given, 1):
            server.think(text, number=number)["chain_id"]

        with database(data_dir) as connection:
            log = list(read_log(connection))

    expected = [*given[:-1], "a\ufffdb\ufffd"]
    assert [e.payload["text"] for e in log if e.topic == "thought.added"] == expected


def test_the_tool_is_listed_with_a_schema_that_every_client_understands(server):
    tools = server.request("tools/list")["result"]["tools"]

    tool = next(tool for tool in tools if tool["name"] == "sequentialthinking")
    schema = tool["inputSchema"]
    required = {"thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"}
    optional = {"isRevision", "revisesThought", "branchFromThought", "branchId"}
    optional |= {"needsMoreThoughts", "chain_id", "requestId"}
    assert set(schema["required"]) == required
    assert set(schema["properties"]) == required | optional
    for name, described in schema["properties"].items():
        assert isinstance(described["type"], str), name
        assert described["description"], name
        assert not {"$ref", "anyOf", "oneOf", "allOf", "format"} & set(described), name
        assert described.get("default", "absent") is not None, name
    assert len(str(tools)) <= 12_000
