"""``kill -9`` of the server, the worker and PostgreSQL: nothing lost, nothing doubled."""

import os
import signal
import threading
from collections import Counter

import pytest

from tests.acceptance.client import Server, ServerGoneError, thought
from tests.acceptance.product import (
    THOUGHTS,
    children,
    database,
    eventually,
    is_one_clear_sentence,
    postmaster,
    read_log,
    run_well,
    runner,
    wait_until_projected,
)
from tests.acceptance.read_models import (
    folded_chains,
    folded_thoughts,
    live_chains,
    live_thoughts,
    memories_without_thoughts,
)

# By hand, at full size: THOUGHT_LEDGER_CRASH_ROUNDS=20 THOUGHT_LEDGER_CRASH_APPENDS=2000
ROUNDS_COUNT = int(os.environ.get("THOUGHT_LEDGER_CRASH_ROUNDS", "5"))
APPENDS_COUNT = int(os.environ.get("THOUGHT_LEDGER_CRASH_APPENDS", "200"))
ANSWERS_SECONDS_MAX = 120
OUTAGE_SECONDS_MAX = 60

pytestmark = pytest.mark.timeout(ANSWERS_SECONDS_MAX * (2 + ROUNDS_COUNT))


def test_every_acknowledged_thought_survives_kill_9_of_the_server_exactly_once(data_dir):
    with Server(data_dir) as server:
        chain = server.think("the first", number=1)["chain_id"]

    rounds = [crash_round(data_dir, chain, number) for number in range(ROUNDS_COUNT)]

    for calls, acknowledged, answers in rounds:
        assert 0 < len(acknowledged) < len(calls), "the kill was not in the middle"
        assert Counter(answer.outcome for answer in answers) == {"answered": len(calls)}
        for index, first in acknowledged.items():
            assert answers[index].structured == first.structured, "a retry got another answer"
    sent = [arguments["thought"] for calls, _, _ in rounds for _, arguments in calls]
    assert recorded_texts(data_dir, chain) == Counter(["the first", *sent])
    with runner(data_dir):
        assert_read_models_equal_the_log(data_dir)


def test_a_retry_after_a_crash_and_a_pause_gets_the_first_answer_and_adds_nothing(data_dir):
    with Server(data_dir) as server:
        chain = server.think("the first", number=1)["chain_id"]
    calls, acknowledged, _ = crash_round(data_dir, chain, 0)
    before = recorded_texts(data_dir, chain)
    run_well("pause", chain, "--reason", "the machine went down", data_dir=data_dir)

    with Server(data_dir) as server:
        answers = server.call_pipelined(calls, ANSWERS_SECONDS_MAX)
        refused = server.think("something new", number=9, chain_id=chain)

    assert {index: answers[index].structured for index in acknowledged} == {
        index: first.structured for index, first in acknowledged.items()
    }
    assert {answer.outcome for answer in answers} == {"answered"}
    assert refused.outcome == "isError"
    assert recorded_texts(data_dir, chain) == before


