"""The views of schema ``live``: each shows one table of the generation readers are to see."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier

from projections.errors import ViewInUseError

# The engine's own tables, which every generation has.
CHECKPOINT = "checkpoint"
OWN_TABLES = (CHECKPOINT, "parked")

SELECT_TABLES = """
    SELECT tablename
      FROM pg_tables
     WHERE schemaname = %(schema)s AND tablename <> ALL (%(own)s)
     ORDER BY tablename
"""

SELECT_COLUMNS = """
    SELECT attname, atttypid, atttypmod, attcollation
      FROM pg_attribute
     WHERE attrelid = to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))
       AND attnum > 0
       AND NOT attisdropped
     ORDER BY attnum
"""


class _Column(NamedTuple):
    name: str
    type: int
    modifier: int
    collation: int


def tables_of(connection: Connection[TupleRow], schema: str) -> list[str]:
    """The tables of the read model in a generation's schema."""
    found = connection.execute(SELECT_TABLES, {"schema": schema, "own": list(OWN_TABLES)})
    return [name for (name,) in found.fetchall()]


def plan(
    connection: Connection[TupleRow], name: str, schema: str, replaced_schema: str | None
) -> list[Composed]:
    """The statements that show the tables of *schema*, and none that only *replaced_schema* has."""
    shown = {table: table for table in tables_of(connection, schema)}
    shown[f"{name}_{CHECKPOINT}"] = CHECKPOINT
    replaced = tables_of(connection, replaced_schema) if replaced_schema else []
    drops = [_drop(table) for table in replaced if table not in shown]
    return drops + [
        statement
        for view, table in shown.items()
        for statement in _point(connection, view, schema, table)
    ]


def move(connection: Connection[TupleRow], statements: Sequence[Composed]) -> None:
    """Run a plan, in one round trip.  Raises ViewInUseError."""
    try:
        connection.execute(SQL("; ").join(statements))
    except psycopg.errors.DependentObjectsStillExist as error:
        reason = error.diag.message_detail or error.diag.message_primary or ""
        raise ViewInUseError(reason) from error


def _point(
    connection: Connection[TupleRow], view: str, schema: str, table: str
) -> Iterator[Composed]:
    columns = _columns(connection, schema, table)
    known = _columns(connection, "live", view)
    # Replaced in place it keeps its grants and what others have built on it.
    if known != columns[: len(known)]:
        yield _drop(view)
    # Named columns: a prepared `SELECT *` breaks for good when the next generation has others.
    statement = SQL("CREATE OR REPLACE VIEW live.{view} AS SELECT {columns} FROM {schema}.{table}")
    yield statement.format(
        view=Identifier(view),
        columns=SQL(", ").join(Identifier(column.name) for column in columns),
        schema=Identifier(schema),
        table=Identifier(table),
    )
    yield SQL("GRANT SELECT ON live.{} TO thought_ledger_reader").format(Identifier(view))


def _drop(view: str) -> Composed:
    return SQL("DROP VIEW IF EXISTS live.{}").format(Identifier(view))


def _columns(connection: Connection[TupleRow], schema: str, table: str) -> list[_Column]:
    found = connection.execute(SELECT_COLUMNS, {"schema": schema, "table": table})
    return [_Column(*row) for row in found.fetchall()]
