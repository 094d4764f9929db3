"""All read models in one process: for each generation a worker of its own, in a thread."""

import selectors
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.database import Connector, DatabaseUnavailableError
from ledger.errors import LedgerError
from ledger.said import Said
from projections import generations
from projections.errors import ProjectionError, ProjectionVersionError
from projections.faults import blames_database
from projections.generations import Generation
from projections.projection import Projection
from projections.session import session
from projections.stopping import Stop
from projections.worker import (
    BACKOFF_SECONDS_MAX,
    BACKOFF_SECONDS_MIN,
    POLL_SECONDS,
    Worker,
    catch_up,
)

# One that failed is tried again as long as another runs: an upgrade or a grant may mend it.
RETRY_SECONDS = 5.0
# Generations kept up by one process, each on a connection of its own.
GENERATIONS_MAX = 50


def find_followed(connector: Connector, projection: Projection) -> list[Generation]:
    """The generations to keep up; the first one is built when there is none.

    Raises ProjectionVersionError when all there are were built by another version, and
    GrantMissingError.
    """
    with session(connector) as connection:
        try:
            generations.ensure_live(connection, projection)
        except ProjectionVersionError:
            # One of this version may be kept to go back to.
            found = generations.followed(connection, projection)
            if not found:
                raise
            return found
        return generations.followed(connection, projection)


