"""The stdio transport: every request is answered, and every kind of end is a clean one."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.client import REPOSITORY, Server, thought
from tests.acceptance.product import (
    THOUGHTS,
    children,
    command_line,
    database,
    eventually,
    postmaster,
    read_log,
    replay,
    texts,
)

LINE_BYTES_MAX = 10 << 20
HANGING_SECONDS_MAX = 30


def tools_call(request_id, **arguments):
    parameters = {"name": "sequentialthinking", "arguments": thought(**arguments)}
    request = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": parameters}
    return json.dumps(request).encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"\n"),
        (b"", b"\r\n"),
        (b"\xef\xbb\xbf", b"\n"),
        (b"\n\r\n  \n", b"\n"),
        (b"  ", b"\t\n"),
    ],
    ids=["plain", "CRLF", "BOM", "blank lines", "blanks around"],
)
def test_a_line_is_taken_as_its_client_means_it(server, before, after):
    server.send(before + tools_call("one", text="one") + after)

    assert server.answer("one")["thoughtHistoryLength"] == 1


def test_a_request_with_a_lone_surrogate_anywhere_is_answered(server, shared_data_dir):
    answer = server.think("a\ud800b", number=1, branchFromThought=1, branchId="x\udfff")

    assert answer["branches"] == ["x\ufffd"]
    assert texts(replay(answer["chain_id"], data_dir=shared_data_dir)) == ["a\ufffdb"]


def test_what_is_no_json_does_not_stop_the_conversation(server):
    server.send(b"this is no JSON\n")
    server.send(b"\xff\xfe\n")
    server.send(b"[" * 100_000 + b"\n")

    assert server.think("one", number=1)["thoughtHistoryLength"] == 1


def test_a_line_over_10_mib_is_answered_with_an_error_and_the_next_one_is_taken(server):
    huge = tools_call("huge", text="a" * (LINE_BYTES_MAX + 1))

    server.send(huge + b"\n")

    assert server.answer("huge").outcome != "answered"
    assert server.think("one", number=1)["thoughtHistoryLength"] == 1


def test_an_unknown_method_is_answered_with_a_protocol_error(server):
    message = server.request("thoughts/dance", {})

    assert message["error"]["code"] == -32601


def test_a_cancelled_call_is_recorded_whole_or_not_at_all(server, shared_data_dir):
    chain = server.think("one", number=1)["chain_id"]

    for number in range(2, 22):
        call = thought(f"cancelled {number}", number=number, chain_id=chain)
        request_id = server.send_call("sequentialthinking", call)
        server.notify("notifications/cancelled", {"requestId": request_id, "reason": "test"})
    last = server.think("last", number=22, chain_id=chain)

    events = replay(chain, data_dir=shared_data_dir)
    recorded = texts(events)
    in_order = [f"cancelled {n}" for n in range(2, 22)]
    assert recorded == ["one", *(t for t in in_order if t in recorded), "last"]
    assert last["thoughtHistoryLength"] == len(recorded)
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_ends_the_server_cleanly(shared_data_dir, number):
    with Server(shared_data_dir) as server:
        server.think("one", number=1)["chain_id"]

        assert server.interrupt(number) == 0


def test_a_signal_straight_after_the_handshake_ends_the_server_cleanly(shared_data_dir):
    with Server(shared_data_dir) as server:
        assert server.interrupt(signal.SIGTERM) == 0


def test_appends_in_flight_are_finished_when_the_client_hangs_up(data_dir):
    with Server(data_dir) as server:
        chain = server.think("one", number=1)["chain_id"]
        for number in range(2, 52):
            call = thought(f"thought {number}", number=number, chain_id=chain)
            server.send_call("sequentialthinking", call)

        assert server.close() == 0
        answers = [server.answer(request_id) for request_id in server.answered()]
        # Those that were not begun in time are answered as well: by an error, and not recorded.
        acknowledged = sum("thoughtHistoryLength" in (a.structured or {}) for a in answers)

    recorded = texts(replay(chain, data_dir=data_dir))
    assert recorded == ["one", *(f"thought {n}" for n in range(2, 52))][: len(recorded)]
    assert len(recorded) >= acknowledged


def test_postgresql_and_the_workers_end_with_the_last_server(data_dir):
    with Server(data_dir) as one:
        one.think("one", number=1)["chain_id"]
        with Server(data_dir) as other:
            other.think("two", number=1)["chain_id"]
            workers = [*children(one.process.pid), *children(other.process.pid)]
        assert postmaster(data_dir) is not None
        assert one.think("three", number=2)["thoughtHistoryLength"] == 2

    eventually(lambda: postmaster(data_dir) is None, 20, "the end of PostgreSQL")
    eventually(lambda: not any(map(is_running, workers)), 20, "the end of the workers")


def test_the_next_start_after_kill_9_of_the_last_server_adopts_its_postgresql(data_dir):
    with Server(data_dir) as server:
        chain = server.think("one", number=1)["chain_id"]
        server.kill()

    with Server(data_dir) as server:
        server.think("two", number=2, chain_id=chain)["chain_id"]

    with database(data_dir) as connection:
        recorded = [e.payload["text"] for e in read_log(connection) if e.topic in THOUGHTS]
    assert recorded == ["one", "two"]
    eventually(lambda: postmaster(data_dir) is None, 20, "the end of PostgreSQL")


def test_a_database_that_hangs_does_not_keep_the_server_for_ever(data_dir):
    server = Server(data_dir, "--no-worker")
    with server:
        server.think("one", number=1)["chain_id"]
        frozen = [postmaster(data_dir), *children(postmaster(data_dir))]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            server.send_call("sequentialthinking", thought("two", number=2))
            assert server.interrupt(signal.SIGTERM, timeout=HANGING_SECONDS_MAX) == 2
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            server.kill()


def test_a_data_directory_that_was_moved_away_is_not_made_anew(data_dir):
    with Server(data_dir, "--no-worker", exit_code=0) as server:
        server.think("one", number=1)["chain_id"]
        pid = postmaster(data_dir)
        moved = data_dir.with_name(data_dir.name + "-moved")
        data_dir.rename(moved)
        os.kill(pid, signal.SIGQUIT)
        try:
            eventually(lambda: not is_running(pid), 20, "the end of PostgreSQL")
            refused = server.think("two", number=2, timeout=60)
            assert refused.outcome == "isError"
            assert not data_dir.exists()
        finally:
            moved.rename(data_dir)


def test_a_command_that_is_ended_leaves_no_postgresql_behind(data_dir):
    command = subprocess.Popen(
        command_line("projections", "run", data_dir=data_dir), cwd=REPOSITORY
    )
    eventually(lambda: postmaster(data_dir) is not None, 20, "PostgreSQL")

    command.terminate()

    command.wait(20)
    eventually(lambda: postmaster(data_dir) is None, 20, "the end of PostgreSQL")


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"
