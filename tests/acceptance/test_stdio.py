import json
import os
import select
import signal
import subprocess

import pytest

from mcp_server.frames import LINE_BYTES_MAX
from tests.acceptance.stdio_client import (
    INITIALIZE,
    INITIALIZED,
    REPOSITORY,
    SERVER,
    WAIT_SECONDS_MAX,
    RawClient,
    call_of,
    line_of,
    wait_for,
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


def echo(request_id, json_text):
    """A call of echo whose argument is given as it stands on the wire."""
    head, tail = line_of(call_of(request_id, "echo", text="HERE")).split(b'"HERE"')
    return head + json_text + tail


@pytest.fixture(scope="module")
def shared():
    """A server for the tests that leave it as it was."""
    with RawClient() as client:
        client.initialize()
        yield client


@pytest.fixture
def client():
    with RawClient() as client:
        client.initialize()
        yield client


def is_alive(client):
    return client.call("alive", "empty", number=7) == {"number": 7}


# ---------------------------------------------------------------- lines as clients write them


@pytest.mark.parametrize(
    ("case", "line"),
    [
        ("byte order mark", b"\xef\xbb\xbf" + line_of(call_of(1, "echo", text="x"))),
        ("CRLF", line_of(call_of(1, "echo", text="x")).replace(b"\n", b"\r\n")),
        ("blank lines", b"\n\r\n \t\n" + line_of(call_of(1, "echo", text="x")) + b"\n"),
        ("spaces around", b"  " + line_of(call_of(1, "echo", text="x")).replace(b"\n", b" \n")),
    ],
)
def test_a_line_is_taken_as_its_sender_meant_it(shared, case, line):
    assert shared.ask(line)["result"]["structuredContent"] == {"text": "x"}


def test_a_byte_order_mark_may_open_the_connection():
    with RawClient() as client:
        answer = client.ask(b"\xef\xbb\xbf" + line_of(INITIALIZE).replace(b"\n", b"\r\n"))

        assert answer["result"]["serverInfo"]["name"] == "echo"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (b'"\\ud83e\\udde0"', "\U0001f9e0"),
        (b'"a\\ud800b"', "a\ufffdb"),
        (b'"\\udc00\\ud800"', "\ufffd\ufffd"),
        (b'"\\ud83e\\ud83e\\udde0"', "\ufffd\U0001f9e0"),
        (b'"\\ud800\\n\\udde0"', "\ufffd\n\ufffd"),
        (b'"\\\\ud800 \\ud800"', "\\ud800 \ufffd"),
        (b'"\\\\\\ud800"', "\\\ufffd"),
        (b'"\\uD800\\u0041"', "\ufffdA"),
        (b'"a\xffb"', "a\ufffdb"),
        (b'"a\\u0000b"', "a\0b"),
        ('"é中文 \u2028 \u0085 \U0001f600"'.encode(), "é中文 \u2028 \u0085 \U0001f600"),
        (b'{"\\ud800": ["\\udfff"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_only_what_no_utf8_can_hold_is_replaced(shared, written, text):
    assert shared.ask(echo(2, written))["result"]["structuredContent"] == {"text": text}


def test_a_lone_surrogate_in_an_id_is_replaced(shared):
    answer = shared.ask(echo(3, b'"x"').replace(b'"id": 3', b'"id": "\\ud800"'))

    assert answer["id"] == "\ufffd"
    assert answer["result"]["structuredContent"] == {"text": "x"}


# ---------------------------------------------------------------- lines that are no message


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{not json}\n", PARSE_ERROR, None),
        (b'{"jsonrpc": "2.0", "id": 4, "method"\n', PARSE_ERROR, None),
        (b"\x00\x01\x02\n", PARSE_ERROR, None),
        (b'"\n', PARSE_ERROR, None),
        (b"\\\n", PARSE_ERROR, None),
        (b"[" * 5_000 + b"\n", PARSE_ERROR, None),
        (echo(4, b"[" * 5_000 + b"]" * 5_000), PARSE_ERROR, 4),
        (echo(4, b'{"a":' * 5_000 + b"1" + b"}" * 5_000), PARSE_ERROR, 4),
        (echo(4, b"NaN"), PARSE_ERROR, 4),
        (echo(4, b"-Infinity"), PARSE_ERROR, 4),
        (echo(4, b"1e999"), PARSE_ERROR, 4),
        (line_of([call_of(4, "empty")]), INVALID_REQUEST, None),
        (b"[]\n", INVALID_REQUEST, None),
        (b"5\n", INVALID_REQUEST, None),
        (b"null\n", INVALID_REQUEST, None),
        (b"{}\n", INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 4}\n', INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": "four", "method": 5}\n', INVALID_REQUEST, "four"),
        (b'{"jsonrpc": "1.0", "id": 4, "method": "ping"}\n', INVALID_REQUEST, 4),
        (b'{"id": 4, "method": "ping"}\n', INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": [1]}\n', INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4.5, "method": "ping"}\n', INVALID_REQUEST, 4.5),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}\n', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}\n', INVALID_REQUEST, None),
    ],
)
def test_a_line_that_is_no_message_is_answered_with_an_error(shared, line, code, request_id):
    answer = shared.ask(line)

    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == request_id
    assert answer["error"]["code"] == code
    assert is_alive(shared)


