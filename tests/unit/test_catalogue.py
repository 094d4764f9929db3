"""The catalogue is closed, and what was ever stored stays readable."""

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID, uuid4

import orjson
import pytest
from eventsourcing.domain import ProgrammingError
from eventsourcing.persistence import StoredEvent

from ledger.aggregate import ThoughtChain
from ledger.errors import UnknownTopicError, UnreadableEventError
from ledger.events import (
    CATALOGUE,
    BranchClosed,
    ChainAbandoned,
    ChainCompleted,
    ChainPaused,
    ChainRecalled,
    ChainReopened,
    ChainResumed,
    ChainStarted,
    FeedbackGiven,
    LedgerEvent,
    ThoughtAbandoned,
    ThoughtAdded,
    ThoughtBranched,
    ThoughtRevised,
)
from ledger.header import Context
from ledger.serialization import ENVELOPE, Recorded, decode, encode
from tests.stored import forged, stored

GOLDEN = Path(__file__).parents[1] / "golden"
FIELD_TYPES = {str, int, bool, UUID, datetime, list[str]}

CHAIN = UUID("11111111-1111-4111-8111-111111111111")
FIRST = UUID("22222222-2222-4222-8222-222222222222")
SECOND = UUID("33333333-3333-4333-8333-333333333333")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GOLDEN_CONTEXT = Context(
    actor="agent é",
    client="golden",
    client_version="1.0",
    request_id="request",
    correlation_id="correlation",
    causation_id="causation",
)

