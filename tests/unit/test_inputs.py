import json
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.limits import ID_CHARACTERS_MAX, THOUGHT_BYTES_MAX
from mcp_server.inputs import (
    INTEGER_MAX,
    InputError,
    parse_sequentialthinking,
    to_boolean,
    to_identifier,
    to_integer,
    to_optional,
    to_thought,
    to_uuid,
)
from mcp_server.schemas import (
    SEQUENTIALTHINKING_DESCRIPTION,
    SEQUENTIALTHINKING_OUTPUT_SCHEMA,
    SEQUENTIALTHINKING_SCHEMA,
)

PLAIN = {"thought": "t", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 3}
CASES = Path(__file__).parents[3] / "shared" / "cases" / "sequentialthinking.jsonl"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1),
        (3.0, 3),
        (INTEGER_MAX, INTEGER_MAX),
        (float(INTEGER_MAX), INTEGER_MAX),
        (True, 1),
        ("1", 1),
        (" 2 ", 2),
        ("\t3\n", 3),
        ("\ufeff\u00a0\u2003\u3000\u2028 4 \u2029\v\f", 4),
        ("+2", 2),
        ("2.0", 2),
        ("2.", 2),
        ("1e1", 10),
        ("1E+2", 100),
        ("100e-1", 10),
        (".5e1", 5),
        ("0x10", 16),
        ("0XfF", 255),
        ("0b11", 3),
        ("0B1", 1),
        ("0o7", 7),
        ("0O17", 15),
        ("007", 7),
        ("08", 8),
        ("9007199254740991", INTEGER_MAX),
        ("0x1fffffffffffff", INTEGER_MAX),
        ("1.0000000000000000001", 1),
        ([2], 2),
        (["2"], 2),
        ([" 0x2 "], 2),
        ([[1]], 1),
        ([[["3"]]], 3),
        ([2.0], 2),
    ],
)
def test_what_javascript_reads_as_a_positive_integer_is_one(value, number):
    read = to_integer("n", value)

    assert read == number
    assert type(read) is int


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        1.5,
        float("nan"),
        float("inf"),
        -0.0,
        INTEGER_MAX + 1,
        2.0**53,
        10**4_000,
        -(10**4_000),
        False,
        None,
        "",
        " ",
        "abc",
        "1abc",
        "1 2",
        "1.5",
        "1_000",
        "1,000",
        "\uff11",
        "\u0661",
        "NaN",
        "Infinity",
        "-Infinity",
        "inf",
        "-1",
        "+0x10",
        "-0x10",
        "0x",
        "0b2",
        "0o8",
        "0x1_0",
        "1e",
        "e1",
        ".",
        "+",
        "++1",
        "1n",
        "1\u0085",
        "\u180e1",
        "1\0",
        "9007199254740992",
        "0x20000000000000",
        "1e400",
        [],
        [1, 2],
        [True],
        [None],
        [""],
        [[]],
        [{}],
        [["1", "2"]],
        {},
        {"valueOf": 1},
    ],
)
def test_what_javascript_does_not_read_as_a_positive_integer_is_refused(value):
    with pytest.raises(InputError):
        to_integer("n", value)


def test_an_array_nested_beyond_the_recursion_limit_is_read():
    value: object = 7
    for _ in range(5_000):
        value = [value]

    assert to_integer("n", value) == 7


@given(st.integers(1, INTEGER_MAX))
def test_every_way_to_write_an_integer_reads_as_that_integer(number):
    for written in (
        number,
        float(number),
        str(number),
        [number],
        hex(number),
        oct(number),
        bin(number),
    ):
        assert to_integer("n", written) == number


@given(json_values)
def test_any_value_is_either_read_as_an_integer_in_range_or_refused(value):
    try:
        number = to_integer("n", value)
    except InputError:
        return

    assert 1 <= number <= INTEGER_MAX


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE", "tRuE"])
def test_true_is_true_in_any_case(value):
    assert to_boolean("b", value) is True


@pytest.mark.parametrize("value", [False, "false", "False", "FALSE"])
def test_false_is_false_in_any_case(value):
    assert to_boolean("b", value) is False


@pytest.mark.parametrize(
    "value",
    [None, "", "null", " true", "true ", "yes", "1", "0", 1, 0, 1.0, [], [True], {}, "fal\u017fe"],
)
def test_nothing_else_is_a_boolean(value):
    with pytest.raises(InputError):
        to_boolean("b", value)


