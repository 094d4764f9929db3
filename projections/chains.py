"""The rows of ``thought_chains``: what a batch of events does to each chain it touches."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.events import (
    ChainAbandoned,
    ChainCompleted,
    ChainPaused,
    ChainRecalled,
    ChainReopened,
    ChainResumed,
    ChainStarted,
    LedgerEvent,
    ThoughtRecorded,
)
from ledger.serialization import Recorded
from projections.projection import Change, Copy, Statement
from projections.text import shown, shown_or_none

COLUMNS = {
    "id": "uuid",
    "tenant": "text",
    "agent": "text",
    "client": "text",
    "session_id": "text",
    "parent_chain_id": "uuid",
    "title": "text",
    "created_at": "timestamptz",
    "version": "int8",
    "updated_at": "timestamptz",
    "thought_count": "int8",
    "status": "text",
    "conclusion": "text",
}

UPDATE_CHAINS = """
    UPDATE {schema}.thought_chains AS chain
       SET version = moved.version,
           updated_at = moved.updated_at,
           thought_count = coalesce(moved.thought_count, chain.thought_count),
           status = coalesce(moved.status, chain.status),
           conclusion = CASE WHEN moved.completed THEN moved.conclusion ELSE chain.conclusion END
      FROM unnest(
               %(ids)b::uuid[], %(versions)b::int8[], %(updated_ats)b::timestamptz[],
               %(thought_counts)b::int8[], %(statuses)s::text[],
               %(completed)b::bool[], %(conclusions)s::text[]
           ) AS moved (id, version, updated_at, thought_count, status, completed, conclusion)
     WHERE chain.id = moved.id
"""

STATUSES: dict[type[LedgerEvent], str] = {
    ChainStarted: "active",
    ChainPaused: "paused",
    ChainResumed: "active",
    ChainReopened: "active",
    ChainCompleted: "completed",
    ChainAbandoned: "abandoned",
}


@dataclass(slots=True)
class _Moved:
    """A chain after the batch; None is for what the batch did not say."""

    version: int
    updated_at: datetime
    started: Recorded | None = None
    thought_count: int | None = None
    status: str | None = None
    completed: bool = False
    conclusion: str | None = None


class ChainRows:
    """Folds the events of a batch into one change of each chain's row."""

    def __init__(self) -> None:
        self._moved: dict[UUID, _Moved] = {}

    def add(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, ChainRecalled):
            return  # its stream is not the chain's, and reading a chain does not move it
        moved = self._moved.get(event.originator_id)
        if moved is None:
            moved = _Moved(event.originator_version, event.timestamp)
            self._moved[event.originator_id] = moved
        moved.version = event.originator_version
        moved.updated_at = event.timestamp
        if isinstance(event, ThoughtRecorded):
            moved.thought_count = event.sequence
            return
        moved.status = STATUSES.get(type(event), moved.status)
        if isinstance(event, ChainStarted):
            moved.started = recorded
            moved.thought_count = 0
        elif isinstance(event, ChainCompleted):
            moved.completed = True
            moved.conclusion = shown_or_none(event.conclusion)

    def changes(self) -> Iterator[Change]:
        rows = [_row(moved) for moved in self._moved.values() if moved.started]
        if rows:
            yield Copy("thought_chains", COLUMNS, rows)
        known = {id_: moved for id_, moved in self._moved.items() if not moved.started}
        if known:
            moves = known.values()
            yield Statement(
                UPDATE_CHAINS,
                {
                    "ids": list(known),
                    "versions": [moved.version for moved in moves],
                    "updated_ats": [moved.updated_at for moved in moves],
                    "thought_counts": [moved.thought_count for moved in moves],
                    "statuses": [moved.status for moved in moves],
                    "completed": [moved.completed for moved in moves],
                    "conclusions": [moved.conclusion for moved in moves],
                },
            )


def _row(moved: _Moved) -> tuple[object, ...]:
    assert moved.started is not None
    _, header, event = moved.started
    assert isinstance(event, ChainStarted)
    return (
        event.originator_id,
        shown(header.tenant),
        shown(header.actor),
        shown_or_none(header.client),
        shown_or_none(event.session_id),
        event.parent_chain_id,
        shown(event.title),
        event.timestamp,
        moved.version,
        moved.updated_at,
        moved.thought_count,
        moved.status,
        moved.conclusion,
    )