def test_kill_9_of_a_worker_leaves_each_thought_in_the_read_models_exactly_once(data_dir):
    with Server(data_dir, "--no-worker") as server:
        chain = server.think("the first", number=1)["chain_id"]

        with runner(data_dir) as worker:
            wait_until_projected(data_dir, 1)
            sending = [server.send_call(*call) for call in requests(chain, "worker")]
            server.wait_for_answers(APPENDS_COUNT // 2, ANSWERS_SECONDS_MAX)
            worker.kill()
        answers = [server.answer(id_, ANSWERS_SECONDS_MAX) for id_ in sending]
        with runner(data_dir):
            assert_read_models_equal_the_log(data_dir)

    assert {answer.outcome for answer in answers} == {"answered"}


def test_kill_9_of_the_worker_inside_serve_does_not_stop_the_read_models(data_dir):
    with Server(data_dir) as server:
        chain = server.think("the first", number=1)["chain_id"]
        sending = [server.send_call(*call) for call in requests(chain, "inside")]
        server.wait_for_answers(APPENDS_COUNT // 2, ANSWERS_SECONDS_MAX)

        for child in children(server.process.pid):  # none, if the worker is a thread
            os.kill(child, signal.SIGKILL)
        answers = [server.answer(id_, ANSWERS_SECONDS_MAX) for id_ in sending]

        assert {answer.outcome for answer in answers} == {"answered"}
        assert_read_models_equal_the_log(data_dir)


@pytest.mark.parametrize(
    "blow", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "a fast shutdown"]
)
def test_when_postgresql_goes_away_calls_wait_or_fail_clearly_and_then_go_on(data_dir, blow):
    with Server(data_dir) as server:
        chain = server.think("the first", number=1)["chain_id"]
        calls = requests(chain, "outage")
        refusals = []

        for index, (_, arguments) in enumerate(calls):
            if index in (len(calls) // 3, 2 * len(calls) // 3):
                os.kill(running_postmaster(data_dir), blow)
            refusals += insist(server, arguments)

        assert [text for text in refusals if not is_one_clear_sentence(text)] == []
        sent = [arguments["thought"] for _, arguments in calls]
        assert recorded_texts(data_dir, chain) == Counter(["the first", *sent])
        assert_read_models_equal_the_log(data_dir)


def test_calls_in_flight_when_postgresql_is_killed_are_recorded_once(data_dir):
    with Server(data_dir) as server:
        chain = server.think("the first", number=1)["chain_id"]
        calls = requests(chain, "in flight")
        sending = [server.send_call(*call) for call in calls]
        server.wait_for_answers(APPENDS_COUNT // 2, ANSWERS_SECONDS_MAX)
        os.kill(running_postmaster(data_dir), signal.SIGKILL)

        answers = [server.answer(id_, ANSWERS_SECONDS_MAX) for id_ in sending]
        failed = [index for index, answer in enumerate(answers) if answer.outcome != "answered"]
        for index in failed:
            assert is_one_clear_sentence(answers[index].text), answers[index].text
            insist(server, calls[index][1])

        sent = [arguments["thought"] for _, arguments in calls]
        assert recorded_texts(data_dir, chain) == Counter(["the first", *sent])
        assert_read_models_equal_the_log(data_dir)


def crash_round(data_dir, chain, number):
    """Kills a server in the middle of appends, then sends every call again to a new one.

    Returns the calls, the answers that came before the kill by index, and those to the retries.
    """
    calls = requests(chain, f"round {number}")
    # A different moment in every round, from early to halfway.
    enough = len(calls) * (number + 1) // (2 * ROUNDS_COUNT)
    with Server(data_dir) as server:
        ids = []
        sender = threading.Thread(target=send_all, args=(server, calls, ids))
        sender.start()
        server.wait_for_answers(1 + enough, ANSWERS_SECONDS_MAX)
        server.kill()
        sender.join(ANSWERS_SECONDS_MAX)
        came = server.answered()
        acknowledged = {i: server.answer(id_) for i, id_ in enumerate(ids) if id_ in came}

    with Server(data_dir) as server:
        return calls, acknowledged, server.call_pipelined(calls, ANSWERS_SECONDS_MAX)


def send_all(server, calls, ids):
    try:
        for name, arguments in calls:
            ids.append(server.send_call(name, arguments, ANSWERS_SECONDS_MAX))
    except ServerGoneError:
        return  # killed, as it was meant to be


def requests(chain, label):
    return [
        (
            "sequentialthinking",
            thought(
                f"{label}, {n}", number=n + 2, chain_id=chain, requestId=f"{chain} {label} {n}"
            ),
        )
        for n in range(APPENDS_COUNT)
    ]


def insist(server, arguments):
    """Sends one call with its request id until it is answered; returns the refusals before."""
    refusals = []

    def taken():
        answer = server.call("sequentialthinking", arguments, OUTAGE_SECONDS_MAX)
        if answer.outcome != "answered":
            refusals.append(answer.text)
        return answer.outcome == "answered"

    eventually(taken, OUTAGE_SECONDS_MAX, f"an answer after {refusals}")
    return refusals


def running_postmaster(data_dir):
    return eventually(lambda: postmaster(data_dir), OUTAGE_SECONDS_MAX, "a running PostgreSQL")


def recorded_texts(data_dir, chain):
    """How often each text was recorded in a chain, whose versions have to be dense."""
    with database(data_dir) as connection:
        log = [event for event in read_log(connection) if event.chain == chain]
    assert [event.version for event in log] == list(range(1, len(log) + 1))
    return Counter(event.payload["text"] for event in log if event.topic in THOUGHTS)


def assert_read_models_equal_the_log(data_dir):
    """Waits for the read models; a worker has to be running."""
    with database(data_dir) as connection:
        log = list(read_log(connection))
        wait_until_projected(data_dir, log[-1].position)
        assert live_thoughts(connection) == folded_thoughts(log)
        assert memories_without_thoughts(connection) == 0
        assert live_chains(connection) == folded_chains(log)
