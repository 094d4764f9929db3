"""A piece of the log on its way into a space: its thoughts, and the vectors they still lack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier

from ledger import log
from ledger.events import ThoughtRecorded
from ledger.serialization import Recorded, decode
from projections.embeddings.batches import cut
from projections.embeddings.errors import SpaceMovedError
from projections.embeddings.model import Vector, as_text, can_be_embedded, is_usable
from projections.embeddings.spaces import Space, set_back, table_of
from projections.identity import content_hash_of
from projections.tables import UNREADABLE, described
from projections.text import shown

# What a kill may cost is the work on one page; a batch of texts alike in length needs several
# times as many to choose from.  Measured: docs/operations-embeddings.md.
PAGE_EVENTS_MAX = 512
# An embedding process tries so many thoughts again that an earlier one left out.
LEFT_OUT_TRIED_MAX = 1_000

NO_DIRECTION = "the model makes no usable vector of it"

Row = tuple[int, StoredEvent]

SELECT_KNOWN = """
    SELECT DISTINCT content_hash FROM vectors.{table} WHERE content_hash = ANY (%(hashes)s)
"""
SELECT_LEFT_OUT = """
    SELECT position
      FROM vectors.left_out
     WHERE space = %(space)s AND position <= %(position)s
     ORDER BY position
     LIMIT %(limit)s
"""
DELETE_LEFT_OUT = """
    DELETE FROM vectors.left_out WHERE space = %(space)s AND position = ANY (%(positions)s)
"""

# Compare and set: one who was thought dead moves nothing, and then stores nothing.
UPDATE_POSITION = """
    UPDATE vectors.spaces
       SET position = %(to)s,
           thoughts = thoughts + %(thoughts)s,
           embedded = embedded + %(embedded)s,
           updated_at = clock_timestamp()
     WHERE number = %(space)s AND position = %(after)s AND state IN ('live', 'building')
"""
COPY_THOUGHTS = """
    COPY vectors.{table} (position, tenant, chain_id, thought_id, content_hash, vector) FROM STDIN
"""
INSERT_KNOWN = """
    INSERT INTO vectors.{table} (position, tenant, chain_id, thought_id, content_hash, vector)
    SELECT thought.position, thought.tenant, thought.chain_id, thought.thought_id,
           thought.content_hash, known.vector
      FROM unnest(
               %(positions)s::bigint[], %(tenants)s::text[], %(chain_ids)s::uuid[],
               %(thought_ids)s::uuid[], %(hashes)s::bytea[]
           ) AS thought (position, tenant, chain_id, thought_id, content_hash)
     CROSS JOIN LATERAL (
           SELECT vector
             FROM vectors.{table}
            WHERE content_hash = thought.content_hash
            LIMIT 1
     ) AS known
"""
INSERT_LEFT_OUT = """
    INSERT INTO vectors.left_out (space, position, chain_id, version, topic, error)
    VALUES (%(space)s, %(position)s, %(chain_id)s, %(version)s, %(topic)s, %(error)s)
        ON CONFLICT (space, position) DO UPDATE SET error = excluded.error
