"""Unparking in one generation: a chain's events applied from the parked one on.

Whoever holds the row of a generation's checkpoint is the only one who writes its tables: a batch
of the worker that leads waits for it.  That worker knows by heart which chains are parked, so the
transaction that unparks one raises the epoch: the worker is fenced, and looks again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.log import head, stream_pages
from ledger.serialization import decode
from projections.errors import LogRestoredError
from projections.generations import Generation
from projections.parked import Parked, left_out, parked_in
from projections.projection import Projection
from projections.tables import UNREADABLE, PoisonError, Tables, described

LOCK_CHECKPOINT = "SELECT position FROM {schema}.checkpoint FOR UPDATE"

UPDATE_EPOCH = "UPDATE {schema}.checkpoint SET epoch = epoch + 1"

DELETE_PARKED = "DELETE FROM {schema}.parked WHERE chain_id = %(chain_id)s"

UPDATE_PARKED = """
    UPDATE {schema}.parked AS parked
       SET position = %(position)s,
           version = %(version)s,
           topic = %(topic)s,
           error = %(error)s,
           parked_at = CASE WHEN parked.position = %(position)s THEN parked.parked_at
                            ELSE clock_timestamp() END,
           events = (SELECT count(*)
                       FROM ledger.events AS event
                      WHERE event.originator_id = parked.chain_id
                        AND event.originator_version >= %(version)s
                        AND event.notification_id <= %(to)s)
     WHERE parked.chain_id = %(chain_id)s
"""

Row = tuple[int, StoredEvent]


@dataclass(frozen=True, slots=True)
class Retried:
    """What came of a chain in one generation; ``parked`` is where it is parked now, if it is."""

    name: str
    generation: int
    chain_id: UUID
    applied: int
    parked: Parked | None


class Unparking:
    """One generation, with its checkpoint's row locked as long as the transaction lasts.

    Raises LogRestoredError.
    """

    def __init__(
        self, connection: Connection[TupleRow], projection: Projection, generation: Generation
    ) -> None:
        self._connection = connection
        self._generation = generation
        self._tables = Tables(connection, projection, generation.schema)
        row = self._tables.run(LOCK_CHECKPOINT).fetchone()
        assert row is not None
        (self._position,) = row
        if self._position > (end := head(connection)):
            raise LogRestoredError(projection.name, self._position, end)
        # Only now: whoever had the lock may have been skipping.
        self._left_out = left_out(connection, projection)

    def settle(self, row: Parked) -> Retried:
        """Apply what can be applied of the chain, and park the rest of it or nothing."""
        applied = 0
        for rows in stream_pages(
            self._connection,
            row.chain_id,
            after_version=row.version - 1,
            to_position=self._position,
        ):
            count, poison = self._apply([each for each in rows if not self._left_out.holds(*each)])
            applied += count
            if poison is not None:
                return self._retried(row, applied, self._park(row, *poison))
        self._tables.run(DELETE_PARKED, {"chain_id": row.chain_id})
        return self._retried(row, applied, None)

    def fence(self) -> None:
        """Make the worker that leads look again at what is parked and what skipped."""
        self._tables.run(UPDATE_EPOCH)

    def _apply(self, rows: Sequence[Row]) -> tuple[int, tuple[Row, Exception] | None]:
        """Apply *rows* up to the first that cannot be: how many, and which that is of what."""
        if not rows:
            return 0, None
        try:
            with self._connection.transaction():
                self._tables.make(self._tables.decide([decode(*row) for row in rows]))
        except (PoisonError, *UNREADABLE) as error:
            if len(rows) == 1:
                return 0, (rows[0], error.error if isinstance(error, PoisonError) else error)
            half = len(rows) // 2
            applied, poison = self._apply(rows[:half])
            if poison is not None:
                return applied, poison
            more, poison = self._apply(rows[half:])
            return applied + more, poison
        return len(rows), None

    def _park(self, row: Parked, poison: Row, error: Exception) -> Parked:
        position, stored = poison
        self._tables.run(
            UPDATE_PARKED,
            {
                "chain_id": row.chain_id,
                "position": position,
                "version": stored.originator_version,
                "topic": stored.topic,
                "error": described(error),
                "to": self._position,
            },
        )
        (again,) = parked_in(self._connection, self._generation, [row.chain_id])
        return again

    def _retried(self, row: Parked, applied: int, again: Parked | None) -> Retried:
        return Retried(row.name, row.generation, row.chain_id, applied, again)
