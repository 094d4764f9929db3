"""Events to bytes and back: nothing is lost, and nothing changes unseen."""

import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from eventsourcing.persistence import StoredEvent
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import LedgerError, TamperedEventError, UnreadableEventError
from ledger.events import ChainPaused, ThoughtAdded
from ledger.header import Context
from ledger.limits import recordable
from ledger.serialization import LedgerMapper, LedgerTranscoder, decode, encode, open_state
from tests import histories
from tests.stored import CONTEXT, forged, rehashed, stored

any_text = st.text(st.characters())
contexts = st.builds(
    Context,
    actor=st.text(),
    client=st.none() | st.text(),
    client_version=st.none() | st.text(),
    tenant=st.text(),
    request_id=st.none() | st.text(),
    correlation_id=st.none() | st.text(),
    causation_id=st.none() | st.text(),
)


def thought(text: str = "a thought", **said: Any) -> ThoughtAdded:
    optional = dict.fromkeys(field.name for field in fields(ThoughtAdded))
    required = {
        "originator_id": UUID("abcdefab-cdef-4bcd-8fab-cdefabcdefab"),
        "originator_version": 2,
        "timestamp": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "thought_id": UUID("fedcbafe-dcba-4edc-9bfe-dcbafedcbafe"),
        "sequence": 1,
        "text": text,
        "thought_number": 1,
        "total_thoughts": 1,
        "next_thought_needed": True,
    }
    return ThoughtAdded(**(optional | required | said))


def with_state(row: StoredEvent, state: bytes) -> StoredEvent:
    return StoredEvent(row.originator_id, row.originator_version, row.topic, state)


def unnoticed(row: StoredEvent, states: list[bytes]) -> list[bytes]:
    """Those of the changed states that are decoded as if nothing had happened."""
    passed = []
    for state in states:
        assert state != row.state
        try:
            decode(1, with_state(row, state))
        except LedgerError:
            continue
        passed.append(state)
    return passed


def numbers_in(value: object) -> list[object]:
    match value:
        case dict():
            return [number for inside in value.values() for number in numbers_in(inside)]
        case list():
            return [number for inside in value for number in numbers_in(inside)]
        case int() | float():
            return [value]
        case _:
            return []


# There and back


@given(event=histories.events, context=contexts)
def test_decode_after_encode_is_identity(event, context):
    recorded = decode(5, stored(event, context))

    assert recorded.event == event
    assert type(recorded.event) is type(event)
    assert recorded.position == 5


@given(event=histories.events, context=contexts)
def test_the_header_keeps_who_when_and_why(event, context):
    header = decode(5, stored(event, context)).header

    # A principal is the actor, where there is one.
    names = [name for name in Context.__slots__ if name != "principal"]
    assert {name: getattr(header, name) for name in names} == {
        name: getattr(context, name) for name in names
    }
    assert (header.chain_id, header.version, header.topic, header.recorded_at) == (
        event.originator_id,
        event.originator_version,
        event.TOPIC,
        event.timestamp,
    )


@given(text=any_text)
def test_any_text_that_is_made_recordable_comes_back_as_it_is(text):
    event = thought(recordable(text))

    assert decode(1, stored(event)).event == event


@pytest.mark.parametrize(
    "text",
    ["", "\x00", "a\x00b", "\r\n", "\n", "\u2028\u2029", "\ufeff", "\U0001f9e0\u200d", "\x1b[0m"],
)
def test_odd_texts_come_back_as_they_are(text):
    assert decode(1, stored(thought(text))).event == thought(text)


@given(text=any_text)
def test_recordable_changes_lone_surrogates_and_nothing_else(text):
    kept = "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text
    )

    assert recordable(text) == kept


def test_a_moment_in_another_zone_is_the_same_moment():
    there = timezone(timedelta(hours=-7, minutes=-30))
    event = thought(claimed_at=datetime(2026, 1, 1, 23, 0, tzinfo=there))

    recorded = decode(1, stored(event)).event

    assert isinstance(recorded, ThoughtAdded)
    assert recorded.claimed_at == event.claimed_at
    assert recorded.claimed_at.utcoffset() == timedelta(0)