@pytest.mark.parametrize("depth", [150, 250, 900, 1_010])
def test_nesting_the_parser_bears_is_answered_with_something(shared, depth):
    answer = shared.ask(echo(5, b"[" * depth + b"]" * depth))

    assert answer["id"] == 5
    assert is_alive(shared)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/unheard_of"},
        {"jsonrpc": "2.0", "method": "notifications/initialized", "id": None},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "id": 99, "result": "malformed"},
        {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "no"}},
    ],
)
def test_what_asks_for_nothing_is_not_answered(shared, message):
    shared.send(message)

    assert is_alive(shared)


# ---------------------------------------------------------------- sizes


def test_a_line_just_under_the_limit_is_served(shared):
    size = int(9.9 * 2**20)

    assert shared.call(6, "length", text="y" * size) == {"length": size}


@pytest.mark.parametrize(
    "order", [["jsonrpc", "id", "method", "params"], ["method", "params", "jsonrpc", "id"]]
)
def test_a_longer_line_is_refused_by_the_id_it_came_with(shared, order):
    # The text holds what looks like ids of its own, as a thought about JSON would.
    message = call_of(7, "length", text='"id":1,{"id":2}' + "y" * LINE_BYTES_MAX + '","id":3}')

    answer = shared.ask({name: message[name] for name in order})

    assert answer["id"] == 7
    assert answer["error"]["code"] == INVALID_REQUEST
    assert "10 MiB" in answer["error"]["message"]
    assert is_alive(shared)


def test_the_limit_is_exact(shared):
    line = line_of(call_of(8, "length", text=""))
    line = line.replace(b'""', b'"' + b"y" * (LINE_BYTES_MAX - len(line) + 1) + b'"')

    assert "result" in shared.ask(line)
    assert "error" in shared.ask(line.replace(b'"y', b'"yy'))


def test_a_line_of_70_mebibytes_is_refused_without_being_held(client):
    before = client.call(1, "memory")["peak_kib"]

    answer = client.ask(call_of(2, "length", text="y" * (70 * 2**20)))

    assert (answer["id"], answer["error"]["code"]) == (2, INVALID_REQUEST)
    assert client.call(3, "memory")["peak_kib"] - before < 40 * 2**10


# ---------------------------------------------------------------- order and flow


def test_pipelined_calls_are_dispatched_in_the_order_sent(shared):
    shared.send(*(call_of(number, "ordered", number=number) for number in range(300)))
    answers = [shared.receive() for _ in range(300)]

    positions = {
        answer["id"]: answer["result"]["structuredContent"]["before"] for answer in answers
    }
    assert positions == {number: number for number in range(300)}


def test_calls_may_come_with_the_handshake():
    with RawClient() as client:
        client.send(INITIALIZE, INITIALIZED, *(call_of(n, "empty", number=n) for n in range(5)))

        assert client.receive()["id"] == "init"
        assert [client.receive()["id"] for _ in range(5)] == list(range(5))


def test_a_line_may_come_byte_by_byte_and_many_in_one_write(shared):
    line = line_of(call_of(1, "echo", text="é" * 10))
    for byte in line:
        shared.send(bytes([byte]))
    shared.send(line + line[:20])
    shared.send(line[20:] + line)

    assert [shared.receive()["id"] for _ in range(4)] == [1] * 4


def test_a_client_that_does_not_read_is_not_read_from(client):
    before = client.call(0, "memory")["peak_kib"]
    question = line_of(call_of(1, "large", size=50_000, padding="x" * 4_000))
    questions = memoryview(question * 5_000)
    sent = 0

    os.set_blocking(client.to_server, False)
    while select.select([], [client.to_server], [], 1.0)[1]:
        sent += os.write(client.to_server, questions[sent:])
    os.set_blocking(client.to_server, True)

    assert sent < 5 * 2**20
    whole, part = divmod(sent, len(question))
    assert [client.receive()["id"] for _ in range(whole)] == [1] * whole
    assert client.ask(question[part:] if part else question)["id"] == 1
    assert client.call(2, "memory")["peak_kib"] - before < 40 * 2**10


def test_a_cancelled_call_ends_unanswered(shared, tmp_path):
    told = tmp_path / "told"
    shared.send(call_of(1, "hang", path=str(told)))
    wait_for(told, "started")

    shared.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    wait_for(told, "cancelled")
    assert is_alive(shared)


