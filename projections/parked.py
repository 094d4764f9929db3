"""What is parked and what was skipped: the chains read models lack events of, and why."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import Connection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Identifier

from ledger import audit, log
from ledger.errors import TamperedEventError
from ledger.header import Header
from ledger.serialization import decode, open_state
from projections.errors import NotParkedError
from projections.generations import Generation, listed
from projections.projection import Projection
from projections.queries import table_exists
from projections.tables import UNREADABLE, described

# Of what waits behind a parked event, so many positions are listed.
WAITING_LISTED_MAX = 100

SELECT_PARKED = """
    SELECT %(name)s AS name, %(generation)s AS generation, %(state)s AS state,
           %(projection_version)s AS projection_version,
           chain_id, position, version, topic, events - 1 AS waiting, parked_at, error
      FROM {schema}.parked
     WHERE %(chain_ids)s::uuid[] IS NULL OR chain_id = ANY (%(chain_ids)s::uuid[])
     ORDER BY position
"""

SELECT_SKIPPED = """
    SELECT name, projection_version, chain_id, position, version, topic,
           skipped_by, skipped_at, reason, error
      FROM projections.skipped
     WHERE %(name)s::text IS NULL OR name = %(name)s
     ORDER BY name, projection_version, position
"""

SELECT_SKIPPED_STATES = """
    SELECT position, state_sha256
      FROM projections.skipped
     WHERE name = %(name)s AND projection_version = %(version)s
"""

SELECT_WAITING = """
    SELECT event.notification_id
      FROM ledger.events AS event
     WHERE event.originator_id = %(chain_id)s
       AND event.originator_version > %(version)s
       AND event.notification_id <= (SELECT position FROM {schema}.checkpoint)
     ORDER BY event.originator_version
     LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Parked:
    """A chain from whose event at ``position`` on nothing is in a generation.

    ``waiting`` counts its events after that one that the generation has passed.
    """

    name: str
    generation: int
    state: str
    projection_version: int
    chain_id: UUID
    position: int
    version: int
    topic: str
    waiting: int
    parked_at: datetime
    error: str
    kind: Literal["parked"] = "parked"


@dataclass(frozen=True, slots=True)
class Skipped:
    """An event that every generation of one version of a projection leaves out."""

    name: str
    projection_version: int
    chain_id: UUID
    position: int
    version: int
    topic: str
    skipped_by: str
    skipped_at: datetime
    reason: str
    error: str
    kind: Literal["skipped"] = "skipped"


class LeftOut:
    """What an operator skipped in every generation of one version of a projection."""

    def __init__(self, states: Mapping[int, bytes] | None = None) -> None:
        """*states* are SHA-256 of what is stored, by position."""
        self._states = states or {}

    def holds(self, position: int, stored: StoredEvent) -> bool:
        digest = self._states.get(position)
        return digest is not None and digest == hashlib.sha256(stored.state).digest()


@dataclass(frozen=True, slots=True)
class ParkedEvent:
    """The event itself, as far as its bytes can be read.

    ``unreadable`` says why a part of it is None: the header's facts when it was tampered with,
    what happened and the text when its payload cannot be read.
    """

    actor: str | None = None
    client: str | None = None
    recorded_at: datetime | None = None
    event_id: UUID | None = None
    what: str | None = None
    text: str | None = None
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class ParkedChain:
    """All about one parked chain; ``waiting_positions`` are WAITING_LISTED_MAX at most."""

    parked: Parked
    event: ParkedEvent
    waiting_positions: Sequence[int]
    other_generations: Sequence[int]


def generations(connection: Connection[TupleRow], name: str | None = None) -> list[Generation]:
    """Those that are there, of one read model or all, the oldest of each first."""
    return sorted(listed(connection, name), key=lambda found: (found.name, found.id))


