"""Whose fault an error is: the database's is tried again, the event's is parked."""

import psycopg

from ledger.database import DatabaseUnavailableError

# The connection (08), the state of the transaction, the session or the server (25, 26, 40, 53, 55,
# 57, 58, XX), and a schema that is not there (3F).
CLASSES = frozenset({"08", "25", "26", "3F", "40", "53", "55", "57", "58", "XX"})
# A privilege, a table or a column is missing: the schema is not as it was built.
STATES = frozenset({"42501", "42P01", "42703"})


def passes(error: BaseException) -> bool:
    """Whether it is no bug: the database, or this machine, is at fault, and may be well again."""
    if isinstance(error, OSError | DatabaseUnavailableError):
        return True
    return isinstance(error, psycopg.Error) and blames_database(error)


def blames_database(error: Exception) -> bool:
    """Whether the same could succeed once the database is well again."""
    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is None:
        # Raised by the client: the connection is lost or closed, or else it refuses a value.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate[:2] in CLASSES or error.sqlstate in STATES
