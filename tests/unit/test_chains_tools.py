"""What the toolset ``chains`` tells a client, and what it understands."""

import base64
import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from mcp_server.chains.inputs import parse_add, parse_branch, parse_list, parse_revise
from mcp_server.chains.values import cursor_of, to_after, to_millionths, to_notes
from mcp_server.conversation import Conversation
from mcp_server.inputs import InputError
from mcp_server.memory.inputs_recall import parse_recall
from mcp_server.tools.chains import chain_tools
from mcp_server.tools.compat import SEQUENTIALTHINKING
from projections.lists import After, ChainLists

PLAIN = {"thought": "t", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 3}
NAMES = [
    "add_thought",
    "start_thought_chain",
    "get_thought_chain",
    "list_thought_chains",
    "get_related_chains",
    "revise_thought",
    "branch_thought",
    "close_branch",
    "pause_thought_chain",
    "resume_thought_chain",
    "complete_thought_chain",
    "abandon_thought_chain",
]


def no_connector():
    raise AssertionError("nothing is read here")


def definitions():
    tools = chain_tools(Conversation(), ChainLists(no_connector))
    return [tool.definition for tool in tools]


def as_sent(tool):
    return tool.model_dump(by_alias=True, exclude_none=True, mode="json")


def test_the_tools_of_the_table_are_there():
    assert [tool.name for tool in definitions()] == NAMES


def test_the_list_with_the_drop_in_tool_stays_small():
    tools = [as_sent(tool) for tool in (SEQUENTIALTHINKING, *definitions())]

    def sent(some):
        return json.dumps({"tools": some})

    assert len(sent(tools)) <= 12_000
    assert len(sent(tools[:1])) <= 4_700


@pytest.mark.parametrize("tool", definitions(), ids=NAMES)
def test_annotations_tell_the_truth(tool):
    reads = tool.name in ("get_thought_chain", "list_thought_chains", "get_related_chains")
    assert bool(tool.annotations.read_only_hint) == reads
    assert tool.annotations.open_world_hint is False
    assert reads or tool.annotations.destructive_hint is False
    assert reads == ("requestId" not in tool.input_schema["properties"])


@pytest.mark.parametrize(
    ("value", "millionths"),
    [
        (0, 0),
        (1, 1_000_000),
        (0.8, 800_000),
        ("0.8", 800_000),
        (1 / 3, 333_333),
        (" 1 ", 1_000_000),
    ],
)
def test_a_confidence_is_kept_in_whole_millionths(value, millionths):
    assert to_millionths("confidence", value) == millionths


@pytest.mark.parametrize(
    "value", [-0.1, 1.1, 10**400, True, "high", "nan", float("inf"), [], {}, "80%"]
)
def test_what_is_no_confidence_is_refused(value):
    with pytest.raises(InputError):
        to_millionths("confidence", value)


@pytest.mark.parametrize(
    ("value", "notes"),
    [(["a", "b"], ("a", "b")), ("a", ("a",)), ('["a","b"]', ("a", "b")), ("[a", ("[a",)), ([], ())],
)
def test_assumptions_are_taken_as_clients_write_them(value, notes):
    assert to_notes("assumptions", value) == notes


@pytest.mark.parametrize("value", [[1], {}, 3, ["x"] * 101, "[1]", "[" * 100_000 + "]" * 100_000])
def test_what_is_no_list_of_texts_is_refused(value):
    with pytest.raises(InputError):
        to_notes("assumptions", value)


def test_snake_case_and_camel_case_are_both_understood():
    said = parse_add(
        {
            "thought": "t",
            "next_thought_needed": "true",
            "thought_number": "1",
            "total_thoughts": 3.0,
            "counter_argument": "c",
            "next_step_rationale": "n",
            "expected_version": "4",
            "sessionId": "s",
            "critique": "null",
        }
    )

    assert (said.thought.counter_argument, said.thought.next_step_rationale) == ("c", "n")
    assert (said.expected_version, said.session_id, said.thought.critique) == (4, "s", None)


