"""The engine: one worker leads a generation, catches it up and follows the log; others stand by.

A worker has one connection, which holds the lead and writes.
"""

import threading
import time
from collections.abc import Callable

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.background import FAULTS
from ledger.database import Connector, DatabaseUnavailableError
from ledger.said import Said
from projections.errors import FencedError, LogRestoredError
from projections.faults import passes
from projections.followed import followed
from projections.follower import BATCH_EVENTS_MAX, Follower
from projections.generations import Generation, ensure_live, take_lead
from projections.outage import Outage
from projections.projection import Projection
from projections.session import session
from projections.stopping import Stop
from projections.wait import seen_position, wait_for

# In case it is not woken; also how often at least a leader is heard of by its server.
POLL_SECONDS = 1.0
FINISH_SECONDS_MAX = 0.2
# How long a command waits for the worker that leads.
CATCH_UP_SECONDS_MAX = 30.0

# The generation's schema may have been dropped; a new look tells.
SCHEMA_GONE = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)
ENDED_FOR_SILENCE = (
    psycopg.errors.IdleSessionTimeout,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.QueryCanceled,
    # By another process (``projections.stalled``), or by an administrator.
    psycopg.errors.AdminShutdown,
)


def catch_up(connector: Connector, projection: Projection, timeout_seconds: float) -> bool:
    """Bring the live read model up to what is recorded now, by hand when no worker leads it.

    False when a worker leads it and is not there in time.  *connector* is of role PROJECTOR.
    Raises ProjectionVersionError, LogRestoredError.
    """
    with session(connector) as connection:
        generation = ensure_live(connection, projection)
        head = log.head(connection)
        seen = seen_position(connection, projection.name)
        if seen > head:
            raise LogRestoredError(projection.name, seen, head)
        if seen == head:
            return True
        if not take_lead(connection, generation):
            return wait_for(connection, projection.name, head, timeout_seconds)
        follower = Follower(connection, projection, generation)
        follower.lead()
        while follower.position < head and follower.step():
            pass
        return True


class Worker:
    """Keeps one generation up, through lost connections, until it is stopped or that is gone."""

    def __init__(
        self,
        connector: Connector,
        projection: Projection,
        generation: Generation,
        stop: Stop,
        *,
        say: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """*connector* is of role PROJECTOR.

        *say* is told, a line each, what operators must know; *note* what is as it should be, by
        default the same.
        """
        self._connector = connector
        self._projection = projection
        self._generation = generation
        self._say = say
        self._note = note or say
        self._stop = stop
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._limit = BATCH_EVENTS_MAX
        self._outage = Outage(read_model=generation.name, generation=generation.number)

    def wake(self) -> None:
        """Tell it, from another thread, that something was recorded or that it shall stop."""
        self._woken.set()

    def end(self) -> None:
        """Tell it, from another thread, to stop alone."""
        self._ended.set()
        self.wake()

    def run(self) -> None:
        """Lead or stand by; ends half a second after it is told to, with the batch in hand done."""
        while not self._is_told_to_end():
            try:
                with session(self._connector) as connection:
                    if not self._serve(connection):
                        return
            except FencedError as error:
                self._say(self._said(f"{error}; starting again", event="fenced"))
            except (OSError, DatabaseUnavailableError, psycopg.Error) as error:
                if not passes(error):
                    raise
                if isinstance(error, ENDED_FOR_SILENCE):
                    # Or else a machine too slow for a batch would never come on.
                    self._limit = max(self._limit // 2, 1)
                self._back_off(error)

    def _serve(self, connection: Connection[TupleRow]) -> bool:
        """Lead or stand by on a connection until told to stop; False when there is nothing to."""
        if not self._is_there(connection):
            return False
        if not self._stand_by(connection):
            return True
        follower = Follower(connection, self._projection, self._generation, self._say)
        follower.lead()
        self._note(
            self._said(
                f"leads {self._generation.schema} from position {follower.position}",
                event="leads",
                position=follower.position,
            )
        )
        self._follow(follower)
        return True

    def _is_there(self, connection: Connection[TupleRow]) -> bool:
        known = followed(connection, self._projection).generations
        return any(found.id == self._generation.id for found in known)

    def _stand_by(self, connection: Connection[TupleRow]) -> bool:
        """Wait for the lead; False when told to stop meanwhile."""
        said = False
        while not self._is_told_to_end():
            if take_lead(connection, self._generation):
                return True
            self._outage.end()
            if not said:
                self._note(
                    self._said(
                        f"stands by for {self._generation.schema}, which another worker leads",
                        event="stands_by",
                    )
                )
                said = True
        return False

    def _follow(self, follower: Follower) -> None:
        while not self._is_told_to_end():
            # Before the first read, so that nothing is recorded between the two unheard.
            self._woken.clear()
            self._catch_up(follower)
            self._outage.end()
            if not self._is_told_to_end() and not self._woken.wait(POLL_SECONDS):
                follower.check()
        # What was recorded last is seen by readers as well, if it is not too much.
        deadline = time.monotonic() + FINISH_SECONDS_MAX
        while time.monotonic() < deadline and follower.step():
            pass

    def _catch_up(self, follower: Follower) -> None:
        while (applied := follower.step(self._limit)) and not self._is_told_to_end():
            # After a while without trouble it takes as much at once as before.
            self._limit = min(self._limit + 1, BATCH_EVENTS_MAX)
            if applied < self._limit and self._projection.rest_seconds:
                self._stop.wait(self._projection.rest_seconds)

    def _back_off(self, error: Exception) -> None:
        if self._is_told_to_end():
            return
        # Said when it comes a second time, if it may be that the generation is gone.
        self._tell(error, time=2 if isinstance(error, SCHEMA_GONE) else 1)
        if self._stop.wait(self._outage.pause()):
            return
        try:
            self._connector.revive()
        except FAULTS as failure:
            self._tell(failure)

    def _tell(self, error: Exception, *, time: int = 1) -> None:
        if news := self._outage.news(error, time=time):
            self._say(news)

    def _is_told_to_end(self) -> bool:
        return self._stop.is_set() or self._ended.is_set()

    def _said(self, sentence: str, **facts: object) -> Said:
        generation = self._generation
        return Said(sentence, read_model=generation.name, generation=generation.number, **facts)
