"""All projections in one process: for each a worker of its own, in a thread, with its own lead."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from ledger.database import Connector
from ledger.errors import LedgerError
from ledger.said import Said
from projections.errors import ProjectionError
from projections.projection import Projection
from projections.stopping import Stop
from projections.worker import Worker, catch_up

# One that failed is tried again as long as another runs: an upgrade or a grant may mend it.
RETRY_SECONDS = 5.0


class Workers:
    """Follows the log for each of several projections; what befalls one does not stop another."""

    def __init__(
        self,
        connector: Connector,
        projections: Sequence[Projection],
        stop: Stop,
        say: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """Its arguments are those of ``Worker``, and told from several threads."""
        self._workers = {
            projection.name: Worker(connector, projection, stop, say, note)
            for projection in projections
        }
        self._stop = stop
        self._say = say
        self._failures: dict[str, BaseException] = {}

    def run(self) -> None:
        """Run them until *stop* is set or all have failed.

        Raises what the first failed of when all have, and an error that is a bug in any case.
        """
        with ThreadPoolExecutor(len(self._workers)) as threads:

            def start(name: str) -> Future[None]:
                return threads.submit(self._workers[name].run)

            running = {start(name): name for name in self._workers}
            again_at = time.monotonic()
            while running:
                self._collect(running, RETRY_SECONDS if self._failures else None)
                if not running or self._stop.is_set() or time.monotonic() < again_at:
                    continue
                again_at = time.monotonic() + RETRY_SECONDS
                missing = self._failures.keys() - running.values()
                running |= {start(name): name for name in missing}
        self._raise_failure()

    def _collect(self, running: dict[Future[None], str], timeout: float | None) -> None:
        ended, _ = wait(running, timeout, FIRST_COMPLETED)
        for future in ended:
            name = running.pop(future)
            error = future.exception()
            known = self._failures.pop(name, None)
            if error is None:
                continue
            self._failures[name] = error
            if running and str(error) != str(known):
                self._say(
                    Said(
                        f"{_described(error)}; the other read models are followed meanwhile",
                        event="read_model_failed",
                        read_model=name,
                        error=_described(error),
                    )
                )

    def _raise_failure(self) -> None:
        failures = list(self._failures.values())
        bugs = [error for error in failures if not isinstance(error, LedgerError)]
        if bugs or len(failures) == len(self._workers):
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
