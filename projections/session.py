"""What the database session of one who leads a generation is like."""

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

# Rows and position live or die together, so losing the last few to a crash costs only their
# repetition.  Every plan is made for the sizes of now: one made on empty tables decays.  And none
# is compiled: the guess at the size of a recursion is far over the threshold, its size is not.
CONFIGURE = """
    SELECT set_config('application_name', %(application_name)s, false),
           set_config('synchronous_commit', 'off', false),
           set_config('plan_cache_mode', 'force_custom_plan', false),
           set_config('jit', 'off', false),
           set_config('idle_session_timeout', %(silence)s, false),
           set_config('idle_in_transaction_session_timeout', %(silence)s, false),
           set_config('statement_timeout', %(statement)s, false)
"""


@contextmanager
def session(connector: Connector) -> Generator[Connection[TupleRow]]:
    """A connection for whoever locks what others wait for: stopped, it is ended, and they go on."""
    with connector.connect() as connection:
        configure(connection)
        yield connection


def configure(
    connection: Connection[TupleRow], *, silence_seconds_max: int = SILENCE_SECONDS_MAX
) -> None:
    """Make a session fit to lead; it is then seen by the name of this host and process."""
    connection.execute(
        CONFIGURE,
        {
            # PostgreSQL keeps 63 bytes of it.
            "application_name": f"thought-ledger {os.getpid()}@{socket.gethostname()}",
            "silence": f"{silence_seconds_max}s",
            "statement": f"{STATEMENT_SECONDS_MAX}s",
        },
    )