def test_nothing_but_the_protocol_reaches_the_client(client):
    assert client.call(1, "pollute") == {"eaten": 0}
    assert is_alive(client)

    client.close_input()
    assert client.receive() is None
    noise = client.stderr()
    assert all(word in noise for word in ("print", "os.write", "libc", "child"))


# ---------------------------------------------------------------- endings


def test_a_call_sent_just_before_the_end_of_input_is_answered(client):
    client.send(*(call_of(n, "ordered", number=n) for n in range(20)))
    client.close_input()

    assert [client.receive()["id"] for _ in range(20)] == list(range(20))
    assert client.receive() is None
    assert client.exit_code() == 0


@pytest.mark.parametrize("ending", ["end of input", "SIGINT", "SIGTERM", "SIGHUP"])
def test_an_ending_is_clean_and_leaves_no_thread(client, ending):
    if ending == "end of input":
        client.close_input()
    else:
        client.process.send_signal(getattr(signal, ending))

    assert client.exit_code() == 0
    assert client.receive() is None
    assert client.stderr() == "non-daemon threads: []\n"


@pytest.mark.parametrize("ending", ["end of input", "SIGINT", "SIGTERM"])
def test_a_shielded_call_in_flight_is_finished_and_answered(client, tmp_path, ending):
    told = tmp_path / "told"
    client.send(call_of(1, "shielded", path=str(told), seconds=0.5))
    wait_for(told, "started")

    if ending == "end of input":
        client.close_input()
    else:
        client.process.send_signal(getattr(signal, ending))

    answer = client.receive()
    assert (answer["id"], answer.get("result", {}).get("structuredContent")) == (
        1,
        {"finished": True},
    )
    assert client.exit_code() == 0
    assert told.read_text() == "finished"


@pytest.mark.parametrize("ending", ["end of input", "SIGINT"])
def test_a_call_that_hangs_is_cancelled_and_answered_with_an_error(client, tmp_path, ending):
    told = tmp_path / "told"
    client.send(call_of(1, "hang", path=str(told)))
    wait_for(told, "started")

    if ending == "end of input":
        client.close_input()
    else:
        client.process.send_signal(signal.SIGINT)

    assert client.receive()["error"]["code"] == -32000
    assert client.exit_code() == 0
    assert told.read_text() == "cancelled"


@pytest.mark.parametrize("over", ["pipes", "sockets"])
def test_a_client_that_closes_its_reading_end_ends_the_server(over):
    with RawClient(over) as client:
        client.initialize()
        client.close_output()

        assert client.exit_code() == 0


def test_a_client_that_closes_its_reading_end_with_answers_unread_ends_the_server(client):
    client.send(call_of(1, "large", size=5_000_000))
    select.select([client.from_server], [], [], WAIT_SECONDS_MAX)
    client.close_output()

    assert client.exit_code() == 0


@pytest.mark.parametrize("ending", ["end of input", "SIGTERM"])
def test_a_client_that_reads_no_more_cannot_hold_the_server(client, ending):
    client.send(*(call_of(n, "large", size=2_000_000) for n in range(10)))
    select.select([client.from_server], [], [], WAIT_SECONDS_MAX)
    if ending == "end of input":
        client.close_input()
    else:
        client.process.send_signal(signal.SIGTERM)

    assert client.exit_code() == 0


# ---------------------------------------------------------------- other descriptors


@pytest.mark.parametrize("over", ["sockets", "one socket"])
def test_sockets_serve_as_well_as_pipes(over):
    with RawClient(over) as client:
        client.initialize()
        client.send(*(call_of(n, "large", size=50_000) for n in range(50)))
        assert [client.receive()["id"] for _ in range(50)] == list(range(50))

        client.close_input()
        client.close_output()

        assert client.exit_code() == 0


def test_a_file_of_requests_is_answered_into_a_file(tmp_path):
    requests = [INITIALIZE, INITIALIZED, *(call_of(n, "ordered", number=n) for n in range(100))]
    told = str(tmp_path / "told")
    last = line_of(call_of(100, "shielded", path=told, seconds=0.5)).rstrip(b"\n")
    (tmp_path / "in").write_bytes(b"".join(map(line_of, requests)) + last)

    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as target:
        ended = subprocess.run(
            SERVER,
            stdin=source,
            stdout=target,
            cwd=REPOSITORY,
            timeout=WAIT_SECONDS_MAX,
            check=False,
        )

    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert ended.returncode == 0
    assert [answer["id"] for answer in answers] == ["init", *range(101)]
    assert answers[-1]["result"]["structuredContent"] == {"finished": True}


def test_without_a_client_the_server_ends_at_once():
    ended = subprocess.run(
        SERVER,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=REPOSITORY,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )

    assert ended.returncode == 0


def test_a_terminal_is_served_and_interrupted():
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        SERVER, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=REPOSITORY
    )
    os.close(theirs)
    try:
        os.write(ours, line_of(INITIALIZE))
        assert json.loads(process.stdout.readline())["id"] == "init"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=WAIT_SECONDS_MAX) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(ours)
