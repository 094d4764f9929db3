"""The table ``memories`` of the read model ``thoughts``: what is remembered, whatever it came from.

Its rows are written in the transaction of their thoughts, so neither is ever without the other.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from ledger.events import ThoughtRecorded
from ledger.serialization import Recorded
from projections.projection import Change, Copy
from projections.text import shown_or_none

# What a memory can come from; of the others the log has no events yet.
SOURCE_TYPE = "thought"

COLUMNS = {
    "id": "uuid",
    "text": "text",
    "source_type": "text",
    "content_hash": "bytea",
    "chain_id": "uuid",
    "thought_id": "uuid",
    "tenant": "text",
    "metadata": "text",
    "created_at": "timestamptz",
    "position": "int8",
}


class MemoryRows:
    """The memories of a batch: one of each thought."""

    def __init__(self) -> None:
        self._rows: list[list[Any]] = []

    def add(
        self,
        recorded: Recorded,
        event: ThoughtRecorded,
        *,
        memory_id: UUID,
        text: str,
        content_hash: bytes,
        tenant: str,
    ) -> None:
        """Remember a thought; what its own row has as well is given."""
        self._rows.append(
            [
                memory_id,
                text,
                SOURCE_TYPE,
                content_hash,
                event.originator_id,
                event.thought_id,
                tenant,
                shown_or_none(event.metadata),
                event.timestamp,
                recorded.position,
            ]
        )

    def changes(self) -> Iterator[Change]:
        if self._rows:
            yield Copy("memories", COLUMNS, self._rows)