@given(event=histories.events)
def test_the_mapper_of_the_library_stores_and_reads_the_same(event):
    mapper = LedgerMapper(CONTEXT)

    row = mapper.to_stored_event(event)

    assert row.topic == event.TOPIC
    assert mapper.to_domain_event(row) == event


def test_the_transcoder_of_the_library_speaks_json():
    transcoder = LedgerTranscoder()

    assert transcoder.decode(transcoder.encode({"b": [1, None], "a": "é"})) == {
        "a": "é",
        "b": [1, None],
    }


# The format


@given(event=histories.events, context=contexts)
def test_header_and_payload_are_canonical_json_parted_by_one_line_feed(event, context):
    state = encode(event, context)

    assert state.count(b"\n") == 1
    for part in state.split(b"\n"):
        said = orjson.loads(part)
        assert orjson.dumps(said, option=orjson.OPT_SORT_KEYS) == part
        assert list(said) == sorted(said)
        assert all(key.isascii() for key in said)
        assert all(type(number) in (int, bool) for number in numbers_in(said))
        assert not any(isinstance(value, dict) for value in said.values())


@given(event=histories.events)
def test_what_is_null_is_left_out_of_the_payload(event):
    payload = orjson.loads(encode(event, CONTEXT).partition(b"\n")[2])

    assert None not in payload.values()


