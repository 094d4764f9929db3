"""A snapshot of the database in which two generations are at one position of the log."""

import time
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from ledger.database import Connector
from projections.comparison import Comparison
from projections.generations import Generation
from projections.promotion import (
    REACH_SECONDS_MAX,
    RETRY_PAUSE_SECONDS,
    SELECT_POSITION,
    Reach,
    position_of,
)
from projections.session import session

STILL_SECONDS_MAX = 2.0

LIMIT_LOCKS = "SET LOCAL lock_timeout = '50ms'"

# Such a lock takes no snapshot yet: what is committed before it is granted will be seen.
HOLD = "LOCK TABLE {schema}.checkpoint IN SHARE MODE"


@contextmanager
def compare(
    connector: Connector, live: Generation, other: Generation, reach: Reach
) -> Generator[Comparison]:
    """Both in one snapshot, at one position if *reach* brings *other* to that of *live*.

    Nobody waits for the comparison: only for the moment in which the snapshot is taken.
    """
    with session(connector) as holder, connector.connect() as connection:
        snapshot = _snapshot(holder, connection, live, other, reach)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
            # Not needed any more, and whoever moves the live generation waits for its lock.
            holder.execute("ROLLBACK")
            yield Comparison(connection, live, other)


def _snapshot(
    holder: Connection[TupleRow],
    connection: Connection[TupleRow],
    live: Generation,
    other: Generation,
    reach: Reach,
) -> str:
    """The name of a snapshot that *holder*, in a transaction now, has exported."""
    deadline = time.monotonic() + STILL_SECONDS_MAX
    while True:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        late = time.monotonic() > deadline
        try:
            # Statements that take no snapshot; the first that does decides what is compared.
            holder.execute(LIMIT_LOCKS)
            holder.execute(SQL(HOLD).format(schema=Identifier(live.schema)))
            seen = position_of(connection, SELECT_POSITION, live)
            reach(seen, time.monotonic() + REACH_SECONDS_MAX)
            if position_of(holder, SELECT_POSITION, other) == seen or late:
                row = holder.execute("SELECT pg_export_snapshot()").fetchone()
                assert row is not None
                return row[0]
        except psycopg.errors.LockNotAvailable:
            if late:
                raise
        holder.execute("ROLLBACK")
        time.sleep(RETRY_PAUSE_SECONDS)