"""


@dataclass(frozen=True, slots=True)
class Thought:
    """What of a recorded thought goes into a space; the text only as its hash."""

    position: int
    tenant: str
    chain_id: UUID
    thought_id: UUID
    content_hash: bytes


class Page:
    """Stored as a whole or not at all, and the space's position with it."""

    def __init__(
        self, space: Space, rows: Sequence[Row], *, to: int, retried: bool = False
    ) -> None:
        """*retried*: *rows* were left out before, and lie behind the space's position."""
        self.space = space
        self.after = space.position
        self.to = to
        self.is_last = False
        self._retried = retried
        self._rows = dict(rows)
        self._thoughts: list[Thought] = []
        self._texts: dict[bytes, str] = {}
        self._vectors: dict[bytes, Vector] = {}
        self._failures: dict[bytes, str] = {}
        self._unreadable: dict[int, str] = {}
        for position, stored in rows:
            self._take(position, stored)

    def hashes(self) -> list[bytes]:
        """Of the texts that lack vectors."""
        return list(self._texts)

    def forget_known(self, known: set[bytes]) -> None:
        """Texts of these hashes have vectors in the space."""
        for content_hash in known:
            self._texts.pop(content_hash, None)

    def next_batch(self, characters_max: int) -> list[str]:
        """Texts that lack vectors, some of about one length; none when all have them."""
        for batch in cut(list(self._texts.values()), characters_max):
            return batch
        return []

    def give(self, made: Mapping[str, Vector | str]) -> None:
        """Vectors of texts, or why there is none."""
        for text, vector in made.items():
            content_hash = content_hash_of(text)
            del self._texts[content_hash]
            if isinstance(vector, str):
                self._failures[content_hash] = vector
            elif is_usable(vector, self.space.dimensions):
                self._vectors[content_hash] = vector
            else:
                self._failures[content_hash] = NO_DIRECTION

    def store(self, connection: Connection[TupleRow]) -> None:
        """In one transaction: rows, what is left out, and the position.  Raises SpaceMovedError."""
        new = [thought for thought in self._thoughts if thought.content_hash in self._vectors]
        failed = [thought for thought in self._thoughts if thought.content_hash in self._failures]
        made = self._vectors.keys() | self._failures.keys()
        known = [thought for thought in self._thoughts if thought.content_hash not in made]
        with connection.transaction():
            self._move(connection, len(new) + len(known))
            if self._retried:
                positions = list(self._rows)
                connection.execute(
                    DELETE_LEFT_OUT, {"space": self.space.number, "positions": positions}
                )
            self._copy(connection, new)
            self._insert_known(connection, known)
            for thought in failed:
                self._leave_out(connection, thought.position, self._failures[thought.content_hash])
            for position, error in self._unreadable.items():
                self._leave_out(connection, position, error)

    def _take(self, position: int, stored: StoredEvent) -> None:
        try:
            recorded = decode(position, stored)
        except UNREADABLE as error:
            self._unreadable[position] = described(error)
            return
        if isinstance(recorded.event, ThoughtRecorded) and can_be_embedded(recorded.event.text):
            self._add(recorded, recorded.event)

    def _add(self, recorded: Recorded, event: ThoughtRecorded) -> None:
        content_hash = content_hash_of(event.text)
        self._texts[content_hash] = event.text
        self._thoughts.append(
            Thought(
                recorded.position,
                shown(recorded.header.tenant),
                event.originator_id,
                event.thought_id,
                content_hash,
            )
        )

    def _move(self, connection: Connection[TupleRow], thoughts: int) -> None:
        moved = connection.execute(
            UPDATE_POSITION,
            {
                "space": self.space.number,
                "after": self.after,
                "to": self.to,
                "thoughts": thoughts,
                "embedded": len(self._vectors),
            },
        )
        if moved.rowcount != 1:
            raise SpaceMovedError(self.space.number)

    def _copy(self, connection: Connection[TupleRow], thoughts: Sequence[Thought]) -> None:
        if not thoughts:
            return
        with (
            connection.cursor() as cursor,
            cursor.copy(_statement(COPY_THOUGHTS, self.space)) as copy,
        ):
            for row in _values(thoughts):
                copy.write_row((*row, as_text(self._vectors[row[-1]])))

    def _insert_known(self, connection: Connection[TupleRow], thoughts: Sequence[Thought]) -> None:
        if not thoughts:
            return
        names = ("positions", "tenants", "chain_ids", "thought_ids", "hashes")
        columns = [list(column) for column in zip(*_values(thoughts), strict=True)]
        connection.execute(
            _statement(INSERT_KNOWN, self.space), dict(zip(names, columns, strict=True))
        )

    def _leave_out(self, connection: Connection[TupleRow], position: int, error: str) -> None:
        stored = self._rows[position]
        connection.execute(
            INSERT_LEFT_OUT,
            {
                "space": self.space.number,
                "position": position,
                "chain_id": stored.originator_id,
                "version": stored.originator_version,
                "topic": stored.topic,
                "error": error,
            },
        )


def read_page(connection: Connection[TupleRow], space: Space) -> Page | None:
    """What follows the space's position in the log; None at its end.  Raises SpaceMovedError."""
    head = log.head(connection)
    if space.position > head:
        set_back(connection, space, head)
        raise SpaceMovedError(space.number)
    rows = log.read_stored(connection, after=space.position, limit=PAGE_EVENTS_MAX)
    if not rows:
        return None
    page = Page(space, rows, to=rows[-1][0])
    page.is_last = page.to >= head
    return _without_known(connection, page)


def read_left_out(connection: Connection[TupleRow], space: Space) -> Page | None:
    """What was left out of the space, to be tried again; None when nothing was."""
    asked = {"space": space.number, "position": space.position, "limit": LEFT_OUT_TRIED_MAX}
    positions = [position for (position,) in connection.execute(SELECT_LEFT_OUT, asked).fetchall()]
    rows = [
        row
        for position in positions
        for row in log.read_stored(connection, after=position - 1, limit=1, to=position)
    ]
    if not rows:
        return None
    return _without_known(connection, Page(space, rows, to=space.position, retried=True))


def _without_known(connection: Connection[TupleRow], page: Page) -> Page:
    hashes = page.hashes()
    if hashes:
        found = connection.execute(_statement(SELECT_KNOWN, page.space), {"hashes": hashes})
        page.forget_known({content_hash for (content_hash,) in found.fetchall()})
    return page


def _values(thoughts: Sequence[Thought]) -> Iterator[tuple[int, str, UUID, UUID, bytes]]:
    for thought in thoughts:
        yield (
            thought.position,
            thought.tenant,
            thought.chain_id,
            thought.thought_id,
            thought.content_hash,
        )


def _statement(query: LiteralString, space: Space) -> Composed:
    return SQL(query).format(table=Identifier(table_of(space.number)))
