"""The registry of generations as such: whether it is there, and made where it is not."""

from importlib import resources
from typing import LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.errors import GrantMissingError

# One builder at a time; the numbers are arbitrary and only have to stay the same.
LOCK_REGISTRY = "SELECT pg_advisory_xact_lock(74110002)"

# By a look at the catalogue itself: to_regclass may answer from a cache that, within a
# transaction that waited for the lock, still says no.
REGISTRY_EXISTS = """
    SELECT EXISTS (
        SELECT FROM pg_tables WHERE schemaname = 'projections' AND tablename = 'generations'
    )
"""

# One that an earlier thought-ledger made lacks a table, or a state.
REGISTRY_IS_WHOLE = """
    SELECT count(*) = 2
       AND EXISTS (
               SELECT FROM pg_constraint
                WHERE conname = 'generations_state_check'
                  AND connamespace = to_regnamespace('projections')
                  AND pg_get_constraintdef(oid) LIKE '%scratch%'
           )
      FROM pg_tables
     WHERE schemaname = 'projections' AND tablename IN ('generations', 'skipped')
"""


def registry_exists(connection: Connection[TupleRow]) -> bool:
    """Whether a worker has ever built a generation here."""
    row = connection.execute(REGISTRY_EXISTS).fetchone()
    return row is not None and row[0]


def ensure_registry(connection: Connection[TupleRow]) -> None:
    """Make what is missing of the registry.  Raises GrantMissingError."""
    if _registry_is_whole(connection):
        return
    try:
        with connection.transaction():
            connection.execute(LOCK_REGISTRY)
            if not _registry_is_whole(connection):
                connection.execute(bundled("registry"))
    except psycopg.errors.InsufficientPrivilege as error:
        raise GrantMissingError(connection.info.dbname) from error


def bundled(name: str) -> LiteralString:
    """The SQL file of this name that comes with the package."""
    file = resources.files("projections") / "sql" / f"{name}.sql"
    # Shipped with the package, so as trustworthy as the code itself.
    return cast("LiteralString", file.read_text(encoding="utf-8"))


def _registry_is_whole(connection: Connection[TupleRow]) -> bool:
    row = connection.execute(REGISTRY_IS_WHOLE).fetchone()
    return row is not None and row[0]
