"""The critical tool over stdio: its recorded cases, its episodes, and what the log keeps."""

import itertools
import json

import pytest

from tests.acceptance.client import REPOSITORY, Server, thought
from tests.acceptance.product import chains, is_one_clear_sentence, replay, run_well, texts, topics

CASES = REPOSITORY.parent / "shared" / "cases" / "criticalthinking.jsonl"
CASES_COUNT = 36
CRITICAL = ("--toolsets", "critical")
BOTH = ("--toolsets", "compat,critical")


@pytest.fixture
def server(shared_data_dir):
    with Server(shared_data_dir, *BOTH) as server:
        yield server


@pytest.fixture(scope="module")
def compared(shared_data_dir):
    """Each case with our answer: a fresh process a session."""
    pairs = []
    for cases in case_sessions():
        with Server(shared_data_dir, *CRITICAL) as server:
            pairs += [(case, server.call(case["name"], case["arguments"])) for case in cases]
    return pairs


# The cases


def test_every_answered_case_is_equal_structured_and_text(compared):
    assert len(compared) == CASES_COUNT
    expected = [case["expect"] for case, _ in compared if not case["expect"]["isError"]]
    answered = [answer for case, answer in compared if not case["expect"]["isError"]]

    assert expected
    for wanted, answer in zip(expected, answered, strict=True):
        assert answer.outcome == "answered", answer.text
        assert answer.structured == wanted["structured"]
        assert list(answer.structured) == list(wanted["structured"])
        assert answer.text == wanted["text"]


def test_every_refused_case_is_refused_in_the_same_words(compared):
    refused = [(case["expect"], answer) for case, answer in compared if case["expect"]["isError"]]

    assert refused
    for wanted, answer in refused:
        assert answer.outcome == "isError", answer.text
        assert answer.structured is None
        if "text_json" in wanted:
            assert json.loads(answer.text) == wanted["text_json"]
        else:
            assert wanted["text_contains"] in answer.text


# Strictness


@pytest.mark.parametrize(
    "others",
    [
        {"thoughtNumber": 1.0},
        {"thoughtNumber": True},
        {"thoughtNumber": 2**53},
        {"thought": None},
        {"thought": ["t"]},
        {"confidence": "0.5"},
        {"confidence": True},
        {"confidence": 10**20},
        {"assumptions": "one"},
        {"assumptions": [1]},
        {"isRevision": "true"},
        {"branchId": None},
        {"episodeId": 7},
        {"thought_number": 1},
        {"episodeId": "e" * 256},
        {"critique": "c" * (64 * 1024 + 1)},
    ],
)
def test_what_the_schema_does_not_say_is_refused_and_nothing_is_recorded(server, others):
    episode = {"episodeId": "strict", **others}

    refused = server.call("criticalthinking", critical("no", **episode))

    assert refused.outcome == "isError"
    assert refused.structured is None
    assert len(refused.text) < 600
    first = server.call("criticalthinking", critical("first", episodeId="strict"))
    assert first["thoughtHistoryLength"] == 1


def test_an_empty_episode_is_the_default_one(server):
    server.call("criticalthinking", critical("one"))

    again = server.call("criticalthinking", critical("two", number=2, episodeId=""))

    assert again["episodeId"] == "default"
    assert again["thoughtHistoryLength"] == 2


# Episodes


def test_episodes_are_chains_of_their_own(server, shared_data_dir):
    server.call("criticalthinking", critical("left", episodeId="l", confidence=0.2))

    right = server.call("criticalthinking", critical("right", episodeId="r", confidence=0.8))
    left = server.call("criticalthinking", critical("left 2", 2, episodeId="l", confidence=0.4))

    assert (right["thoughtHistoryLength"], right["sessionConfidence"]) == (1, 0.8)
    assert (left["thoughtHistoryLength"], left["episodeId"]) == (2, "l")
    assert left["sessionConfidence"] == pytest.approx(0.3)


def test_two_first_thoughts_sent_at_once_go_into_one_episode(server):
    calls = [("criticalthinking", critical(text)) for text in ("one", "two")]

    one, two = server.call_pipelined(calls)

    assert [one["thoughtHistoryLength"], two["thoughtHistoryLength"]] == [1, 2]


def test_episodes_of_two_connections_are_not_the_same(shared_data_dir):
    with Server(shared_data_dir, *CRITICAL) as one, Server(shared_data_dir, *CRITICAL) as other:
        one.call("criticalthinking", critical("mine"))

        answer = other.call("criticalthinking", critical("yours"))

    assert answer["thoughtHistoryLength"] == 1


def test_a_later_process_of_the_session_finds_its_episodes_again(data_dir):
    session = ("--session", "project")
    with Server(data_dir, *BOTH, *session) as server:
        server.call("criticalthinking", critical("one", confidence=0.6))
        server.call("criticalthinking", critical("aside", episodeId="aside"))
        server.think("plain")
        server.kill()

    with Server(data_dir, *BOTH, *session) as server:
        answer = server.call("criticalthinking", critical("two", number=2, confidence=0.7))
        plain = server.think("plain 2", number=2)

    assert answer["thoughtHistoryLength"] == 2
    assert answer["sessionConfidence"] == 0.6499999999999999
    assert answer.text.endswith("— session confidence 0.65 across 2 thoughts")
    assert plain["thoughtHistoryLength"] == 2, "critical thoughts are not the conversation's"
    assert len(chains(data_dir, "--all")) == 3


