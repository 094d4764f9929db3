"""Starts the embedding process when there is something to embed, and again when it dies.

In a thread of the projection worker.  The process' standard input is a pipe that ends with the
worker, however that ends, and the process ends with the pipe.
"""

import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.background import FAULTS
from ledger.database import Connector
from ledger.errors import LedgerError
from ledger.said import Said
from ledger.settings import Settings
from projections.embeddings import lead
from projections.embeddings.answering import ASKED_CHANNEL
from projections.embeddings.choice import Choice, chosen, name_of
from projections.embeddings.errors import NotInstalledError
from projections.embeddings.schema import ensure_schema
from projections.embeddings.spaces import list_spaces
from projections.faults import passes
from projections.outage import Outage
from projections.processes import child_environment
from projections.stopping import Stop

LOOK_SECONDS = 1.0
CHILD_LOOK_SECONDS = 0.25
# The pause before it is started again doubles as long as it ends by a failure.
PAUSE_SECONDS_MIN = 1.0
PAUSE_SECONDS_MAX = 300.0
STOP_SECONDS_MAX = 0.5

# It has ended as it should, or has said itself what is wrong.
EXPECTED_CODES = (0, 2, 3)

COMMAND = (sys.executable, "-P", "-m", "projections", "embed", "--until-eof")


class Launcher:
    """Nothing of it keeps the worker from anything."""

    def __init__(
        self,
        connector: Connector,
        settings: Settings,
        stop: Stop,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """*connector* is of role PROJECTOR."""
        self._connector = connector
        self._settings = settings
        self._choice: Choice = chosen(settings)
        self._stop = stop
        self._say = say
        self._outage = Outage(work="embedding")
        self._pause_seconds = PAUSE_SECONDS_MIN
        self._is_asked = False

    def run(self) -> None:
        """Until told to stop."""
        while not self._stop.is_set():
            try:
                with self._connector.connect() as connection:
                    if not self._is_needed_soon(connection):
                        return
            except (OSError, LedgerError, psycopg.Error) as error:
                if not (passes(error) or isinstance(error, LedgerError)):
                    raise
                self._back_off(error)
                continue
            self._run_child()

    def _is_needed_soon(self, connection: Connection[TupleRow]) -> bool:
        """Wait until the process is needed; False when told to stop."""
        connection.execute("SELECT set_config('synchronous_commit', 'off', false)")
        connection.execute(f"LISTEN {ASKED_CHANNEL}")
        while not self._stop.is_set():
            if self._choice.is_installed:
                if is_needed(connection, self._choice, is_asked=self._is_asked):
                    return True
            else:
                self._say_why_not(connection)
            self._outage.end()
            self._wait(connection)
        return False

    def _wait(self, connection: Connection[TupleRow]) -> None:
        with selectors.PollSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._stop, selectors.EVENT_READ)
            selector.select(LOOK_SECONDS)
        self._is_asked = len(list(connection.notifies(timeout=0))) > 0

    def _say_why_not(self, connection: Connection[TupleRow]) -> None:
        """Leave word why nobody embeds, unless another machine does."""
        if lead.leader(connection) is None:
            ensure_schema(connection)
            state, reason = (
                (lead.OFF, "") if self._choice.is_off else (lead.NOT_INSTALLED, WHY_NOT_INSTALLED)
            )
            lead.say_state(connection, state, reason)

    def _run_child(self) -> None:
        began = time.monotonic()
        self._is_asked = False
        try:
            child = subprocess.Popen(  # noqa: S603 our own module, by our own interpreter
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=child_environment(self._settings),
            )
        except OSError as error:  # no descriptor or no process is left, for now
            self._back_off(error)
            return
        with child:
            while child.poll() is None and not self._stop.wait(CHILD_LOOK_SECONDS):
                pass
            _end(child)
        if self._stop.is_set():
            return
        if child.returncode not in EXPECTED_CODES:
            self._say_why_it_ended(child.returncode)
        if child.returncode == 0 or time.monotonic() > began + PAUSE_SECONDS_MAX:
            self._pause_seconds = PAUSE_SECONDS_MIN
        if not self._stop.wait(self._pause_seconds) and child.returncode != 0:
            self._pause_seconds = min(2 * self._pause_seconds, PAUSE_SECONDS_MAX)

    def _say_why_it_ended(self, code: int) -> None:
        """Leave word of a process that could not leave its own."""
        how = _signal_name(-code) if code < 0 else f"exit code {code}"
        reason = f"the process ended by {how}, and is started again in {self._pause_seconds:.0f} s"
        with suppress(*FAULTS), self._connector.connect() as connection:
            ensure_schema(connection)
            lead.say_state(connection, lead.FAILED, reason)
        self._say(Said(f"{reason}; search goes on by words", event="embedding_ended", code=code))

    def _back_off(self, error: Exception) -> None:
        # What is wrong with the database, who keeps up the read models says as well.
        if not passes(error) and (news := self._outage.news(error)):
            self._say(Said(f"embedding: {news}", **news.facts))
        if self._stop.wait(self._outage.pause()):
            return
        with suppress(*FAULTS):
            self._connector.revive()


@contextmanager
def running(work: Callable[[], None], stop: Stop) -> Generator[None]:
    """*work* in a thread of its own, which is told to stop at the end."""
    thread = threading.Thread(target=work, name="embeddings")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


WHY_NOT_INSTALLED = str(NotInstalledError())


def is_needed(connection: Connection[TupleRow], choice: Choice, *, is_asked: bool) -> bool:
    """Whether something is to be embedded, and nobody does."""
    assert choice.source is not None
    if lead.leader(connection) is not None:
        return False
    spaces = list_spaces(connection)
    head = log.head(connection)
    if not any(space.model == name_of(choice.source) for space in spaces):
        return head > 0
    followed = [space for space in spaces if space.state != "kept"]
    return is_asked or any(space.position < head for space in followed)


def _signal_name(number: int) -> str:
    """As people know it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """Close its input, which ends it, and wait a moment; later it ends by itself."""
    if child.stdin is not None:
        with suppress(OSError):
            child.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(STOP_SECONDS_MAX)
    if child.poll() is None:
        child.kill()
