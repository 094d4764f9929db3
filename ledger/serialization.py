"""Events to bytes and back.  No other module knows the stored form (docs/stored-format.md).

One event is ``header LF payload``, both canonical JSON: UTF-8, sorted keys, no blanks, no floats.
The header says who, when and why and is never erased.  The payload says what; it holds 16 random
bytes of salt, and the header commits to it by SHA-256.  ``event_id`` is a UUIDv8 (RFC 9562) made
of the first 128 bits of the SHA-256 of the header itself with the id written as zeros, so that a
change of any stored byte shows.  The bytes stored are the bytes hashed: nothing is re-encoded to
be verified.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, cast, get_args, get_type_hints
from uuid import UUID

import orjson
from eventsourcing.persistence import Mapper, StoredEvent, Transcoder

from ledger.errors import TamperedEventError, UnknownTopicError, UnreadableEventError
from ledger.events import CATALOGUE, LedgerEvent
from ledger.header import (
    FORMAT,
    Context,
    Header,
    dumps,
    moment,
    read_header,
    timestamp,
    uuid_of,
    write_header,
)

SALT_BYTES = 16
# The columns and the header carry these; the payload does not repeat them.
ENVELOPE = frozenset({"originator_id", "originator_version", "timestamp"})


class Recorded(NamedTuple):
    """An event, its header and its position in the notification log."""

    position: int
    header: Header
    event: LedgerEvent


def encode(event: LedgerEvent, context: Context) -> bytes:
    """The bytes to store for *event*.  Two calls differ: each payload has a fresh salt.

    Raises TypeError for an event that is not of the catalogue: it could never be read again.
    """
    if CATALOGUE.get(event.TOPIC) is not type(event):
        raise TypeError(f"{type(event).__name__} is not in the event catalogue")
    payload = dumps(_payload(event))
    commitment = hashlib.sha256(payload).hexdigest()
    return write_header(event, context, commitment) + b"\n" + payload


def decode(position: int, stored: StoredEvent) -> Recorded:
    """Check the stored bytes and rebuild the event through its constructor.

    The stock mapper imports whatever module a stored topic names and fills the object without
    calling its constructor; both trust the database too much.

    Raises TamperedEventError, UnknownTopicError, UnreadableEventError.
    """
    header, payload = open_state(stored)
    event_class = CATALOGUE.get(header.topic)
    if event_class is None:
        raise UnknownTopicError(header.topic)
    if header.format != FORMAT or header.key_id is not None:
        raise UnreadableEventError(
            header.topic, "its format is newer than this thought-ledger; upgrade it"
        )
    try:
        state = _upcast(event_class, orjson.loads(payload))
        event = event_class(
            originator_id=header.chain_id,
            originator_version=header.version,
            timestamp=header.recorded_at,
            **_fields(event_class, state),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableEventError(header.topic, str(error)) from error
    return Recorded(position, header, event)


def open_state(stored: StoredEvent) -> tuple[Header, bytes]:
    """Split a stored state into its header and payload bytes, and verify both.

    Raises TamperedEventError when a byte of either, or a column beside them, was changed.
    """
    chain_id, version = cast("UUID", stored.originator_id), stored.originator_version
    head, separator, payload = stored.state.partition(b"\n")
    if not separator:
        raise TamperedEventError(chain_id, version, "there is no header")
    try:
        header = read_header(head)
    except ValueError as error:
        raise TamperedEventError(chain_id, version, str(error)) from None
    if header.commitment != hashlib.sha256(payload).hexdigest():
        raise TamperedEventError(chain_id, version, "the payload does not match its commitment")
    if (header.chain_id, header.version, header.topic) != (chain_id, version, stored.topic):
        raise TamperedEventError(chain_id, version, "the columns do not match the header")
    return header, payload


class LedgerTranscoder(Transcoder):
    """JSON by orjson, for the library's own uses; events go through ``LedgerMapper``."""

    def encode(self, obj: object) -> bytes:
        return dumps(obj)

    def decode(self, data: bytes) -> Any:
        return orjson.loads(data)


