"""What the database sessions of this package are like, and by which names they are seen."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.database import Connector

# A leader that is stopped or cut off loses its session, and with it the lead, after so long: the
# server ends a session that says nothing.  One that lives says something every second.
SILENCE_SECONDS_MAX = 3
STATEMENT_SECONDS_MAX = 60

# Before the blank, who it is for; after it PID@HOST.
LEADER = "thought-ledger"
BUILDER = "thought-ledger-build"
LISTENER = "thought-ledger-listen"

# Rows and position live or die together, so losing the last few to a crash costs only their
# repetition.  Every plan is made for the sizes of now: one made on empty tables decays.  And none
# is compiled: the guess at the size of a recursion is far over the threshold, its size is not.
CONFIGURE = """
    SELECT set_config('application_name', %(application_name)s, %(is_local)s),
           set_config('synchronous_commit', 'off', %(is_local)s),
           set_config('plan_cache_mode', 'force_custom_plan', %(is_local)s),
           set_config('jit', 'off', %(is_local)s),
           set_config('idle_session_timeout', %(silence)s, %(is_local)s),
           set_config('idle_in_transaction_session_timeout', %(silence)s, %(is_local)s),
           set_config('statement_timeout', %(statement)s, %(is_local)s)
"""


@contextmanager
def session(connector: Connector) -> Generator[Connection[TupleRow]]:
    """A connection for whoever locks what others wait for: stopped, it is ended, and they go on."""
    with connector.connect() as connection:
        configure(connection)
        yield connection


def configure(
    connection: Connection[TupleRow],
    *,
    name: str = LEADER,
    silence_seconds_max: int = SILENCE_SECONDS_MAX,
    is_local: bool = False,
) -> None:
    """Make a session fit to lead; it is then seen by *name*, this host and this process.

    *is_local*: until the transaction ends.
    """
    connection.execute(
        CONFIGURE,
        {
            "application_name": named(name),
            "silence": f"{silence_seconds_max}s",
            "statement": f"{STATEMENT_SECONDS_MAX}s",
            "is_local": is_local,
        },
    )


def named(name: str) -> str:
    """What a session of this process is called; PostgreSQL keeps 63 bytes of it."""
    return f"{name} {os.getpid()}@{socket.gethostname()}"
