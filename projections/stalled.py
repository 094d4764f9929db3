"""Ends the sessions of those who are stopped, or cut off, in the middle of a statement.

The server ends a session that is idle for too long.  One that waits for its client within a
statement (COPY FROM STDIN, or rows that nobody takes) is not idle, and a time-out of the statement
only cancels it, which is held back there.  So it would lead, and hold its locks, for ever.
"""

from collections.abc import Iterator

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.said import Said
from projections.session import LEADER, LISTENER, SILENCE_SECONDS_MAX, named

# Seldom: while it looks, nobody is woken.
LOOK_SECONDS = 3.0

# As whoever has logged in: a session may be ended by its own login, not by the role it acts for.
SET_UP = """
    SELECT set_config('role', 'none', false),
           set_config('application_name', %(application_name)s, false)
"""

# Ended in the list of results, for conditions are met in any order.  What would be refused is not
# asked for, for the server logs what it refuses.
END_STALLED = """
    SELECT session.pid, session.application_name, pg_terminate_backend(session.pid)
      FROM pg_stat_activity AS session
      JOIN pg_roles AS login ON login.oid = session.usesysid
     WHERE session.datname = current_database()
       AND session.pid <> pg_backend_pid()
       AND starts_with(session.application_name, %(prefix)s)
       AND session.state = 'active'
       AND session.wait_event_type = 'Client'
       AND session.query_start < clock_timestamp() - make_interval(secs => %(seconds)s)
       AND pg_has_role(login.oid, 'USAGE')
       AND (NOT login.rolsuper OR current_setting('is_superuser')::bool)
"""


def set_up(listener: Connection[TupleRow]) -> None:
    """Make the session of a listener one that may end others."""
    listener.execute(SET_UP, {"application_name": named(LISTENER)})


def end_stalled(listener: Connection[TupleRow]) -> Iterator[Said]:
    """End what stalls of this database, as far as that is allowed; a sentence for each."""
    found = listener.execute(
        END_STALLED, {"prefix": f"{LEADER} ", "seconds": SILENCE_SECONDS_MAX}
    ).fetchall()
    # One may have gone by itself.
    for pid, name in [(pid, name) for pid, name, is_ended in found if is_ended]:
        process = name.rpartition(" ")[2]
        yield Said(
            f"{process} was silent in the middle of a statement for over {SILENCE_SECONDS_MAX} "
            f"seconds: its session (pid {pid}) was ended, and others go on",
            event="ended_stalled",
            pid=pid,
            process=process,
        )