class LedgerMapper(Mapper[UUID]):
    """The library's seam for stored events, over ``encode`` and ``decode``."""

    def __init__(self, context: Context) -> None:
        super().__init__(transcoder=LedgerTranscoder())
        self._context = context

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        return store(domain_event, self._context)

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        return decode(0, stored_event).event


def store(event: LedgerEvent, context: Context) -> StoredEvent:
    """The row to append for *event*."""
    return StoredEvent(
        originator_id=event.originator_id,
        originator_version=event.originator_version,
        topic=event.TOPIC,
        state=encode(event, context),
    )


# -- The payload ----------------------------------------------------------------------------------


def _payload(event: LedgerEvent) -> dict[str, Any]:
    state = {
        name: timestamp(value) if type(value) is datetime else value
        for name, value in vars(event).items()
        if value is not None and name not in ENVELOPE
    }
    if event.class_version > 1:
        state["class_version"] = event.class_version
    state["salt"] = os.urandom(SALT_BYTES).hex()
    return state


def _upcast(event_class: type[LedgerEvent], state: dict[str, Any]) -> dict[str, Any]:
    """Bring a stored payload to the version of the class, one step at a time."""
    del state["salt"]
    version = state.pop("class_version", 1)
    if type(version) is not int or version < 1:
        raise ValueError(f"there is no version {version}")
    if version > event_class.class_version:
        raise UnreadableEventError(
            event_class.TOPIC, f"version {version} is newer than this thought-ledger; upgrade it"
        )
    while version < event_class.class_version:
        getattr(event_class, f"upcast_v{version}_v{version + 1}")(state)
        version += 1
    return state


def _fields(event_class: type[LedgerEvent], state: dict[str, Any]) -> dict[str, Any]:
    """Constructor arguments: absent optional fields become None, unknown ones are an error."""
    shapes = _shapes(event_class)
    if not state.keys() <= shapes.keys():
        unknown = ", ".join(sorted(state.keys() - shapes.keys()))
        raise ValueError(f"unknown fields {unknown}")
    values = _absent(event_class) | {
        name: _value(value, name, shapes[name]) for name, value in state.items()
    }
    if len(values) < len(shapes):
        raise ValueError(f"{', '.join(sorted(shapes.keys() - values.keys()))} is missing")
    return values


class _Shape(NamedTuple):
    stored: type
    optional: bool
    parse: Callable[[Any], Any] | None


def _value(value: Any, name: str, shape: _Shape) -> Any:
    if value is None:
        if shape.optional:
            return None
        raise ValueError(f"{name} is missing")
    if type(value) is not shape.stored:
        raise TypeError(f"{name} is a {type(value).__name__}, not a {shape.stored.__name__}")
    return shape.parse(value) if shape.parse else value


@cache
def _shapes(event_class: type[LedgerEvent]) -> dict[str, _Shape]:
    hints = get_type_hints(event_class)
    names = sorted({field.name for field in fields(event_class)} - ENVELOPE)
    return {name: _field_shape(hints[name]) for name in names}


@cache
def _absent(event_class: type[LedgerEvent]) -> dict[str, Any]:
    """What the fields are that a payload may leave out."""
    return {name: None for name, shape in _shapes(event_class).items() if shape.optional}


def _field_shape(hint: Any) -> _Shape:
    arms = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    optional = NoneType in arms
    (kind,) = (arm for arm in arms if arm is not NoneType)
    if kind is UUID:
        return _Shape(str, optional, uuid_of)
    if kind is datetime:
        return _Shape(str, optional, moment)
    if kind in (str, int, bool):
        return _Shape(kind, optional, None)
    return _Shape(list, optional, _texts)


def _texts(values: list[Any]) -> list[str]:
    if not all(type(value) is str for value in values):
        raise TypeError("a list holds something that is no text")
    return values