def test_all_problems_are_named_at_once():
    with pytest.raises(InputError) as refusal:
        parse_add({**PLAIN, "thoughtNumber": "x", "confidence": 2, "expectedVersion": 0})

    fields = {field for field, _ in refusal.value.problems}
    assert fields == {"thoughtNumber", "confidence", "expectedVersion"}


@pytest.mark.parametrize("odd", [{"branchId": "b"}, {"branchFromThought": 1}, {"isRevision": True}])
def test_what_is_recorded_otherwise_than_it_seems_is_warned_of(odd):
    assert len(parse_add(PLAIN | odd).warnings) == 1
    assert parse_add(PLAIN).warnings == ()


def test_a_thought_is_named_by_id_or_by_number():
    chain_id, thought_id = str(uuid4()), uuid4()
    plain = {"chain_id": chain_id, "revised_thought": "r"}

    assert parse_revise({**plain, "thoughtNumber": "2"}).reference == 2
    both = {**plain, "thought_number": 2, "thought_id": str(thought_id)}
    assert parse_revise(both).reference == thought_id
    with pytest.raises(InputError):
        parse_revise(plain)
    with pytest.raises(InputError):
        parse_branch({"chain_id": chain_id, "branch_id": "", "thought": "t", "thought_id": 3})


def test_a_cursor_reads_back():
    after = After(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), uuid4())

    assert to_after("cursor", cursor_of(after)) == after


DEEP = base64.urlsafe_b64encode(b"[" * 100_000).decode()


@pytest.mark.parametrize("cursor", ["x", "", 7, "bnVsbA==", "e30=", "WzEsMl0=", "W10=", "é", DEEP])
def test_a_cursor_of_somebody_else_is_refused(cursor):
    with pytest.raises(InputError):
        to_after("cursor", cursor)


def test_a_list_is_never_longer_than_a_page():
    assert parse_list({"limit": 10_000}).wanted.limit == 100
    assert parse_list({"status": " Active "}).wanted.status == "active"
    with pytest.raises(InputError):
        parse_list({"status": "open"})


@pytest.mark.parametrize(
    ("include", "statuses"),
    [
        (None, []),
        ("", []),
        ("null", []),
        ([], []),
        (["abandoned", "paused"], ["abandoned", "paused"]),
        ("paused", ["paused"]),
        (" Paused , abandoned", ["paused", "abandoned"]),
        ('["abandoned"]', ["abandoned"]),
        (["active"], ["active"]),
    ],
)
def test_which_chains_are_searched_besides_active_and_completed_ones(include, statuses):
    said = parse_recall({"query": "q", "include": include})

    assert list(said.wanted.statuses) == ["active", "completed", *statuses]


@pytest.mark.parametrize("include", ["all", ["gone"], 3, {}, [["paused"]], "[1]", '{"a": 1}'])
def test_what_is_no_status_is_refused(include):
    with pytest.raises(InputError) as refusal:
        parse_recall({"query": "q", "include": include})

    assert [field for field, _ in refusal.value.problems] == ["include"]


@pytest.mark.parametrize("query", ["", " \n", None, 3, [], "x" * (2**20 + 1)])
def test_a_search_needs_words(query):
    with pytest.raises(InputError) as refusal:
        parse_recall({"query": query})

    assert [field for field, _ in refusal.value.problems] == ["query"]


@pytest.mark.parametrize(("limit", "used"), [(None, 10), ("3", 3), (50, 50), (51, 50), (2.0, 2)])
def test_a_search_has_a_limit(limit, used):
    said = parse_recall({"query": "q", "limit": limit, "sessionId": "s", "agent": "ada"})

    assert said.wanted.limit == used
    assert (said.wanted.session_id, said.wanted.agent) == ("s", "ada")
