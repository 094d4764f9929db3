"""The views of schema ``live``: each shows one table of the generation readers are to see."""

from typing import NamedTuple

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

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


def point(
    connection: Connection[TupleRow], name: str, schema: str, replaced_schema: str | None
) -> None:
    """Show the tables of *schema*, and no more those only *replaced_schema* has.

    Raises ViewInUseError.
    """
    tables = tables_of(connection, schema)
    shown = {**{table: table for table in tables}, f"{name}_{CHECKPOINT}": CHECKPOINT}
    for view, table in shown.items():
        _point(connection, view, schema, table)
    if replaced_schema is not None:
        for table in tables_of(connection, replaced_schema):
            if table not in shown:
                _drop(connection, table)


def _point(connection: Connection[TupleRow], view: str, schema: str, table: str) -> None:
    columns = _columns(connection, schema, table)
    known = _columns(connection, "live", view)
    # Replaced in place it keeps its grants and what others have built on it.
    if known != columns[: len(known)]:
        _drop(connection, view)
    # Named columns: a prepared `SELECT *` breaks for good when the next generation has others.
    statement = SQL("CREATE OR REPLACE VIEW live.{view} AS SELECT {columns} FROM {schema}.{table}")
    connection.execute(
        statement.format(
            view=Identifier(view),
            columns=SQL(", ").join(Identifier(column.name) for column in columns),
            schema=Identifier(schema),
            table=Identifier(table),
        )
    )
    grant = SQL("GRANT SELECT ON live.{} TO thought_ledger_reader")
    connection.execute(grant.format(Identifier(view)))


def _drop(connection: Connection[TupleRow], view: str) -> None:
    try:
        connection.execute(SQL("DROP VIEW IF EXISTS live.{}").format(Identifier(view)))
    except psycopg.errors.DependentObjectsStillExist as error:
        raise ViewInUseError(view, error.diag.message_detail or "") from error


def _columns(connection: Connection[TupleRow], schema: str, table: str) -> list[_Column]:
    found = connection.execute(SELECT_COLUMNS, {"schema": schema, "table": table})
    return [_Column(*row) for row in found.fetchall()]