class Workers:
    """Keeps up every generation of several projections; what befalls one does not stop another.

    One connection listens for all of them.
    """

    def __init__(
        self,
        connector: Connector,
        projections: Sequence[Projection],
        stop: Stop,
        say: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Its arguments are those of ``Worker``, and told from several threads."""
        self._connector = connector
        self._projections = {projection.name: projection for projection in projections}
        self._stop = stop
        self._say = say
        self._note = note
        self._running: dict[Future[None], tuple[Generation, Worker]] = {}
        self._failures: dict[str, BaseException] = {}
        self._said: dict[str, str] = {}
        self._look_at = 0.0
        self._pause_seconds = BACKOFF_SECONDS_MIN
        self._outage: str | None = None

    def run(self) -> None:
        """Run them until *stop* is set or all have failed.

        Raises what the first failed of when all have, and an error that is a bug in any case.
        """
        with ThreadPoolExecutor(GENERATIONS_MAX + 1) as threads:
            try:
                while not self._stop.is_set() and (self._running or not self._all_failed()):
                    self._listen_as_long_as_it_holds(threads)
            finally:
                self._wake()
        self._collect()
        self._raise_failure()

    # -- Listening --------------------------------------------------------------------------------

    def _listen_as_long_as_it_holds(self, threads: ThreadPoolExecutor) -> None:
        try:
            with (
                self._connector.connect() as listener,
                selectors.DefaultSelector() as selector,
            ):
                selector.register(listener, selectors.EVENT_READ)
                selector.register(self._stop, selectors.EVENT_READ)
                # Before the first look, so that nothing happens between the two unheard.
                listener.execute(log.LISTEN_TO_APPENDS)
                listener.execute(generations.LISTEN_TO_GENERATIONS)
                self._look_at = 0.0
                self._listen(threads, listener, selector)
        except DatabaseUnavailableError as error:
            self._back_off(error)
        except psycopg.Error as error:
            if not blames_database(error):
                raise
            self._back_off(error)

    def _listen(
        self,
        threads: ThreadPoolExecutor,
        listener: Connection[TupleRow],
        selector: selectors.BaseSelector,
    ) -> None:
        while not self._stop.is_set():
            if time.monotonic() >= self._look_at:
                self._look(threads)
                if not self._running and self._all_failed():
                    return
            self._outage, self._pause_seconds = None, BACKOFF_SECONDS_MIN
            selector.select(POLL_SECONDS)
            channels = {notify.channel for notify in listener.notifies(timeout=0)}
            if channels:
                self._wake()
            if generations.CHANNEL in channels:
                self._look_at = 0.0
            self._collect()

    def _wake(self) -> None:
        for _, worker in self._running.values():
            worker.wake()

    def _back_off(self, error: Exception) -> None:
        """Wait a little; say it only when no worker is there to say it."""
        reason = str(error).strip().partition("\n")[0]
        if not self._running and reason != self._outage and not self._stop.is_set():
            sentence = f"the database failed ({reason}); trying again"
            self._say(Said(sentence, event="database_failed", error=reason))
        self._outage = reason
        with selectors.DefaultSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            selector.select(self._pause_seconds)
        self._pause_seconds = min(2 * self._pause_seconds, BACKOFF_SECONDS_MAX)
        self._connector.revive()

    # -- Who runs ---------------------------------------------------------------------------------

    def _look(self, threads: ThreadPoolExecutor) -> None:
        """Start what there is to keep up and does not run."""
        self._look_at = float("inf")
        for name, projection in self._projections.items():
            # In a thread, whose future holds whatever goes wrong with it.
            found = threads.submit(find_followed, self._connector, projection)
            error = found.exception()
            if error is not None:
                if _is_fault(error):
                    raise error
                self._fail(name, error)
                continue
            self._failures.pop(name, None)
            running = {generation.id for generation, _ in self._running.values()}
            for generation in found.result():
                if generation.id not in running:
                    self._start(threads, projection, generation)

    def _start(
        self, threads: ThreadPoolExecutor, projection: Projection, generation: Generation
    ) -> None:
        say, note = self._say, self._note
        worker = Worker(self._connector, projection, generation, self._stop, say=say, note=note)
        self._running[threads.submit(worker.run)] = generation, worker

    def _collect(self) -> None:
        """Let go of who has ended, and look again: soon, or later if it was by an error."""
        for future in [future for future in self._running if future.done()]:
            generation, _ = self._running.pop(future)
            error = future.exception()
            if error is None:
                self._look_at = 0.0
            else:
                self._fail(generation.name, error)

    def _fail(self, name: str, error: BaseException) -> None:
        self._failures[name] = error
        self._look_at = min(self._look_at, time.monotonic() + RETRY_SECONDS)
        others = self._running or self._projections.keys() - self._failures.keys()
        described = _described(error)
        if others and self._said.get(name) != described:
            self._said[name] = described
            sentence = f"{described}; the other read models are followed meanwhile"
            self._say(Said(sentence, event="read_model_failed", read_model=name, error=described))

    def _all_failed(self) -> bool:
        return len(self._failures) == len(self._projections)

    def _raise_failure(self) -> None:
        failures = list(self._failures.values())
        bugs = [error for error in failures if not isinstance(error, LedgerError)]
        if bugs or self._all_failed():
            raise (bugs or failures)[0]


def _is_fault(error: BaseException) -> bool:
    """Whether it is the database's, so that it passes."""
    if isinstance(error, DatabaseUnavailableError):
        return True
    return isinstance(error, psycopg.Error) and blames_database(error)


def catch_up_all(
    connector: Connector, projections: Sequence[Projection], timeout_seconds: float
) -> list[str]:
    """Bring each live read model up to what is recorded now, as ``catch_up`` does.

    What there is to say of those that are not there in time, or cannot be.  Raises ProjectionError
    when none can.
    """
    deadline = time.monotonic() + timeout_seconds
    behind: list[str] = []
    failures: list[ProjectionError] = []
    for projection in projections:
        try:
            if not catch_up(connector, projection, max(deadline - time.monotonic(), 0)):
                behind.append(f"the read model {projection.name} is behind the log")
        except ProjectionError as error:
            failures.append(error)
    if len(failures) == len(projections):
        raise failures[0]
    return behind + [str(error) for error in failures]


def _described(error: BaseException) -> str:
    if isinstance(error, LedgerError):
        return str(error)
    return f"{type(error).__name__}: {error}"
