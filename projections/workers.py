"""All read models in one process: for each generation a worker of its own, in a thread."""

import selectors
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.background import FAULTS
from ledger.database import Connector, DatabaseUnavailableError
from ledger.errors import LedgerError
from ledger.said import Said
from projections import generations, stalled
from projections.errors import ProjectionError
from projections.faults import passes
from projections.followed import KEPT_UP_MAX, Followed, find_followed
from projections.generations import Generation
from projections.outage import Outage
from projections.projection import Projection
from projections.stopping import Stop
from projections.worker import POLL_SECONDS, Worker, catch_up

# One that failed is tried again as long as another runs: an upgrade or a grant may mend it.
RETRY_SECONDS = 5.0


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
        self._left: set[int] = set()
        self._look_at = self._end_stalled_at = 0.0
        self._outage = Outage()

    def run(self) -> None:
        """Run them until *stop* is set or all have failed.

        Raises what the first failed of when all have, and an error that is a bug in any case.
        """
        # Twice as many as are followed, for those told to end take a while.
        count = 2 * len(self._projections) * (1 + KEPT_UP_MAX)
        with ThreadPoolExecutor(count + 1) as threads:
            try:
                while not self._stop.is_set() and (self._running or not self._all_failed()):
                    self._listen_as_long_as_it_holds(threads)
            except BaseException:
                # Or else the workers would go on with nobody to look after them.
                self._stop.set()
                raise
            finally:
                self._wake()
        self._collect()
        self._raise_failure()

    # -- Listening --------------------------------------------------------------------------------

    def _listen_as_long_as_it_holds(self, threads: ThreadPoolExecutor) -> None:
        try:
            with (
                self._connector.connect() as listener,
                # Takes no descriptor, of which there may be none left.
                selectors.PollSelector() as selector,
            ):
                selector.register(listener, selectors.EVENT_READ)
                selector.register(self._stop, selectors.EVENT_READ)
                stalled.set_up(listener)
                # Before the first look, so that nothing happens between the two unheard.
                listener.execute(log.LISTEN_TO_APPENDS)
                listener.execute(generations.LISTEN_TO_GENERATIONS)
                self._look_at = self._end_stalled_at = 0.0
                self._listen(threads, listener, selector)
        except (OSError, DatabaseUnavailableError, psycopg.Error) as error:
            if not passes(error):
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
            self._outage.end()
            selector.select(POLL_SECONDS)
            # Before what was heard is taken: what comes meanwhile does not wake the selector.
            self._end_stalled(listener)
            channels = {notify.channel for notify in listener.notifies(timeout=0)}
            if channels:
                self._wake()
            if generations.CHANNEL in channels:
                self._look_at = 0.0
            self._collect()

    def _end_stalled(self, listener: Connection[TupleRow]) -> None:
        if time.monotonic() < self._end_stalled_at:
            return
        for sentence in stalled.end_stalled(listener):
            self._say(sentence)
        self._end_stalled_at = time.monotonic() + stalled.LOOK_SECONDS

    def _wake(self) -> None:
        for _, worker in self._running.values():
            worker.wake()

    def _back_off(self, error: Exception) -> None:
        """Wait a little and see to the server, if it is ours."""
        # A worker that is there says it as well.
        if not self._running and not self._stop.is_set():
            self._tell(error)
        with selectors.PollSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            if selector.select(self._outage.pause()):
                return
        try:
            self._connector.revive()
        except FAULTS as failure:
            self._tell(failure)

    def _tell(self, error: Exception) -> None:
        if news := self._outage.news(error):
            self._say(news)

    # -- Who runs ---------------------------------------------------------------------------------

    def _look(self, threads: ThreadPoolExecutor) -> None:
        """Start what there is to keep up and does not run."""
        self._look_at = float("inf")
        for name, projection in self._projections.items():
            # In a thread, whose future holds whatever goes wrong with it.
            found = threads.submit(find_followed, self._connector, projection)
            error = found.exception()
            if error is not None:
                if passes(error):
                    raise error
                self._fail(name, error)
                continue
            self._failures.pop(name, None)
            self._follow(threads, projection, found.result())

    def _follow(
        self, threads: ThreadPoolExecutor, projection: Projection, followed: Followed
    ) -> None:
        """Have exactly those run that are to be followed."""
        found = {generation.id for generation in followed.generations}
        running = {generation.id for generation, _ in self._running.values()}
        for generation, worker in self._running.values():
            if generation.name == projection.name and generation.id not in found:
                worker.end()
        for generation in followed.generations:
            if generation.id not in running:
                self._start(threads, projection, generation)
        self._say_left(projection, followed.left)

    def _say_left(self, projection: Projection, left: Sequence[Generation]) -> None:
        numbers = sorted(
            generation.number for generation in left if generation.id not in self._left
        )
        if not numbers:
            return
        self._left.update(generation.id for generation in left)
        sentence = (
            f"{projection.name}: not kept up any more: {', '.join(f'g{n}' for n in numbers)}; of "
            f"the kept generations the {KEPT_UP_MAX} promoted last are; "
            f"`thought-ledger projections retire {projection.name} --generation N` drops one"
        )
        self._say(
            Said(sentence, event="not_kept_up", read_model=projection.name, generations=numbers)
        )

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
