"""The schema of vectors: whether it is there, and made where it is not."""

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.errors import GrantMissingError
from projections.registry import LOCK_REGISTRY, bundled

# By a look at the catalogues themselves, as ``projections.registry`` does.
SCHEMA_EXISTS = """
    SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'vectors' AND tablename = 'spaces')
"""
SCHEMA_IS_WHOLE = """
    SELECT (SELECT count(*)
              FROM pg_tables
             WHERE schemaname = 'vectors'
               AND tablename IN ('spaces', 'left_out', 'embedder', 'questions')) = 4
       AND (SELECT count(*)
              FROM pg_proc
             WHERE pronamespace = to_regnamespace('vectors')
               AND proname IN ('embedder_presence', 'ask')) = 2
"""

# What a query on the schema raises where it is not there, or not any more.
MISSING = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedFunction,
)


def schema_exists(connection: Connection[TupleRow]) -> bool:
    """Whether anything was ever embedded here, or tried to be."""
    row = connection.execute(SCHEMA_EXISTS).fetchone()
    return row is not None and row[0]


def ensure_schema(connection: Connection[TupleRow]) -> None:
    """Make what is missing of it.  *connection* is of role PROJECTOR.  Raises GrantMissingError."""
    if _is_whole(connection):
        return
    try:
        with connection.transaction():
            connection.execute(LOCK_REGISTRY)
            if not _is_whole(connection):
                connection.execute(bundled("vectors"))
    except psycopg.errors.InsufficientPrivilege as error:
        raise GrantMissingError(connection.info.dbname) from error


def _is_whole(connection: Connection[TupleRow]) -> bool:
    row = connection.execute(SCHEMA_IS_WHOLE).fetchone()
    return row is not None and row[0]
