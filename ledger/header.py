"""The first line of a stored event: who, when and why.  It is never erased.

``event_id`` is a UUIDv8 (RFC 9562) made of the first 128 bits of the SHA-256 of the header itself
with the id written as zeros, so that a change of any byte of the header shows.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from ledger.events import LedgerEvent

FORMAT = 1
NO_ID = b"00000000-0000-0000-0000-000000000000"
ID_MARK = b'"event_id":"'
RECENT_IDS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Context:
    """Who records and why: the part of a header that the caller knows.

    ``principal``: the name of the token that let the caller in, None where nobody is asked for one.
    It is not in the header by itself: who has one is the actor.
    """

    actor: str
    principal: str | None = None
    client: str | None = None
    client_version: str | None = None
    tenant: str = "default"
    request_id: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None


class Header(NamedTuple):
    """The first line of a stored event."""

    format: int
    event_id: UUID
    tenant: str
    chain_id: UUID
    version: int
    topic: str
    recorded_at: datetime
    actor: str
    client: str | None
    client_version: str | None
    request_id: str | None
    correlation_id: str | None
    causation_id: str | None
    key_id: str | None
    commitment: str


def write_header(event: LedgerEvent, context: Context, commitment: str) -> bytes:
    """The header to store for *event*; *commitment* is the SHA-256 of its payload, in hex."""
    header = dumps(
        {
            "actor": context.actor,
            "causation_id": context.causation_id,
            "chain": event.originator_id,
            "client": context.client,
            "client_version": context.client_version,
            "commitment": commitment,
            "correlation_id": context.correlation_id,
            "event_id": NO_ID.decode(),
            "format": FORMAT,
            "key_id": None,
            "recorded_at": timestamp(event.timestamp),
            "request_id": context.request_id,
            "tenant": context.tenant,
            "topic": event.TOPIC,
            "version": event.originator_version,
        }
    )
    start = header.index(ID_MARK) + len(ID_MARK)
    return header[:start] + _digest_id(header) + header[start + len(NO_ID) :]


def read_header(head: bytes) -> Header:
    """Read a stored header and verify it.  Raises ValueError, saying what is wrong with it."""
    try:
        header = _header(orjson.loads(head))
        start = head.index(ID_MARK) + len(ID_MARK)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("the header cannot be read") from None
    # A quote inside a value is escaped, so the mark is unique.  Bytes are compared, not ids: an id
    # has several spellings, and only one was stored.
    end = start + len(NO_ID)
    if head[start:end] != _digest_id(head[:start] + NO_ID + head[end:]):
        raise ValueError("the header does not match its event id")
    return header


# Most ids come up again soon, a chain's with each of its events, a parent's after the thought
# itself; and making a UUID of its text is a good part of reading an event.
uuid_of = lru_cache(maxsize=RECENT_IDS_MAX)(UUID)


def moment(text: str) -> datetime:
    """A stored moment.  Raises ValueError."""
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(f"{text} is in no time zone")
    return read


def timestamp(moment: datetime) -> str:
    """UTC with six decimals, always: orjson alone would drop a fraction of zero."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")


def dumps(value: object) -> bytes:
    """Canonical JSON: UTF-8, sorted keys, no blanks."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _header(state: dict[str, Any]) -> Header:
    return Header(
        format=state["format"],
        event_id=UUID(state["event_id"]),
        tenant=state["tenant"],
        chain_id=uuid_of(state["chain"]),
        version=state["version"],
        topic=state["topic"],
        recorded_at=moment(state["recorded_at"]),
        actor=state["actor"],
        client=state["client"],
        client_version=state["client_version"],
        request_id=state["request_id"],
        correlation_id=state["correlation_id"],
        causation_id=state["causation_id"],
        key_id=state["key_id"],
        commitment=state["commitment"],
    )


def _digest_id(header: bytes) -> bytes:
    """A UUIDv8 of the header's SHA-256, written by hand: making a UUID of it costs three times."""
    digest = hashlib.sha256(header).hexdigest()
    variant = "89ab"[int(digest[16], 16) & 3]
    return (
        f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"
    ).encode()
