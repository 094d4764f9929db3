"""Questions to the live read models, from the command line."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

TABLE_EXISTS = "SELECT to_regclass(%(name)s) IS NOT NULL"

SELECT_CHAINS = """
    SELECT id, title, status, thought_count AS thoughts, updated_at
      FROM live.thought_chains
     WHERE %(every_status)s OR status IN ('active', 'paused')
     ORDER BY updated_at DESC, id
"""


@dataclass(frozen=True, slots=True)
class ChainLine:
    """A chain as a list shows it."""

    id: UUID
    title: str
    status: str
    thoughts: int
    updated_at: datetime


def chains(connection: Connection[TupleRow], *, every_status: bool) -> list[ChainLine]:
    """The chains that can be gone on with, or all, the latest moved first.

    Empty as long as no worker has built the read model.
    """
    if not table_exists(connection, "live.thought_chains"):
        return []
    with connection.cursor(row_factory=class_row(ChainLine)) as cursor:
        cursor.execute(SELECT_CHAINS, {"every_status": every_status})
        return cursor.fetchall()


def table_exists(connection: Connection[TupleRow], name: str) -> bool:
    """Whether there is a table or a view of this name."""
    row = connection.execute(TABLE_EXISTS, {"name": name}).fetchone()
    return row is not None and row[0]