@pytest.mark.parametrize("value", [None, "", "null"])
@pytest.mark.parametrize("parse", [to_integer, to_boolean, to_identifier, to_uuid])
def test_an_optional_field_may_be_filled_with_nothing(parse, value):
    assert to_optional("f", value, parse) is None


@pytest.mark.parametrize("value", [5, 1.5, True, None, ["a"], {"a": 1}])
def test_a_thought_is_a_string(value):
    with pytest.raises(InputError):
        to_thought("thought", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("null", "null"),
        ("  \n", "  \n"),
        ("a\0b", "a\0b"),
        ("\U0001f9e0", "\U0001f9e0"),
        ("x\udc00y", "x\ufffdy"),
        ("\udc00\ud800", "\ufffd\ufffd"),
    ],
)
def test_a_thought_is_kept_but_for_lone_surrogates(value, text):
    assert to_thought("thought", value) == text


def test_a_thought_may_have_a_mebibyte_of_utf8():
    assert to_thought("thought", "é" * (THOUGHT_BYTES_MAX // 2))

    with pytest.raises(InputError) as refusal:
        to_thought("thought", "é" * (THOUGHT_BYTES_MAX // 2) + "a")

    assert str(THOUGHT_BYTES_MAX) in str(refusal.value)


def test_an_id_may_have_255_characters():
    assert to_identifier("branchId", "\U0001f9e0" * ID_CHARACTERS_MAX)

    with pytest.raises(InputError) as refusal:
        to_identifier("branchId", "b" * (ID_CHARACTERS_MAX + 1))

    assert str(ID_CHARACTERS_MAX) in str(refusal.value)


def test_an_id_loses_what_the_database_cannot_hold():
    assert to_identifier("branchId", "a\0b\ud800") == "a\ufffdb\ufffd"


@pytest.mark.parametrize("value", ["__proto__", "constructor", "10", " ", "é", "Null"])
def test_any_string_is_a_branch_id(value):
    read = parse_sequentialthinking({**PLAIN, "branchFromThought": 1, "branchId": value})

    assert read.branch_id == value


def test_a_chain_id_is_a_uuid():
    chain_id = uuid4()

    assert to_uuid("chain_id", f" {str(chain_id).upper()} ") == chain_id
    assert to_uuid("chain_id", chain_id.hex) == chain_id


@pytest.mark.parametrize(
    "value", ["x", 5, "0" * 31, "0" * 33, "1_" + "0" * 30, "\uff11" * 32, [], "{}"]
)
def test_a_chain_id_is_nothing_else(value):
    with pytest.raises(InputError):
        to_uuid("chain_id", value)


def test_the_required_fields_are_enough():
    read = parse_sequentialthinking(PLAIN)

    assert (read.thought, read.next_thought_needed) == ("t", True)
    assert (read.thought_number, read.total_thoughts) == (1, 3)
    assert (read.is_revision, read.revises_thought) == (False, None)
    assert (read.branch_from_thought, read.branch_id) == (None, None)
    assert (read.needs_more_thoughts, read.chain_id, read.request_id) == (None, None, None)


def test_all_fields_are_read_under_either_spelling():
    camel = {
        "thought": "t",
        "nextThoughtNeeded": "true",
        "thoughtNumber": "2",
        "totalThoughts": 3.0,
        "isRevision": "True",
        "revisesThought": "1",
        "branchFromThought": [1],
        "branchId": "b",
        "needsMoreThoughts": "false",
        "chain_id": "12345678-1234-5678-1234-567812345678",
        "requestId": "r",
        "unknown": object(),
    }
    snake = {
        "thought": "t",
        "next_thought_needed": True,
        "thought_number": 2,
        "total_thoughts": 3,
        "is_revision": True,
        "revises_thought": 1,
        "branch_from_thought": 1,
        "branch_id": "b",
        "needs_more_thoughts": False,
        "chainId": "12345678123456781234567812345678",
        "request_id": "r",
    }

    read = parse_sequentialthinking(camel)

    assert read == parse_sequentialthinking(snake)
    assert read.chain_id == UUID("12345678-1234-5678-1234-567812345678")
    assert read.needs_more_thoughts is False


def test_the_published_spelling_wins_unless_it_says_nothing():
    assert parse_sequentialthinking({**PLAIN, "thought_number": 2}).thought_number == 1
    assert (
        parse_sequentialthinking(
            {**PLAIN, "thoughtNumber": None, "thought_number": 2}
        ).thought_number
        == 2
    )


def test_the_total_is_raised_to_the_number():
    assert parse_sequentialthinking({**PLAIN, "thoughtNumber": 5}).total_thoughts == 5


@pytest.mark.parametrize(
    ("given_fields", "is_revision"),
    [
        ({"isRevision": True}, True),
        ({"revisesThought": 1}, True),
        ({"isRevision": False, "revisesThought": 1}, True),
        ({"isRevision": False}, False),
        ({"isRevision": None, "revisesThought": ""}, False),
    ],
)
def test_saying_so_or_naming_the_revised_thought_makes_a_revision(given_fields, is_revision):
    assert parse_sequentialthinking({**PLAIN, **given_fields}).is_revision is is_revision


@pytest.mark.parametrize(
    "given_fields",
    [
        {"branchId": "b"},
        {"branchFromThought": 1},
        {"branchFromThought": 1, "branchId": ""},
        {"branchFromThought": "null", "branchId": "b"},
        {"branchFromThought": 1, "branchId": "null"},
    ],
)
def test_half_a_branch_is_none(given_fields):
    read = parse_sequentialthinking({**PLAIN, **given_fields})

    assert (read.branch_from_thought, read.branch_id) == (None, None)


def test_every_problem_is_named_at_once():
    with pytest.raises(InputError) as refusal:
        parse_sequentialthinking(
            {"thought": 5, "thoughtNumber": "1.5", "totalThoughts": 0, "revisesThought": "x"}
        )

    named = [field for field, _ in refusal.value.problems]
    assert named == [
        "thought",
        "nextThoughtNeeded",
        "thoughtNumber",
        "totalThoughts",
        "revisesThought",
    ]


@pytest.mark.parametrize(
    "value", ["x" * 10**6, ["x" * 10**6], {"x": "y" * 10**6}, 10**4_000, "\ud800" * 1_000]
)
def test_a_refusal_is_short_and_can_be_sent(value):
    with pytest.raises(InputError) as refusal:
        parse_sequentialthinking({**PLAIN, "thoughtNumber": value})

    assert len(str(refusal.value).encode()) < 250


@given(
    st.dictionaries(st.sampled_from(sorted(SEQUENTIALTHINKING_SCHEMA["properties"])), json_values)
)
def test_no_arguments_raise_anything_but_a_refusal(arguments):
    try:
        read = parse_sequentialthinking({**PLAIN, **arguments})
    except InputError as refusal:
        str(refusal).encode()
    else:
        assert read.total_thoughts >= read.thought_number
        read.thought.encode()


@pytest.mark.skipif(not CASES.exists(), reason="the recorded cases lie beside the repository")
def test_the_recorded_cases_are_answered_and_refused_alike():
    differences = []
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        arguments = case.get("arguments")
        if not isinstance(arguments, dict | None) or case["name"] != "sequentialthinking":
            continue
        arguments = {name: _unfold(value) for name, value in (arguments or {}).items()}
        try:
            read = parse_sequentialthinking(arguments)
        except InputError:
            answered = False
        else:
            answered = True
            expected = (case["result"] or {}).get("structuredContent")
            if expected is not None:
                assert read.total_thoughts == expected["totalThoughts"]
        if case["error"] is None and answered is case["result"].get("isError", False):
            differences.append(case["case"])

    any_string_is_a_branch_id = {"__proto__", "constructor", "toString", "hasOwnProperty"}
    over_the_limits = {"branchId_100KB", "5MB"}
    assert set(differences) == any_string_is_a_branch_id | over_the_limits


def _unfold(value):
    if isinstance(value, dict) and "$repeat" in value:
        return value["$repeat"]["s"] * value["$repeat"]["n"]
    return value


def test_the_tool_list_stays_small_and_its_schemas_portable():
    tool = {
        "name": "sequentialthinking",
        "description": SEQUENTIALTHINKING_DESCRIPTION,
        "inputSchema": SEQUENTIALTHINKING_SCHEMA,
        "outputSchema": SEQUENTIALTHINKING_OUTPUT_SCHEMA,
    }

    assert len(json.dumps({"tools": [tool]})) <= 4_500
    for schema in (SEQUENTIALTHINKING_SCHEMA, SEQUENTIALTHINKING_OUTPUT_SCHEMA):
        assert set(schema) == {"type", "properties", "required"}
        for field in schema["properties"].values():
            assert set(field) <= {"type", "description", "minimum", "items"}
            assert isinstance(field["type"], str)
