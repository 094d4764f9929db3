"""Every recorded call of the original server, replayed against ours over stdio."""

import itertools
import json

import pytest

from tests.acceptance.client import ABSENT, REPOSITORY, Answer, Server, thought
from tests.acceptance.product import replay, texts

CASES = REPOSITORY.parent / "shared" / "cases" / "sequentialthinking.jsonl"
CASES_COUNT = 108
FIVE = ["thoughtNumber", "totalThoughts", "nextThoughtNeeded", "branches", "thoughtHistoryLength"]

FIRST_APPEARANCE = "branches in order of first appearance, also for integer-like ids"
ANY_BRANCH_ID = "any string is a branch id, also one that a JavaScript object has already"
REPLACED = "U+0000 and lone surrogates in ids come back as U+FFFD"
ID_LIMIT = "ids over 255 characters are refused"
TEXT_LIMIT = "thoughts over 1 MiB are refused"
UNKNOWN_TOOL = "an unknown tool is a protocol error, as the protocol wants it"
NULL_ARGUMENTS = "null arguments are none: an isError result that names what is missing"

PROTOTYPE_KEYS = ["__proto__", "constructor", "toString", "hasOwnProperty"]
BY_APPEARANCE = ["zeta", "10", "2", "alpha", "01", "4294967294", "4294967295", "-1", "0"]


def differs(reason, outcome="answered", **fields):
    return reason, {"outcome": outcome, **fields}


# Each allowed difference, one by one: why, and what ours answers where the original did otherwise.
ALLOWED = {
    ("branch_key_order_integer_like", 2): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:2]),
    ("branch_key_order_integer_like", 3): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:3]),
    ("branch_key_order_integer_like", 4): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:4]),
    ("branch_key_order_integer_like", 5): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:5]),
    ("branch_key_order_integer_like", 6): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:6]),
    ("branch_key_order_integer_like", 7): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:7]),
    ("branch_key_order_integer_like", 8): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:8]),
    ("branch_key_order_integer_like", 9): differs(FIRST_APPEARANCE, branches=BY_APPEARANCE[:9]),
    ("branch_prototype_keys", 1): differs(ANY_BRANCH_ID, branches=PROTOTYPE_KEYS[:1]),
    ("branch_prototype_keys", 2): differs(ANY_BRANCH_ID, branches=PROTOTYPE_KEYS[:2]),
    ("branch_prototype_keys", 3): differs(ANY_BRANCH_ID, branches=PROTOTYPE_KEYS[:3]),
    ("branch_prototype_keys", 4): differs(ANY_BRANCH_ID, branches=PROTOTYPE_KEYS[:4]),
    ("branch_prototype_keys", 5): differs(ANY_BRANCH_ID, branches=[*PROTOTYPE_KEYS, "length"]),
    ("branch_prototype_keys", 6): differs(
        ANY_BRANCH_ID, branches=[*PROTOTYPE_KEYS, "length", "ok"]
    ),
    ("missing_fields", 8): differs(NULL_ARGUMENTS, outcome="isError"),
    ("thought_types", 16): differs(REPLACED, branches=["s\ufffd"]),
    ("thought_types", 17): differs(REPLACED, branches=["s\ufffd", "a\ufffdb"]),
    ("thought_types", 18): differs(REPLACED, branches=["s\ufffd", "a\ufffdb"]),
    ("thought_types", 19): differs(REPLACED, branches=["s\ufffd", "a\ufffdb"]),
    ("thought_types", 20): differs(REPLACED, branches=["s\ufffd", "a\ufffdb"]),
    ("sizes", 4): differs(ID_LIMIT, outcome="isError"),
    ("sizes", 5): differs(TEXT_LIMIT, outcome="isError"),
    ("sizes", 6): differs("two calls before it were refused", branches=[], thoughtHistoryLength=4),
    ("tool_names", 1): differs(UNKNOWN_TOOL, outcome="protocol error"),
    ("tool_names", 2): differs(UNKNOWN_TOOL, outcome="protocol error"),
    ("tool_names", 3): differs(UNKNOWN_TOOL, outcome="protocol error"),
    ("tool_names", 4): differs(UNKNOWN_TOOL, outcome="protocol error"),
}


