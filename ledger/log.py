"""The notification log, read synchronously: by workers, auditors and the command line."""

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.errors import ChainNotFoundError, TamperedEventError
from ledger.events import ChainStarted
from ledger.serialization import Recorded, decode

PAGE_EVENTS_MAX = 500
# A page ends with the event that takes it over this: 500 events may have 500 MiB.
PAGE_BYTES_MAX = 8 * 2**20

# The end is looked at last: as a bound of the index scan it has the planner sort all up to it.
SELECT_LOG = """
    SELECT notification_id, originator_id, originator_version, topic, state
      FROM (SELECT page.*,
                   sum(octet_length(state)) OVER (
                       ORDER BY notification_id ROWS UNBOUNDED PRECEDING
                   ) - octet_length(state) AS bytes_before
              FROM (SELECT notification_id, originator_id, originator_version, topic, state
                      FROM ledger.events
                     WHERE notification_id > %(after)s
                     ORDER BY notification_id
                     LIMIT %(limit)s) AS page) AS sized
     WHERE bytes_before < %(bytes_max)s AND notification_id <= %(to)s
     ORDER BY notification_id
"""

SELECT_STREAM = """
    SELECT notification_id, originator_id, originator_version, topic, state
      FROM (SELECT page.*,
                   sum(octet_length(state)) OVER (
                       ORDER BY originator_version ROWS UNBOUNDED PRECEDING
                   ) - octet_length(state) AS bytes_before
              FROM (SELECT notification_id, originator_id, originator_version, topic, state
                      FROM ledger.events
                     WHERE originator_id = %(chain_id)s
                       AND originator_version > %(after)s
                       AND notification_id <= %(to)s
                     ORDER BY originator_version
                     LIMIT %(limit)s) AS page) AS sized
     WHERE bytes_before < %(bytes_max)s
     ORDER BY originator_version
"""

SELECT_HISTORY = """
    SELECT notification_id, originator_id, originator_version, topic, state,
           recorded_at, actor, session_id
      FROM ledger.events
     WHERE originator_id = %(chain_id)s
       AND originator_version > %(after)s
       AND originator_version <= %(to)s
     ORDER BY originator_version
     LIMIT %(limit)s
"""

SELECT_LAST = """
    SELECT notification_id, originator_id, originator_version, topic, state
      FROM ledger.events
     WHERE notification_id <= %(to)s
     ORDER BY notification_id DESC
     LIMIT 1
"""

SELECT_HEAD = "SELECT coalesce(max(notification_id), 0) FROM ledger.events"

# Of what ``ledger.append`` notifies.
LISTEN_TO_APPENDS = "LISTEN ledger_events"

VERSION_MAX = 2**62
POSITION_MAX = 2**62


def read_stored(
    connection: Connection[TupleRow], *, after: int, limit: int, to: int = POSITION_MAX
) -> list[tuple[int, StoredEvent]]:
    """Up to *limit* positions after *after* and their stored events, oldest first, unread.

    Fewer when they are large (PAGE_BYTES_MAX); none only at the end of the log, or at *to*.
    """
    page = {"after": after, "to": to, "limit": limit, "bytes_max": PAGE_BYTES_MAX}
    with connection.cursor(binary=True) as cursor:
        cursor.execute(SELECT_LOG, page, prepare=True)
        return [(position, StoredEvent(*row)) for position, *row in cursor.fetchall()]


def read_stream(
    connection: Connection[TupleRow],
    chain_id: UUID,
    *,
    after_version: int,
    to_position: int,
    limit: int = PAGE_EVENTS_MAX,
) -> list[tuple[int, StoredEvent]]:
    """The same of one stream: what follows a version of it, up to a position of the log."""
    page = {
        "chain_id": chain_id,
        "after": after_version,
        "to": to_position,
        "limit": limit,
        "bytes_max": PAGE_BYTES_MAX,
    }
    with connection.cursor(binary=True) as cursor:
        cursor.execute(SELECT_STREAM, page)
        return [(position, StoredEvent(*row)) for position, *row in cursor.fetchall()]


def stream_pages(
    connection: Connection[TupleRow], chain_id: UUID, *, after_version: int, to_position: int
) -> Iterator[list[tuple[int, StoredEvent]]]:
    """All of one stream that follows a version of it, up to a position of the log, in pages."""
    while rows := read_stream(
        connection, chain_id, after_version=after_version, to_position=to_position
    ):
        yield rows
        after_version = rows[-1][1].originator_version


def last_stored(connection: Connection[TupleRow], to: int) -> tuple[int, StoredEvent] | None:
    """The last event up to a position, whatever its stream; None when there is none."""
    with connection.cursor(binary=True) as cursor:
        row = cursor.execute(SELECT_LAST, {"to": to}).fetchone()
    return None if row is None else (row[0], StoredEvent(*row[1:]))


def read(connection: Connection[TupleRow], *, after: int, limit: int) -> list[Recorded]:
    """Up to *limit* events after position *after*, oldest first; see ``read_stored``.

    Raises TamperedEventError, UnknownTopicError, UnreadableEventError.
    """
    return [decode(*row) for row in read_stored(connection, after=after, limit=limit)]


def head(connection: Connection[TupleRow]) -> int:
    """The position of the last event, 0 when there is none."""
    row = connection.execute(SELECT_HEAD).fetchone()
    assert row is not None
    return row[0]


def history(
    connection: Connection[TupleRow], chain_id: UUID, *, to_version: int = VERSION_MAX
) -> Iterator[Recorded]:
    """A chain's events up to a version, in order, read in pages.

    Raises ChainNotFoundError, TamperedEventError, UnknownTopicError, UnreadableEventError.
    """
    after = 0
    while True:
        with connection.cursor(binary=True) as cursor:
            cursor.execute(
                SELECT_HISTORY,
                {"chain_id": chain_id, "after": after, "to": to_version, "limit": PAGE_EVENTS_MAX},
            )
            rows = cursor.fetchall()
        for position, *row, recorded_at, actor, session_id in rows:
            recorded = decode(position, StoredEvent(*row))
            check_next(recorded, after)
            _check_copies(recorded, recorded_at, actor, session_id)
            after = recorded.header.version
            yield recorded
        if after == 0:
            raise ChainNotFoundError(chain_id)
        if len(rows) < PAGE_EVENTS_MAX:
            return


def check_next(recorded: Recorded, after: int) -> None:
    """Raise TamperedEventError when an event is missing between version *after* and this one."""
    chain_id, version = recorded.header.chain_id, recorded.header.version
    if version != after + 1:
        raise TamperedEventError(chain_id, after + 1, "it is not there")


def _check_copies(
    recorded: Recorded, recorded_at: datetime, actor: str, session_id: str | None
) -> None:
    """Raise TamperedEventError when a column that copies the event says something else."""
    header, event = recorded.header, recorded.event
    session = event.session_id if isinstance(event, ChainStarted) else None
    said = (header.recorded_at, header.actor, session)
    if said != (recorded_at, actor, session_id):
        raise TamperedEventError(header.chain_id, header.version, "its columns were changed")
