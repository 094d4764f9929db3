"""The library's recorder interface on our tables, for its contract tests and its Repository.

Synchronous and thin: it appends through the same SQL function as the appender, one save at a time.
The server never uses it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from threading import Lock
from typing import Any, Never
from uuid import UUID

from eventsourcing.application import Repository
from eventsourcing.persistence import (
    ApplicationRecorder,
    EventStore,
    IntegrityError,
    Notification,
    StoredEvent,
)
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.appender import APPEND, Save, append_parameters
from ledger.header import Context
from ledger.log import SELECT_HEAD, VERSION_MAX
from ledger.serialization import LedgerMapper

SELECT_EVENTS = """
    SELECT originator_id, originator_version, topic, state
      FROM ledger.events
     WHERE originator_id = %(originator_id)s
       AND originator_version > %(gt)s
       AND originator_version <= %(lte)s
     ORDER BY CASE WHEN %(desc)s THEN -originator_version ELSE originator_version END
     LIMIT %(limit)s
"""

SELECT_NOTIFICATIONS = """
    SELECT originator_id, originator_version, topic, state, notification_id
      FROM ledger.events
     WHERE notification_id >= %(start)s
       AND notification_id <= %(stop)s
       AND (cardinality(%(topics)s::text[]) = 0 OR topic = ANY(%(topics)s))
     ORDER BY notification_id
     LIMIT %(limit)s
"""


class LedgerRecorder(ApplicationRecorder):
    """One connection, one transaction an insert; several threads take turns."""

    def __init__(self, connection: Connection[TupleRow], actor: str) -> None:
        self._connection = connection
        self._actor = actor
        self._turn = Lock()

    def insert_events(self, stored_events: Sequence[StoredEvent], **_: Any) -> Sequence[int] | None:
        """Append all or none and return their positions.  Raises IntegrityError."""
        if not stored_events:
            return []
        saves = [self._save(run) for run in _runs(stored_events)]
        with self._turn, self._connection.transaction():
            rows = self._connection.execute(APPEND, append_parameters(saves), binary=True)
            positions: list[int] = []
            for verdict, first, last, _digest, _answer in rows.fetchall():
                if verdict != "stored":
                    raise IntegrityError("a version of the stream is taken or would leave a gap")
                # Nobody else can append before this transaction ends, so they are consecutive.
                positions.extend(range(first, last + 1))
        return positions

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        parameters = {
            "originator_id": originator_id,
            "gt": -1 if gt is None else gt,
            "lte": VERSION_MAX if lte is None else lte,
            "desc": desc,
            "limit": limit,
        }
        with self._turn:
            rows = self._connection.execute(SELECT_EVENTS, parameters, binary=True)
            return [StoredEvent(*row) for row in rows.fetchall()]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        parameters = {
            "start": (start or 0) + (0 if inclusive_of_start else 1),
            "stop": VERSION_MAX if stop is None else stop,
            "topics": list(topics),
            "limit": limit,
        }
        with self._turn:
            rows = self._connection.execute(SELECT_NOTIFICATIONS, parameters, binary=True)
            return [Notification(*row) for row in rows.fetchall()]

    def max_notification_id(self) -> int | None:
        with self._turn:
            row = self._connection.execute(SELECT_HEAD).fetchone()
        assert row is not None
        return row[0] or None

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Never:
        """Not here: a worker follows the log by position, and never filters by topic."""
        raise NotImplementedError("follow the log with ledger.log.read(after=position)")

    def _save(self, run: Sequence[StoredEvent]) -> Save:
        chain_id = run[0].originator_id
        assert isinstance(chain_id, UUID)
        return Save(
            chain_id=chain_id,
            first_version=run[0].originator_version,
            topics=[event.topic for event in run],
            states=[event.state for event in run],
            recorded_at=[datetime.now(UTC)] * len(run),
            actor=self._actor,
        )


def repository(connection: Connection[TupleRow], context: Context) -> Repository[UUID]:
    """The library's repository over the log: ``get(chain_id, version=n)`` is a chain as it was."""
    recorder = LedgerRecorder(connection, context.actor)
    return Repository(EventStore(LedgerMapper(context), recorder))


def _runs(stored_events: Sequence[StoredEvent]) -> list[list[StoredEvent]]:
    """Cut into consecutive versions of one stream each: what the append function calls a save."""
    runs = [[stored_events[0]]]
    for before, event in pairwise(stored_events):
        follows = (before.originator_id, before.originator_version + 1)
        if (event.originator_id, event.originator_version) == follows:
            runs[-1].append(event)
        else:
            runs.append([event])
    return runs
