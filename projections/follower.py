"""Moves one generation along the log: rows and position in one transaction, exactly once."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.log import POSITION_MAX, head, read_stored
from ledger.said import Said
from ledger.serialization import Recorded, decode
from projections.errors import FencedError, LogRestoredError
from projections.generations import Generation
from projections.parked import LeftOut, left_out
from projections.projection import Projection
from projections.tables import UNREADABLE, PoisonError, Tables, described

BATCH_EVENTS_MAX = 500

UPDATE_EPOCH = """
    UPDATE {schema}.checkpoint
       SET epoch = epoch + 1
    RETURNING epoch, position
"""

SELECT_LEADS = """
    SELECT EXISTS (
        SELECT FROM {schema}.checkpoint
         WHERE position = %(position)s AND epoch = %(epoch)s
    )
"""

SELECT_PARKED = "SELECT chain_id FROM {schema}.parked"

UPDATE_POSITION = """
    UPDATE {schema}.checkpoint
       SET position = %(to)s, updated_at = clock_timestamp()
     WHERE position = %(from)s AND epoch = %(epoch)s
    RETURNING CASE WHEN announced THEN pg_notify(%(channel)s, %(to)s::text) IS NULL END
"""

INSERT_PARKED = """
    INSERT INTO {schema}.parked (
        chain_id, position, version, topic, error, events, last_position
    ) VALUES (
        %(chain_id)s, %(position)s, %(version)s, %(topic)s, %(error)s, 0, %(position)s
    )
"""

UPDATE_PARKED = """
    UPDATE {schema}.parked AS parked
       SET events = parked.events + more.events, last_position = more.last_position
      FROM unnest(%(chain_ids)b::uuid[], %(events)b::int8[], %(last_positions)b::int8[])
        AS more (chain_id, events, last_position)
     WHERE parked.chain_id = more.chain_id
"""

Row = tuple[int, StoredEvent]


def channel_of(projection_name: str) -> str:
    """Where the position of the live generation is notified after every batch."""
    return f"projection_{projection_name}"


@dataclass(slots=True)
class _Batch:
    """The next events of the log, sorted into what to apply and what to leave out."""

    to: int
    events: list[Recorded] = field(default_factory=list)
    poisons: dict[UUID, tuple[Row, Exception]] = field(default_factory=dict)
    left_out: Counter[UUID] = field(default_factory=Counter)
    last_positions: dict[UUID, int] = field(default_factory=dict)

    def leave_out(self, position: int, chain_id: UUID) -> None:
        self.left_out[chain_id] += 1
        self.last_positions[chain_id] = position


class Follower:
    """Leads one generation on one connection, which holds the lead (``take_lead``)."""

    def __init__(
        self,
        connection: Connection[TupleRow],
        projection: Projection,
        generation: Generation,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.position = 0
        self._connection = connection
        self._projection = projection
        self._generation = generation
        self._say = say
        self._epoch = 0
        self._parked: set[UUID] = set()
        self._left_out = LeftOut()
        self._tables = Tables(connection, projection, generation.schema)

    def lead(self) -> None:
        """Fence whoever led before, and find out how far they came and what is left out.

        Raises LogRestoredError.
        """
        row = self._tables.run(UPDATE_EPOCH).fetchone()
        assert row is not None
        self._epoch, self.position = row
        if self.position > (end := head(self._connection)):
            raise LogRestoredError(self._projection.name, self.position, end)
        self._parked = {chain_id for (chain_id,) in self._tables.run(SELECT_PARKED).fetchall()}
        self._left_out = left_out(self._connection, self._projection)

    def step(self, limit: int = BATCH_EVENTS_MAX, *, to: int = POSITION_MAX) -> int:
        """Apply the next batch of the log, not beyond position *to*; how many events that was.

        Raises FencedError, and psycopg.Error when the database is at fault; then nothing of the
        batch, or only a first part of it with its position, was applied.
        """
        rows = read_stored(self._connection, after=self.position, limit=limit, to=to)
        if rows:
            self._apply(rows)
        return len(rows)

    def check(self) -> None:
        """Make sure, when there is nothing to do, that it could be done.  Raises as ``step``."""
        row = self._tables.run(
            SELECT_LEADS, {"position": self.position, "epoch": self._epoch}
        ).fetchone()
        if row is None or not row[0]:
            raise FencedError(self._generation.schema)

    # -- The batch --------------------------------------------------------------------------------

    def _apply(self, rows: Sequence[Row]) -> None:
        try:
            self._advance(self._sort(rows))
        except PoisonError as poison:
            if len(rows) > 1:
                half = len(rows) // 2
                self._apply(rows[:half])
                self._apply(rows[half:])
                return
            (row,) = rows
            batch = _Batch(to=row[0])
            _poison(batch, row, poison.error)
            self._advance(batch)

    def _sort(self, rows: Sequence[Row]) -> _Batch:
        batch = _Batch(to=rows[-1][0])
        for row in rows:
            position, stored = row
            chain_id = stored.originator_id
            assert isinstance(chain_id, UUID)
            if chain_id in self._parked or chain_id in batch.poisons:
                batch.leave_out(position, chain_id)
                continue
            if self._left_out.holds(position, stored):
                continue
            try:
                batch.events.append(decode(position, stored))
            except UNREADABLE as error:
                _poison(batch, row, error)
        return batch

    def _advance(self, batch: _Batch) -> None:
        """Make the changes and move the position, or do neither."""
        # Decided before the transaction, in which nobody is kept waiting by it.
        changes = self._tables.decide(batch.events)
        with self._connection.transaction():
            moved = self._tables.run(
                UPDATE_POSITION,
                {
                    "from": self.position,
                    "to": batch.to,
                    "epoch": self._epoch,
                    "channel": channel_of(self._projection.name),
                },
            )
            if moved.rowcount != 1:
                raise FencedError(self._generation.schema)
            self._tables.make(changes)
            self._park(batch)
        self.position = batch.to
        self._parked.update(batch.poisons)
        for (position, stored), error in batch.poisons.values():
            # PostgreSQL's detail and context are lines of their own.
            first_line = described(error).partition("\n")[0]
            self._say(
                Said(
                    f"parked chain {stored.originator_id} in {self._generation.schema} "
                    f"at position {position} ({stored.topic}): {first_line}",
                    event="parked",
                    read_model=self._generation.name,
                    generation=self._generation.number,
                    chain_id=str(stored.originator_id),
                    position=position,
                    topic=stored.topic,
                    error=described(error),
                )
            )

    def _park(self, batch: _Batch) -> None:
        for chain_id, ((position, stored), error) in batch.poisons.items():
            self._tables.run(
                INSERT_PARKED,
                {
                    "chain_id": chain_id,
                    "position": position,
                    "version": stored.originator_version,
                    "topic": stored.topic,
                    "error": described(error),
                },
            )
        if batch.left_out:
            self._tables.run(
                UPDATE_PARKED,
                {
                    "chain_ids": list(batch.left_out),
                    "events": list(batch.left_out.values()),
                    "last_positions": [batch.last_positions[id_] for id_ in batch.left_out],
                },
            )


def _poison(batch: _Batch, row: Row, error: Exception) -> None:
    position, stored = row
    chain_id = stored.originator_id
    assert isinstance(chain_id, UUID)
    batch.poisons[chain_id] = (row, error)
    batch.leave_out(position, chain_id)