@given(moment=histories.moments)
def test_moments_are_stored_in_utc_with_six_decimals(moment):
    event = thought(claimed_at=moment, timestamp=moment)

    header, payload = map(orjson.loads, encode(event, CONTEXT).split(b"\n"))

    for written in (header["recorded_at"], payload["claimed_at"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", written)


def test_the_same_event_is_never_the_same_bytes_twice():
    first, second = (encode(thought(), CONTEXT) for _ in range(2))

    salts = [orjson.loads(state.partition(b"\n")[2])["salt"] for state in (first, second)]
    assert all(re.fullmatch("[0-9a-f]{32}", salt) for salt in salts)
    assert salts[0] != salts[1]
    assert open_state_of(first).commitment != open_state_of(second).commitment
    assert open_state_of(first).event_id != open_state_of(second).event_id


def test_event_ids_are_of_the_kind_that_is_made_by_its_own_rule():
    header = open_state_of(encode(thought(), CONTEXT))

    assert (header.event_id.version, header.event_id.variant) == (8, "specified in RFC 4122")


def open_state_of(state: bytes):
    event = thought()
    row = StoredEvent(event.originator_id, event.originator_version, event.TOPIC, state)
    return open_state(row)[0]


# Nothing changes unseen


@pytest.fixture(scope="module")
def row() -> StoredEvent:
    return stored(thought("né\x00"))


def test_every_flipped_bit_is_noticed(row):
    flipped = [
        row.state[:place] + bytes([row.state[place] ^ 1 << bit]) + row.state[place + 1 :]
        for place in range(len(row.state))
        for bit in range(8)
    ]

    assert unnoticed(row, flipped) == []


def test_every_removed_byte_is_noticed(row):
    shortened = [row.state[:at] + row.state[at + 1 :] for at in range(len(row.state))]

    assert unnoticed(row, shortened) == []


@pytest.mark.parametrize("byte", [b"\n", b" ", b"0", b'"', b"{", b"\x00", b"-", b"}"])
def test_every_inserted_byte_is_noticed(row, byte):
    longer = [row.state[:at] + byte + row.state[at:] for at in range(len(row.state) + 1)]

    assert unnoticed(row, longer) == []


@given(event=histories.events, context=contexts, choose=st.data())
def test_any_other_bytes_are_noticed(event, context, choose):
    row = stored(event, context)
    begin = choose.draw(st.integers(0, len(row.state)))
    end = choose.draw(st.integers(begin, len(row.state)))
    other = choose.draw(st.binary(max_size=8).filter(lambda some: some != row.state[begin:end]))

    with pytest.raises(LedgerError):
        decode(1, with_state(row, row.state[:begin] + other + row.state[end:]))


@pytest.mark.parametrize("spelling", [str.upper, lambda text: text.replace("-", "") + "----"])
def test_an_event_id_spelled_otherwise_is_noticed(row, spelling):
    event_id = orjson.loads(row.state.partition(b"\n")[0])["event_id"]
    changed = row.state.replace(event_id.encode(), spelling(event_id).encode())

    with pytest.raises(TamperedEventError):
        decode(1, with_state(row, changed))


@given(one=histories.events, other=histories.events)
def test_a_payload_under_the_header_of_another_event_is_noticed(one, other):
    head = encode(one, CONTEXT).partition(b"\n")[0]
    payload = encode(other, CONTEXT).partition(b"\n")[2]

    with pytest.raises(TamperedEventError) as refusal:
        decode(1, with_state(stored(one), head + b"\n" + payload))

    assert (refusal.value.chain_id, refusal.value.version) == (
        one.originator_id,
        one.originator_version,
    )


@pytest.mark.parametrize(
    "column",
    [{"originator_id": uuid4()}, {"originator_version": 3}, {"topic": "thought.revised"}],
)
def test_a_changed_column_is_noticed(row, column):
    columns = {
        name: getattr(row, name)
        for name in ("originator_id", "originator_version", "topic", "state")
    }

    with pytest.raises(TamperedEventError):
        decode(1, StoredEvent(**(columns | column)))


@pytest.mark.parametrize("state", [b"", b"\n", b"{}\n{}", b"[]\n[]", b"null\nnull", b"\xff\n\xff"])
def test_bytes_that_were_never_an_event_are_noticed(row, state):
    with pytest.raises(TamperedEventError):
        decode(1, with_state(row, state))


# Hashes that fit do not make it an event


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"null",
        b"7",
        b'"salt"',
        b"{}",
        b'{"salt":"","reason":7}',
        b'{"salt":"","reason":["no","list"]}',
        b'{"salt":"","surprise":1}',
        b'{"salt":"","class_version":2}',
        b'{"salt":"","class_version":0}',
        b'{"salt":"","class_version":"1"}',
        b'{"salt":"","class_version":null}',
        b'{"salt":"","originator_id":"x"}',
    ],
)
def test_a_payload_of_another_shape_is_refused(payload):
    with pytest.raises(UnreadableEventError) as refusal:
        decode(1, forged("chain.paused", payload))

    assert refusal.value.topic == "chain.paused"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("thought_id", "not an id"),
        ("thought_id", None),
        ("thought_id", 7),
        ("sequence", True),
        ("sequence", 1.0),
        ("sequence", "1"),
        ("next_thought_needed", 1),
        ("claimed_at", "yesterday"),
        ("claimed_at", "2026-01-01T00:00:00"),
        ("text", None),
        ("assumptions", "one"),
        ("assumptions", ["one", 2]),
        ("assumptions", [None]),
    ],
)
def test_a_field_of_another_type_is_refused(field, value):
    payload = orjson.loads(encode(thought(), CONTEXT).partition(b"\n")[2]) | {field: value}

    with pytest.raises(UnreadableEventError) as refusal:
        decode(1, forged("thought.added", orjson.dumps(payload)))

    assert refusal.value.topic == "thought.added"


@pytest.mark.parametrize(
    "header", [{"format": 2}, {"format": "1"}, {"key_id": "a key this version has not"}]
)
def test_a_format_of_later_days_is_refused(header):
    with pytest.raises(UnreadableEventError):
        decode(1, forged("chain.paused", b'{"salt":""}', **header))


def test_the_tests_forge_headers_as_the_ledger_makes_them():
    head = encode(thought(), CONTEXT).partition(b"\n")[0]

    assert rehashed(head) == head
    assert isinstance(decode(1, forged("chain.paused", b'{"salt":""}')).event, ChainPaused)
