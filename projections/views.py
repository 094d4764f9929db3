"""The views of schema ``live``: each shows a table or a view of the generation readers see."""

from collections.abc import Iterator, Sequence
from typing import LiteralString, NamedTuple, cast

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable, Composed, Identifier

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

# What a read model computes when it is asked.
SELECT_COMPUTED = """
    SELECT viewname
      FROM pg_views
     WHERE schemaname = %(schema)s
     ORDER BY viewname
"""

SELECT_COLUMNS = """
    SELECT attname, atttypid, atttypmod, attcollation
      FROM pg_attribute
     WHERE attrelid = to_regclass(format('%%I.%%I', %(schema)s::text, %(table)s::text))
       AND attnum > 0
       AND NOT attisdropped
     ORDER BY attnum
"""

SELECT_VIEWS = """
    SELECT relname, pg_get_userbyid(relowner)
      FROM pg_class
     WHERE relnamespace = to_regnamespace('live') AND relkind = 'v' AND relname = ANY (%(names)s)
     ORDER BY relname
"""

# What others set on a view and no replacement keeps, as the statements that set it again.
SELECT_OPTIONS = """
    SELECT format('ALTER VIEW live.%%I SET (%%I = %%L)', view.relname, option_name, option_value)
      FROM pg_class AS view, pg_options_to_table(view.reloptions)
     WHERE view.oid = to_regclass(format('live.%%I', %(view)s::text))
"""

# What goes with a view that is dropped: all grants but the owner's, who gives them again, whoever
# gave them before; and the comments.
SELECT_GRANTS_AND_COMMENTS = """
    WITH view AS (
        SELECT oid, relname, relowner, relacl
          FROM pg_class
         WHERE oid = to_regclass(format('live.%%I', %(view)s::text))
    ), kept AS (
        SELECT attnum, attname, attacl
          FROM pg_attribute
         WHERE attrelid = (SELECT oid FROM view)
           AND attnum > 0
           AND attname = ANY (%(columns)s)
    ), granted AS (
        SELECT '' AS columns, acl.*
          FROM view, aclexplode(relacl) AS acl
         UNION ALL
        SELECT format(' (%%I)', attname), acl.*
          FROM kept, aclexplode(attacl) AS acl
    )
    SELECT format(
               'GRANT %%s%%s ON live.%%I TO %%s%%s',
               privilege_type,
               columns,
               relname,
               CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
               CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
           )
      FROM view, granted
     WHERE grantee <> relowner
     UNION ALL
    SELECT format('COMMENT ON VIEW live.%%I IS %%L', relname, description)
      FROM view, obj_description(oid, 'pg_class') AS description
     WHERE description IS NOT NULL
     UNION ALL
    SELECT format('COMMENT ON COLUMN live.%%I.%%I IS %%L', relname, attname, description)
      FROM view, kept, col_description(oid, attnum) AS description
     WHERE description IS NOT NULL
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


def _readable(connection: Connection[TupleRow], schema: str) -> list[str]:
    computed = connection.execute(SELECT_COMPUTED, {"schema": schema}).fetchall()
    return tables_of(connection, schema) + [name for (name,) in computed]


class Plan(NamedTuple):
    """Statements: *locks* keep readers off the views that *moves* change, each off one."""

    locks: list[Composed]
    moves: list[Composable]


def plan(
    connection: Connection[TupleRow], name: str, schema: str, replaced_schema: str | None
) -> Plan:
    """How to show the tables and views of *schema*, and none that only *replaced_schema* has.

    What others set on the views is set again: grants, options, comments.
    """
    shown = {table: table for table in _readable(connection, schema)}
    shown[f"{name}_{CHECKPOINT}"] = CHECKPOINT
    replaced = _readable(connection, replaced_schema) if replaced_schema else []
    gone = [table for table in replaced if table not in shown]
    moves: list[Composable] = [_drop(view) for view in gone]
    for view, table in shown.items():
        moves += _point(connection, view, schema, table)
    return Plan(_locks(connection, [*shown, *gone]), moves)


def move(connection: Connection[TupleRow], statements: Sequence[Composable]) -> None:
    """Run a plan, in one round trip.  Raises ViewInUseError."""
    try:
        connection.execute(SQL("; ").join(statements))
    except psycopg.errors.DependentObjectsStillExist as error:
        reason = error.diag.message_detail or error.diag.message_primary or ""
        raise ViewInUseError(reason) from error


def _locks(connection: Connection[TupleRow], names: Sequence[str]) -> list[Composed]:
    # LOCK TABLE would lock the tables behind the view as well, and hold up whoever writes to them.
    # To give a view to the owner it has changes nothing.
    statement = SQL("ALTER VIEW live.{} OWNER TO {}")
    return [
        statement.format(Identifier(view), Identifier(owner))
        for view, owner in connection.execute(SELECT_VIEWS, {"names": list(names)}).fetchall()
    ]


def _point(
    connection: Connection[TupleRow], view: str, schema: str, table: str
) -> Iterator[Composable]:
    columns = _columns(connection, schema, table)
    known = _columns(connection, "live", view)
    # Replaced in place it keeps its grants, its comments and what others have built on it.
    fits = known == columns[: len(known)]
    if not fits:
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
    yield from _written(connection, SELECT_OPTIONS, view, columns)
    if not fits:
        yield from _written(connection, SELECT_GRANTS_AND_COMMENTS, view, columns)


def _written(
    connection: Connection[TupleRow], query: LiteralString, view: str, columns: Sequence[_Column]
) -> Iterator[SQL]:
    """The statements that PostgreSQL writes, with every name and text in its own quotes."""
    names = [column.name for column in columns]
    for (statement,) in connection.execute(query, {"view": view, "columns": names}).fetchall():
        yield SQL(cast("LiteralString", statement))


def _drop(view: str) -> Composed:
    return SQL("DROP VIEW IF EXISTS live.{}").format(Identifier(view))


def _columns(connection: Connection[TupleRow], schema: str, table: str) -> list[_Column]:
    found = connection.execute(SELECT_COLUMNS, {"schema": schema, "table": table})
    return [_Column(*row) for row in found.fetchall()]