THOUGHT: dict[str, Any] = {
    "thought_id": SECOND,
    "sequence": 2,
    "parent_thought_id": FIRST,
    "text": 'né\x00\u2028 "quoted" \U0001f9e0\nsecond line',
    "thought_number": 2,
    "total_thoughts": 9007199254740991,
    "next_thought_needed": True,
    "needs_more_thoughts": False,
    "branch_id": "b",
    "branch_from_thought_number": 1,
    "confidence_millionths": 750_000,
    "assumptions": ["one", ""],
    "critique": "c",
    "counter_argument": "d",
    "next_step_rationale": "e",
    "claimed_at": datetime(2025, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    "source": "s",
    "metadata": '{"k":1.5}',
}
EXPECTED: dict[str, tuple[type[LedgerEvent], dict[str, Any]]] = {
    "chain.started.v1": (
        ChainStarted,
        {
            "originator_topic": "thought_chain",
            "title": "a title",
            "session_id": "session",
            "parent_chain_id": FIRST,
            "source": None,
            "metadata": "{}",
        },
    ),
    "thought.added.v1": (ThoughtAdded, THOUGHT),
    "thought.revised.v1": (
        ThoughtRevised,
        THOUGHT | {"revises_thought_number": 1, "revises_thought_id": FIRST, "reason": "r"},
    ),
    "thought.branched.v1": (
        ThoughtBranched,
        THOUGHT
        | {
            "branch_from_thought_id": FIRST,
            "is_revision": True,
            "revises_thought_number": 1,
            "revises_thought_id": FIRST,
            "reason": None,
        },
    ),
    "thought.abandoned.v1": (
        ThoughtAbandoned,
        {"thought_id": FIRST, "thought_number": 1, "reason": "a dead end"},
    ),
    "branch.closed.v1": (
        BranchClosed,
        {"branch_id": "b", "outcome": "merged", "conclusion": "both agree"},
    ),
    "chain.paused.v1": (ChainPaused, {"reason": "lunch"}),
    "chain.resumed.v1": (ChainResumed, {"reason": None}),
    "chain.completed.v1": (
        ChainCompleted,
        {"reason": "done", "conclusion": "42", "metadata": "[]"},
    ),
    "chain.reopened.v1": (ChainReopened, {"reason": None}),
    "chain.abandoned.v1": (ChainAbandoned, {"reason": "hopeless", "metadata": None}),
    "feedback.given.v1": (
        FeedbackGiven,
        {
            "signal": "helpful",
            "thought_id": FIRST,
            "scope": "chain",
            "source": "human",
            "note": None,
        },
    ),
    "chain.recalled.v1": (
        ChainRecalled,
        {"chain_id": FIRST, "tool": "find", "thought_ids": [str(SECOND)]},
    ),
}


def expected(name: str) -> LedgerEvent:
    event_class, fields = EXPECTED[name]
    return event_class(originator_id=CHAIN, originator_version=7, timestamp=MOMENT, **fields)


def decode_golden(name: str) -> Recorded:
    state = (GOLDEN / name).read_bytes()
    return decode(3, StoredEvent(CHAIN, 7, EXPECTED[name][0].TOPIC, state))


class Measured(LedgerEvent):
    """Version 1 held centimetres; version 2 had no unit; version 3 has both."""

    TOPIC = "test.measured"
    class_version = 3

    millimetres: int
    unit: str | None

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        state["millimetres"] = state.pop("centimetres") * 10

    @staticmethod
    def upcast_v2_v3(state: dict[str, Any]) -> None:
        state["unit"] = "mm"


@pytest.fixture
def measured(monkeypatch):
    """A catalogue with one topic more."""
    monkeypatch.setitem(CATALOGUE, Measured.TOPIC, Measured)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_was_stored_once_is_read_the_same_for_ever(name):
    recorded = decode_golden(name)

    assert recorded.event == expected(name)
    assert type(recorded.event) is EXPECTED[name][0]


def test_a_stored_header_says_who_when_and_why():
    header = decode_golden("thought.added.v1").header

    assert (header.format, header.tenant, header.key_id) == (1, "default", None)
    assert (header.chain_id, header.version, header.topic) == (CHAIN, 7, "thought.added")
    assert (header.recorded_at, header.actor) == (MOMENT, "agent é")
    assert (header.client, header.client_version) == ("golden", "1.0")
    assert header.request_id == "request"
    assert (header.correlation_id, header.causation_id) == ("correlation", "causation")


def test_every_version_of_every_topic_has_a_stored_example():
    wanted = {
        f"{topic}.v{version}"
        for topic, event_class in CATALOGUE.items()
        for version in range(1, event_class.class_version + 1)
    }

    assert {file.name for file in GOLDEN.iterdir()} == wanted == set(EXPECTED)


@pytest.mark.parametrize("event_class", CATALOGUE.values())
def test_fields_are_flat(event_class):
    hints = get_type_hints(event_class)
    names = {field.name for field in fields(event_class)} - ENVELOPE

    for name in names:
        arms = {hints[name]} if hints[name] in FIELD_TYPES else set(get_args(hints[name]))
        assert arms - {type(None)} <= FIELD_TYPES, name
        assert name.isascii()


@pytest.mark.parametrize("event_class", CATALOGUE.values())
def test_every_older_version_has_an_upcaster(event_class):
    for version in range(1, event_class.class_version):
        assert callable(getattr(event_class, f"upcast_v{version}_v{version + 1}"))


def test_a_chain_cannot_decide_an_event_outside_the_catalogue():
    chain = ThoughtChain.start(uuid4(), title="t")

    with pytest.raises(ProgrammingError):
        chain.trigger_event(Measured, millimetres=1, unit=None)


def test_an_event_outside_the_catalogue_cannot_be_recorded():
    event = Measured(
        originator_id=CHAIN, originator_version=1, timestamp=MOMENT, millimetres=1, unit=None
    )

    with pytest.raises(TypeError):
        encode(event, GOLDEN_CONTEXT)


def test_a_class_cannot_be_recorded_under_the_topic_of_another():
    class Impostor(ChainPaused):
        TOPIC = "chain.paused"

    event = Impostor(originator_id=CHAIN, originator_version=1, timestamp=MOMENT, reason=None)

    with pytest.raises(TypeError):
        encode(event, GOLDEN_CONTEXT)


def test_a_topic_outside_the_catalogue_cannot_be_read(measured, monkeypatch):
    event = Measured(
        originator_id=CHAIN, originator_version=1, timestamp=MOMENT, millimetres=1, unit=None
    )
    row = stored(event)
    monkeypatch.undo()

    with pytest.raises(UnknownTopicError) as refusal:
        decode(1, row)

    assert refusal.value.topic == "test.measured"


def test_a_topic_that_names_code_is_not_imported():
    with pytest.raises(UnknownTopicError):
        decode(1, forged("os:system", b'{"salt":""}'))


@pytest.mark.parametrize(
    "payload",
    [
        {"centimetres": 2, "salt": ""},
        {"millimetres": 20, "salt": "", "class_version": 2},
        {"millimetres": 20, "unit": "mm", "salt": "", "class_version": 3},
    ],
)
def test_an_older_version_is_brought_up_step_by_step(measured, payload):
    recorded = decode(1, forged(Measured.TOPIC, orjson.dumps(payload)))

    assert isinstance(recorded.event, Measured)
    assert (recorded.event.millimetres, recorded.event.unit) == (20, "mm")


def test_a_newer_version_is_refused(measured):
    payload = orjson.dumps({"millimetres": 1, "salt": "", "class_version": 4})

    with pytest.raises(UnreadableEventError) as refusal:
        decode(1, forged(Measured.TOPIC, payload))

    assert refusal.value.topic == Measured.TOPIC


def test_the_version_of_a_class_is_stored_from_its_second_on(measured):
    event = Measured(
        originator_id=CHAIN, originator_version=1, timestamp=MOMENT, millimetres=1, unit="mm"
    )
    payloads = [
        orjson.loads(stored(each).state.partition(b"\n")[2])
        for each in (event, expected("chain.paused.v1"))
    ]

    assert [payload.get("class_version") for payload in payloads] == [3, None]
    assert decode(1, stored(event)).event == event
