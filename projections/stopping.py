"""How a worker is told to stop: by a signal, or by the end of its parent."""

import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

# A worker that hangs in the database is not waited for: nothing it does half is kept.  One that is
# told by the end of its parent leaves with it; another has as long as its supervisor gives it.
STOP_SECONDS_MAX = 10.0
STOP_WITH_PARENT_SECONDS_MAX = 0.9
STDIN = 0


class Stop:
    """A flag that once set stays so, and that wakes who waits for it in a selector."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._woken, self._wake = os.pipe()

    def set(self) -> None:
        """From any thread, and from a signal handler."""
        if not self._flag.is_set():
            self._flag.set()
            os.write(self._wake, b"\0")

    def is_set(self) -> bool:
        return self._flag.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep until set, at most so long; whether it is set."""
        return self._flag.wait(seconds)

    def fileno(self) -> int:
        """Readable once set."""
        return self._woken

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        os.close(self._woken)
        os.close(self._wake)


def stop_process(stop: Stop, *, until_eof: bool) -> None:
    """Set *stop* at SIGINT and SIGTERM, and *until_eof* at the end of standard input.

    The process is gone STOP_SECONDS_MAX later in any case, and STOP_WITH_PARENT_SECONDS_MAX later
    with *until_eof*.  A parent that holds the other end of
    our standard input takes us along however it dies, by ``kill -9`` too.
    """

    seconds = STOP_WITH_PARENT_SECONDS_MAX if until_eof else STOP_SECONDS_MAX

    def tell(*_: object) -> None:
        stop.set()
        # SIGALRM, not handled, ends the process wherever it hangs.
        signal.setitimer(signal.ITIMER_REAL, seconds)

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, tell)
    if until_eof:
        threading.Thread(target=_await_eof, args=(tell,), daemon=True).start()


def _await_eof(tell: Callable[[], None]) -> None:
    while os.read(STDIN, 4096):
        pass
    tell()
