"""Spaces: vectors that can be compared with each other, one table each; one of them is live."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Composed, Identifier, Literal

from projections.embeddings.errors import SpaceNotFoundError
from projections.embeddings.model import Identity
from projections.embeddings.schema import schema_exists
from projections.registry import bundled

# Beyond it the numbers of 16 bits that neighbours are looked for by have no index.
INDEXED_DIMENSIONS_MAX = 4_000
INDEX_MEMORY = "256MB"

# One at a time makes, promotes or drops a space; arbitrary, and has to stay the same.
LOCK_SPACES = "SELECT pg_advisory_xact_lock(74110005)"

SELECT_SPACES = """
    SELECT number, model, revision, dimensions, normalised, source, state, withdrawn, position,
           thoughts, embedded, created_at, updated_at, promoted_at
      FROM vectors.spaces
     ORDER BY number
"""

INSERT_SPACE = """
    INSERT INTO vectors.spaces (model, revision, dimensions, normalised, source, state, promoted_at)
    SELECT %(model)s, %(revision)s, %(dimensions)s, %(normalised)s, %(source)s,
           CASE WHEN live.found THEN 'building' ELSE 'live' END,
           CASE WHEN live.found THEN NULL ELSE now() END
      FROM (SELECT EXISTS (SELECT FROM vectors.spaces WHERE state = 'live') AS found) AS live
    RETURNING number
"""

# One that was live is built on, if it was not an operator who had readers leave it.
UPDATE_USED = """
    UPDATE vectors.spaces
       SET source = %(source)s,
           state = CASE WHEN state = 'kept' AND NOT withdrawn THEN 'building' ELSE state END
     WHERE number = %(number)s
       AND (source <> %(source)s OR state = 'kept' AND NOT withdrawn)
"""

UPDATE_REPLACED = """
    UPDATE vectors.spaces
       SET state = 'kept', withdrawn = %(withdrawn)s, updated_at = clock_timestamp()
     WHERE state = 'live'
"""
UPDATE_PROMOTED = """
    UPDATE vectors.spaces
       SET state = 'live',
           withdrawn = false,
           promoted_at = clock_timestamp(),
           updated_at = clock_timestamp()
     WHERE number = %(number)s
"""

DELETE_BEYOND = "DELETE FROM vectors.{table} WHERE position > %(head)s"
UPDATE_SET_BACK = """
    UPDATE vectors.spaces
       SET position = %(head)s, updated_at = clock_timestamp()
     WHERE number = %(number)s AND position > %(head)s
"""

CREATE_NEIGHBOURS = """
    CREATE INDEX IF NOT EXISTS {index} ON vectors.{table}
     USING hnsw ((vector::halfvec({dimensions})) halfvec_cosine_ops)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One of ``vectors.spaces``; its vectors are in ``vectors.thoughts_<number>``."""

    number: int
    model: str
    revision: str
    dimensions: int
    normalised: bool
    source: str
    state: str
    withdrawn: bool
    position: int
    thoughts: int
    embedded: int
    created_at: datetime
    updated_at: datetime
    promoted_at: datetime | None

    @property
    def identity(self) -> Identity:
        return Identity(
            model=self.model,
            revision=self.revision,
            dimensions=self.dimensions,
            normalised=self.normalised,
        )

    @property
    def is_indexed(self) -> bool:
        """Whether neighbours can be looked for by an index."""
        return self.dimensions <= INDEXED_DIMENSIONS_MAX


def list_spaces(connection: Connection[TupleRow]) -> list[Space]:
    """All there are, none before anything was embedded."""
    if not schema_exists(connection):
        return []
    with connection.cursor(row_factory=class_row(Space)) as cursor:
        return cursor.execute(SELECT_SPACES).fetchall()


def live_space(connection: Connection[TupleRow]) -> Space | None:
    """The one that is searched."""
    return _live(list_spaces(connection))


def find_space(connection: Connection[TupleRow], number: int) -> Space:
    """Raises SpaceNotFoundError."""
    for space in list_spaces(connection):
        if space.number == number:
            return space
    raise SpaceNotFoundError(number)


def space_for(connection: Connection[TupleRow], identity: Identity, source: str) -> Space:
    """The space of a model, made when there is none; the first is live at once.

    One that is kept is built on, so that it comes to be promoted, unless it was withdrawn.
    """
    with connection.transaction():
        connection.execute(LOCK_SPACES)
        known = [space for space in list_spaces(connection) if space.identity == identity]
        number = known[0].number if known else _make(connection, identity, source)
        connection.execute(UPDATE_USED, {"number": number, "source": source})
        return find_space(connection, number)


def promote(connection: Connection[TupleRow], number: int, *, withdrawn: bool = False) -> None:
    """Have readers search another space; theirs is kept.  *withdrawn*: by an operator.

    Raises SpaceNotFoundError.
    """
    with connection.transaction():
        connection.execute(LOCK_SPACES)
        if find_space(connection, number).state == "live":
            return
        connection.execute(UPDATE_REPLACED, {"withdrawn": withdrawn})
        connection.execute(UPDATE_PROMOTED, {"number": number})


def set_back(connection: Connection[TupleRow], space: Space, head: int) -> None:
    """Forget what the log has no more: it was restored from an older backup.

    What it says at the positions beyond *head* from now on are other thoughts.
    """
    with connection.transaction():
        connection.execute(LOCK_SPACES)
        connection.execute(
            SQL(DELETE_BEYOND).format(table=Identifier(table_of(space.number))), {"head": head}
        )
        connection.execute(UPDATE_SET_BACK, {"number": space.number, "head": head})


def index_neighbours(connection: Connection[TupleRow], space: Space) -> None:
    """Make the index of neighbours, if it can be had and is not there.  It may take minutes."""
    if not space.is_indexed:
        return
    with connection.transaction():
        for name, value in (
            ("maintenance_work_mem", INDEX_MEMORY),
            ("statement_timeout", "0"),
            # Should this process die, nobody waits for what it began.
            ("client_connection_check_interval", "1s"),
        ):
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        connection.execute(
            SQL(CREATE_NEIGHBOURS).format(
                index=Identifier(f"{table_of(space.number)}_hnsw_idx"),
                table=Identifier(table_of(space.number)),
                dimensions=Literal(space.dimensions),
            )
        )


def table_of(number: int) -> str:
    """The name of a space's table in schema ``vectors``."""
    return f"thoughts_{number}"


def _make(connection: Connection[TupleRow], identity: Identity, source: str) -> int:
    row = connection.execute(
        INSERT_SPACE,
        {
            "model": identity.model,
            "revision": identity.revision,
            "dimensions": identity.dimensions,
            "normalised": identity.normalised,
            "source": source,
        },
    ).fetchone()
    assert row is not None
    (number,) = row
    connection.execute(_create_table(number, identity.dimensions))
    return number


def _create_table(number: int, dimensions: int) -> Composed:
    table = table_of(number)
    return SQL(bundled("vectors_space")).format(
        table=Identifier(table),
        vector=SQL("vector({})").format(Literal(dimensions)),
        chain_index=Identifier(f"{table}_chain_id_idx"),
        tenant_index=Identifier(f"{table}_tenant_position_idx"),
        hash_index=Identifier(f"{table}_content_hash_idx"),
    )


def _live(spaces: Sequence[Space]) -> Space | None:
    return next((space for space in spaces if space.state == "live"), None)