@pytest.fixture(scope="module")
def compared(shared_data_dir):
    """Each recorded call with our answer: a fresh process a session, one data directory for all."""
    return [pair for cases in recorded_sessions() for pair in replayed(cases, shared_data_dir)]


def test_each_recorded_call_is_answered_as_by_the_original_but_for_the_listed_differences(compared):
    expected = {key(case): expectation(case) for case, _ in compared}
    ours = {key(case): seen(answer) for case, answer in compared}
    original = {key(case): recorded(case) for case, _ in compared}
    assert len(compared) == CASES_COUNT
    assert {k: v for k, v in ours.items() if v != expected[k]} == {}, "differences not listed"
    idle = {k for k in ALLOWED if ours[k] == original[k]}
    assert idle == set(), "listed differences that do not occur"


def test_the_text_of_an_answer_is_the_original_layout_with_the_chain_id_last(compared):
    answered = [(case, answer) for case, answer in compared if answer.outcome == "answered"]

    assert answered
    for case, answer in answered:
        assert list(answer.structured) == [*FIVE, "chain_id"], key(case)
        assert answer.text == json.dumps(answer.structured, indent=2, ensure_ascii=False), key(case)
        if key(case) not in ALLOWED:
            original = case["result"]["content"][0]["text"].removesuffix("\n}")
            chain_id = answer["chain_id"]
            assert answer.text == f'{original},\n  "chain_id": "{chain_id}"\n}}', key(case)


def test_300_pipelined_calls_are_recorded_and_answered_in_the_order_sent(server, shared_data_dir):
    calls = [
        ("sequentialthinking", thought(f"step {n}", number=n, total=300)) for n in range(1, 301)
    ]

    answers = server.call_pipelined(calls)

    chain = answers[0]["chain_id"]
    assert {answer["chain_id"] for answer in answers} == {chain}
    assert [answer["thoughtHistoryLength"] for answer in answers] == list(range(1, 301))
    assert [answer["thoughtNumber"] for answer in answers] == list(range(1, 301))
    assert server.arrivals == sorted(server.arrivals)
    events = replay(chain, data_dir=shared_data_dir)
    assert texts(events) == [f"step {n}" for n in range(1, 301)]
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))


def test_none_of_the_recorded_failures_is_recorded_as_a_thought(compared):
    for session, pairs in itertools.groupby(compared, lambda pair: pair[0]["session"]):
        lengths = [a["thoughtHistoryLength"] for _, a in pairs if a.outcome == "answered"]

        assert lengths == list(range(1, len(lengths) + 1)), session


def recorded_sessions():
    if not CASES.exists():
        pytest.skip(f"the recorded calls are not here: {CASES}")
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
    return [list(group) for _, group in itertools.groupby(cases, lambda case: case["session"])]


def replayed(cases, data_dir):
    """A session's calls and the answers of one fresh server process."""
    with Server(data_dir, env=cases[0]["env"]) as server:
        return [(case, server.call(case["name"], arguments(case))) for case in cases]


def arguments(case):
    return ABSENT if case.get("arguments_absent") else expanded(case["arguments"])


def expanded(value):
    match value:
        case {"$repeat": {"s": text, "n": times}}:
            return text * times
        case dict():
            return {name: expanded(inner) for name, inner in value.items()}
        case _:
            return value


def key(case):
    return case["session"], case["seq"]


def seen(answer):
    """What is compared of an answer: the class of outcome and, if answered, the five fields."""
    fields = {f: answer.structured.get(f) for f in FIVE} if answer.outcome == "answered" else {}
    return {"outcome": answer.outcome, **fields}


def recorded(case):
    if case["error"] is not None:
        return {"outcome": "protocol error"}
    return seen(Answer.of({"result": case["result"]}))


def expectation(case):
    if key(case) not in ALLOWED:
        return recorded(case)
    _, ours = ALLOWED[key(case)]
    return ours if ours["outcome"] != "answered" else {**base_fields(case), **ours}


def base_fields(case):
    """The five fields by the rules, where the original failed or may differ in some of them."""
    if case["result"] is not None and not case["isError"]:
        return recorded(case)
    asked = arguments(case)
    return {
        "thoughtNumber": asked["thoughtNumber"],
        "totalThoughts": asked["totalThoughts"],
        "nextThoughtNeeded": asked["nextThoughtNeeded"],
        "thoughtHistoryLength": case["seq"],
    }