def parked_chains(
    connection: Connection[TupleRow],
    name: str | None = None,
    chain_ids: Collection[UUID] | None = None,
) -> list[Parked]:
    """Every parked chain, or some, in every generation of one read model or of all."""
    return [
        row
        for generation in generations(connection, name)
        for row in parked_in(connection, generation, chain_ids)
    ]


def parked_in(
    connection: Connection[TupleRow],
    generation: Generation,
    chain_ids: Collection[UUID] | None = None,
) -> list[Parked]:
    """The same of one generation, in the order of the log."""
    with connection.cursor(row_factory=class_row(Parked)) as cursor:
        cursor.execute(
            SQL(SELECT_PARKED).format(schema=Identifier(generation.schema)),
            {
                "name": generation.name,
                "generation": generation.number,
                "state": generation.state,
                "projection_version": generation.projection_version,
                "chain_ids": None if chain_ids is None else list(chain_ids),
            },
        )
        return cursor.fetchall()


def skipped_events(connection: Connection[TupleRow], name: str | None = None) -> list[Skipped]:
    """What was left out for good, of one read model or of all."""
    if not table_exists(connection, "projections.skipped"):
        return []
    with connection.cursor(row_factory=class_row(Skipped)) as cursor:
        return cursor.execute(SELECT_SKIPPED, {"name": name}).fetchall()


def left_out(connection: Connection[TupleRow], projection: Projection) -> LeftOut:
    """What this version of *projection* leaves out."""
    found = connection.execute(
        SELECT_SKIPPED_STATES, {"name": projection.name, "version": projection.version}
    ).fetchall()
    return LeftOut(dict(found))


def parked_chain(
    connection: Connection[TupleRow], name: str, chain_id: UUID, number: int | None = None
) -> ParkedChain:
    """One chain in generation *number*, by default the live one, else the latest that parked it.

    Raises NotParkedError.
    """
    found = parked_chains(connection, name, [chain_id])
    # Sorted by the generation's age; that of the live one goes last, to be taken.
    found.sort(key=lambda row: row.state == "live")
    chosen = [row for row in found if number in (None, row.generation)]
    if not chosen:
        raise NotParkedError(name, chain_id)
    row = chosen[-1]
    (schema,) = (
        generation.schema
        for generation in generations(connection, name)
        if generation.number == row.generation
    )
    return ParkedChain(
        parked=row,
        event=_event(connection, row),
        waiting_positions=_waiting(connection, row, schema),
        other_generations=sorted(other.generation for other in found if other is not row),
    )


def _event(connection: Connection[TupleRow], row: Parked) -> ParkedEvent:
    rows = log.read_stream(
        connection, row.chain_id, after_version=row.version - 1, to_position=row.position, limit=1
    )
    if not rows:
        return ParkedEvent(unreadable="it is not in the log any more")
    ((position, stored),) = rows
    try:
        recorded = decode(position, stored)
    except UNREADABLE as error:
        return _described_by_header(_header_of(stored), described(error))
    header = recorded.header
    return ParkedEvent(
        actor=header.actor,
        client=header.client,
        recorded_at=header.recorded_at,
        event_id=header.event_id,
        what=audit.sentence(recorded),
        text=audit.text_of(recorded),
    )


def _described_by_header(header: Header | None, unreadable: str) -> ParkedEvent:
    if header is None:
        return ParkedEvent(unreadable=unreadable)
    return ParkedEvent(
        actor=header.actor,
        client=header.client,
        recorded_at=header.recorded_at,
        event_id=header.event_id,
        unreadable=unreadable,
    )


def _header_of(stored: StoredEvent) -> Header | None:
    try:
        return open_state(stored)[0]
    except TamperedEventError:
        return None


def _waiting(connection: Connection[TupleRow], row: Parked, schema: str) -> list[int]:
    statement = SQL(SELECT_WAITING).format(schema=Identifier(schema))
    found = connection.execute(
        statement,
        {"chain_id": row.chain_id, "version": row.version, "limit": WAITING_LISTED_MAX},
    ).fetchall()
    return [position for (position,) in found]
