"""The engine: catch up, then follow the log; one worker leads, the others stand by.

A worker that leads has two connections, one that holds the lead and writes, and one that listens;
a worker that stands by has one.
"""

import selectors
import time
from collections.abc import Callable

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.database import Connector, DatabaseUnavailableError
from ledger.said import Said
from projections.errors import FencedError
from projections.faults import blames_database
from projections.follower import Follower
from projections.generations import Generation, ensure_live, take_lead
from projections.projection import Projection
from projections.stopping import Stop
from projections.wait import wait_for

# In case a notification is lost; also how long at most a dead listener goes unnoticed.
POLL_SECONDS = 1.0
FINISH_SECONDS_MAX = 0.2
BACKOFF_SECONDS_MIN = 0.05
BACKOFF_SECONDS_MAX = 1.0

# Rows and position live or die together, so losing the last few to a crash costs only their
# repetition.  Every plan is made for the sizes of now: one made on empty tables decays.  And none
# is compiled: the guess at the size of a recursion is far over the threshold, its size is not.
CONFIGURE = """
    SELECT set_config('synchronous_commit', 'off', false),
           set_config('plan_cache_mode', 'force_custom_plan', false),
           set_config('jit', 'off', false)
"""


def catch_up(connector: Connector, projection: Projection, timeout_seconds: float) -> bool:
    """Bring the live read model up to what is recorded now, by hand when no worker leads it.

    False when a worker leads it and is not there in time.  *connector* is of role PROJECTOR.
    Raises ProjectionVersionError.
    """
    with connector.connect() as connection:
        connection.execute(CONFIGURE)
        generation = ensure_live(connection, projection)
        head = log.head(connection)
        if wait_for(connection, projection.name, head, 0):
            return True
        if not take_lead(connection, generation):
            return wait_for(connection, projection.name, head, timeout_seconds)
        follower = Follower(connection, projection, generation)
        follower.lead()
        while follower.position < head and follower.step():
            pass
        return True


class Worker:
    """Follows the log for one projection, through lost connections, until it is stopped."""

    def __init__(
        self,
        connector: Connector,
        projection: Projection,
        stop: Stop,
        say: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """*connector* is of role PROJECTOR.

        *say* is told, a line each, what operators must know; *note* what is as it should be, by
        default the same.
        """
        self._connector = connector
        self._projection = projection
        self._say = say
        self._note = note or say
        self._stop = stop
        self._pause_seconds = BACKOFF_SECONDS_MIN
        self._failure: str | None = None

    def run(self) -> None:
        """Lead or stand by; ends half a second after *stop* is set, with the batch in hand done.

        Raises ProjectionVersionError.
        """
        while not self._stop.is_set():
            try:
                with self._connector.connect() as connection:
                    self._serve(connection)
            except FencedError as error:
                self._say(self._said(f"{error}; starting again", event="fenced"))
            except DatabaseUnavailableError as error:
                self._back_off(error)
            except psycopg.Error as error:
                if not blames_database(error):
                    raise
                self._back_off(error)

    def _serve(self, connection: Connection[TupleRow]) -> None:
        connection.execute(CONFIGURE)
        generation = ensure_live(connection, self._projection)
        if not self._stand_by(connection, generation):
            return
        follower = Follower(connection, self._projection, generation, self._say)
        follower.lead()
        with self._connector.connect() as listener:
            # Before the first read, so that nothing is recorded between the two unheard.
            listener.execute(log.LISTEN_TO_APPENDS)
            self._note(
                self._said(
                    f"leads {generation.schema} from position {follower.position}",
                    event="leads",
                    generation=generation.number,
                    position=follower.position,
                )
            )
            self._follow(follower, listener)

    def _stand_by(self, connection: Connection[TupleRow], generation: Generation) -> bool:
        """Wait for the lead; False when told to stop meanwhile."""
        said = False
        while not self._stop.is_set():
            if take_lead(connection, generation):
                return True
            if not said:
                self._note(
                    self._said(
                        f"stands by for {generation.schema}, which another worker leads",
                        event="stands_by",
                        generation=generation.number,
                    )
                )
                said = True
        return False

    def _follow(self, follower: Follower, listener: Connection[TupleRow]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            selector.register(self._stop, selectors.EVENT_READ)
            while not self._stop.is_set():
                while follower.step() and not self._stop.is_set():
                    pass
                self._pause_seconds, self._failure = BACKOFF_SECONDS_MIN, None
                if not selector.select(POLL_SECONDS):
                    follower.check()
                for _ in listener.notifies(timeout=0):
                    pass
        # What was recorded last is seen by readers as well, if it is not too much.
        deadline = time.monotonic() + FINISH_SECONDS_MAX
        while time.monotonic() < deadline and follower.step():
            pass

    def _back_off(self, error: Exception) -> None:
        if self._stop.is_set():
            return
        reason = str(error).strip().partition("\n")[0]
        if reason != self._failure:
            self._failure = reason
            self._say(
                self._said(
                    f"the database failed ({reason}); trying again",
                    event="database_failed",
                    error=reason,
                )
            )
        self._stop.wait(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, BACKOFF_SECONDS_MAX)
        self._connector.revive()

    def _said(self, sentence: str, **facts: object) -> Said:
        return Said(sentence, read_model=self._projection.name, **facts)