def test_two_processes_of_one_session_think_in_one_episode(shared_data_dir):
    session = ("--session", "shared")
    with (
        Server(shared_data_dir, *CRITICAL, *session) as one,
        Server(shared_data_dir, *CRITICAL, *session) as other,
    ):
        sent = [
            (server, server.send_call("criticalthinking", critical(str(i))))
            for i in range(10)
            for server in (one, other)
        ]
        lengths = [server.answer(id_)["thoughtHistoryLength"] for server, id_ in sent]

    assert sorted(lengths) == list(range(1, 21))


# What the log keeps


def test_the_log_keeps_all_that_was_said(data_dir):
    said = critical("first", confidence=0.123456, assumptions=["a", "b"], critique="weak")
    with Server(data_dir, *CRITICAL) as server:
        server.call("criticalthinking", said)
        server.call("criticalthinking", critical("again", 2, revisesThought=1))
        server.call("criticalthinking", critical("end", 3, more=False))

    (chain,) = chains(data_dir, "--all")
    events = replay(chain, data_dir=data_dir)
    assert texts(events) == ["first", "again", "end"]
    assert topics(events) == [
        "chain.started",
        "thought.added",
        "thought.revised",
        "thought.added",
        "chain.completed",
    ]
    assert events[0]["source"] == "criticalthinking"
    assert json.loads(events[0]["metadata"]) == {"episode": "default"}
    first = events[1]
    assert first["confidence_millionths"] == 123_456
    assert first["assumptions"] == ["a", "b"]
    assert first["critique"] == "weak"
    assert first["counter_argument"] == "the opposite"
    assert first["next_step_rationale"] == "to see"


def test_a_call_sent_again_with_its_request_id_is_recorded_once_and_told_the_same(server):
    said = critical("once", requestId="critical-once", episodeId="once")
    first = server.call("criticalthinking", said)
    server.call("criticalthinking", critical("two", number=2, episodeId="once"))

    again = server.call("criticalthinking", said)
    elsewhere = server.call("criticalthinking", {**said, "episodeId": "other"})

    assert (again.structured, again.text) == (first.structured, first.text)
    assert elsewhere.outcome == "isError"


def test_a_paused_episode_refuses_until_it_is_resumed(data_dir):
    with Server(data_dir, *CRITICAL) as server:
        server.call("criticalthinking", critical("one"))
        (chain,) = chains(data_dir)
        run_well("pause", chain, data_dir=data_dir)

        refused = server.call("criticalthinking", critical("late", number=2))
        run_well("resume", chain, data_dir=data_dir)
        taken = server.call("criticalthinking", critical("in time", number=2))

    assert refused.outcome == "isError"
    assert is_one_clear_sentence(json.loads(refused.text)["error"])
    assert taken["thoughtHistoryLength"] == 2


# The resource


def test_the_current_episode_can_be_read_as_markdown(server):
    empty = current(server)
    server.call("criticalthinking", critical("one"))
    server.call("criticalthinking", critical("elsewhere", episodeId="aside", confidence=0.25))

    told = current(server)

    assert "Nothing was thought here yet" in empty
    assert told.startswith("# Episode aside\n")
    assert "## Thought 1 of 3 (confidence 0.25)\n\nelsewhere\n" in told
    assert "- a1\n" in told
    assert "Counter-argument: the opposite" in told
    assert "\none\n" not in told


def test_of_a_long_episode_the_last_thoughts_can_be_read(server):
    calls = [("criticalthinking", critical(f"step {n}", n, 120)) for n in range(1, 121)]
    server.call_pipelined(calls)

    told = current(server)

    assert told.count("\n## Thought") == 100
    assert "\nstep 20\n" not in told
    assert told.index("\nstep 21\n") < told.index("\nstep 120\n")
    assert "(20 earlier thoughts are not shown)" in told


def test_a_resource_that_is_not_there_is_a_protocol_error(server):
    answer = server.request("resources/read", {"uri": "thinking://nothing"})

    assert "thinking://current" in answer["error"]["message"]
    assert answer["error"]["data"] == {"uri": "thinking://nothing"}


def current(server):
    listed = server.request("resources/list")["result"]["resources"]
    assert "thinking://current" in [resource["uri"] for resource in listed]
    (read,) = server.request("resources/read", {"uri": "thinking://current"})["result"]["contents"]
    assert read["mimeType"] == "text/markdown"
    return read["text"]


# What is offered


def test_toolsets_are_offered_as_chosen(shared_data_dir):
    with Server(shared_data_dir, "--toolsets", "kodegen, critical") as server:
        offered = server.request("tools/list")["result"]["tools"]

    assert [tool["name"] for tool in offered] == ["sequential_thinking", "criticalthinking"]
    for tool in offered:
        assert tool["annotations"]["readOnlyHint"] is False
        assert tool["annotations"]["idempotentHint"] is False
    assert len(json.dumps(offered)) <= 9_500


def critical(text="t", number=1, total=3, more=True, **others):
    """The arguments of one ``criticalthinking`` call."""
    doubts = {
        "confidence": 0.5,
        "assumptions": ["a1"],
        "critique": "weak point",
        "counterArgument": "the opposite",
        "nextStepRationale": "to see",
    }
    return {**thought(text, number, total, more), **doubts, **others}


def case_sessions():
    if not CASES.exists():
        pytest.skip(f"the recorded calls are not here: {CASES}")
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
    return [list(group) for _, group in itertools.groupby(cases, lambda case: case["session"])]
