"""Rows of the log made by hand: by the rules, or by somebody who knows how to forge a header."""

import hashlib
import re
from typing import Any
from uuid import UUID

import orjson
from eventsourcing.persistence import StoredEvent

from ledger.events import LedgerEvent
from ledger.header import Context
from ledger.serialization import store

CONTEXT = Context(actor="tester")
CHAIN = UUID("44444444-4444-4444-8444-444444444444")
MOMENT = "2026-01-02T03:04:05.000000+00:00"


def stored(event: LedgerEvent, context: Context = CONTEXT) -> StoredEvent:
    """The row of *event*."""
    return store(event, context)


def forged(topic: str, payload: bytes, **header: Any) -> StoredEvent:
    """A row whose header commits to any payload at all: the hashes are no signature."""
    fields: dict[str, Any] = {
        "actor": "forger",
        "causation_id": None,
        "chain": str(CHAIN),
        "client": None,
        "client_version": None,
        "commitment": hashlib.sha256(payload).hexdigest(),
        "correlation_id": None,
        "event_id": str(UUID(int=0)),
        "format": 1,
        "key_id": None,
        "recorded_at": MOMENT,
        "request_id": None,
        "tenant": "default",
        "topic": topic,
        "version": 1,
    } | header
    return StoredEvent(CHAIN, 1, topic, rehashed(orjson.dumps(fields)) + b"\n" + payload)


def rehashed(head: bytes) -> bytes:
    """The header with the event id that its other bytes ask for."""
    zeros = re.sub(rb'"event_id":"[^"]*"', f'"event_id":"{UUID(int=0)}"'.encode(), head)
    digest = bytearray(hashlib.sha256(zeros).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    event_id = str(UUID(bytes=bytes(digest))).encode()
    return zeros.replace(str(UUID(int=0)).encode(), event_id, 1)
