import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from mcp_server.frames import (
    HEAD_BYTES,
    LINE_BYTES_MAX,
    TAIL_BYTES,
    LineSplitter,
    Oversized,
    Refusal,
    encode_message,
    find_id,
    read_frame,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@given(st.lists(st.binary() | st.just(b"\n")))
def test_however_the_bytes_arrive_the_lines_are_the_same(chunks):
    splitter = LineSplitter()

    lines = [line for chunk in chunks for line in splitter.feed(chunk)]

    assert [*lines, splitter.finish()] == b"".join(chunks).split(b"\n")


def test_of_an_oversized_line_only_the_ends_are_kept():
    splitter = LineSplitter()
    chunk = bytes(range(32, 96)) * 1_024

    lines = [line for _ in range(3 * LINE_BYTES_MAX // len(chunk)) for line in splitter.feed(chunk)]
    lines += splitter.feed(b"end\nnext\n")

    oversized, following = lines
    assert oversized == Oversized(chunk[:HEAD_BYTES], (chunk + b"end")[-TAIL_BYTES:])
    assert following == b"next"


@given(st.binary())
def test_no_line_raises(line):
    frame = read_frame(line)

    if isinstance(frame, Refusal):
        json.loads(frame.encode())


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), json_values
    )
)
def test_no_object_raises_and_every_call_with_an_id_can_be_answered(content):
    frame = read_frame(json.dumps({"jsonrpc": "2.0", **content}).encode())

    if "method" in content and isinstance(content.get("id"), str):
        assert isinstance(frame, JSONRPCRequest | Refusal)
        assert (frame.id if isinstance(frame, JSONRPCRequest) else frame.request_id) is not None


@given(st.dictionaries(st.text(), json_values))
def test_a_request_is_read_as_it_was_written(params):
    request = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}

    assert read_frame(json.dumps(request).encode()) == JSONRPCRequest(**request)


def test_a_message_without_an_id_is_a_notification():
    assert isinstance(read_frame(b'{"jsonrpc":"2.0","method":"m"}'), JSONRPCNotification)


@pytest.mark.parametrize(
    ("head", "tail", "request_id"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"aaa', "", 7),
        ('{ "id" : "a\\"b" , "params"', "", 'a"b'),
        ('{"method":"m","params":{"id":1,"list":[{"id":2}]},"id":3}', "", 3),
        ('{"method":"m","params":{"text":"\\"id\\":1,aaa', 'aaa"},"jsonrpc":"2.0","id":4}', 4),
        (
            '{"method":"m","params":{"text":"}}\\"id\\":1,aaa',
            'aaa"},"id":"x","jsonrpc":"2.0"}\r',
            "x",
        ),
        ('{"params":{"text":"\\', '","id":5}}', None),
        ('{"params":{"text":"id', '"},"id":true}', None),
        ('{"id":"unfinished', "", None),
        ('{"id":12', '3,"method":"m"}', None),
        ('[{"id":1}]', '[{"id":1}]', None),
        ("", "", None),
    ],
)
def test_an_id_is_found_only_where_it_is_the_message_s_own(head, tail, request_id):
    assert find_id(head, tail) == request_id


@pytest.mark.parametrize(
    ("value", "read_back"),
    [("a\ud800b", "a\ufffdb"), (2**70, 2**70), ({"\udfff": 1}, {"\ufffd": 1})],
)
def test_an_answer_is_written_whatever_it_holds(value, read_back):
    line = encode_message(JSONRPCResponse(jsonrpc="2.0", id=1, result={"value": value}))

    assert json.loads(line) == {"jsonrpc": "2.0", "id": 1, "result": {"value": read_back}}
    assert line.endswith(b"\n")
