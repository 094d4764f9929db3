"""The descriptors this process may have: their limit, their sharing out, and their end."""

import asyncio
import contextlib
import errno
import logging
import resource
import time
from typing import Any

from ledger.said import Said

# More would cost memory for nobody: each may hold some hundred kilobytes that were not read yet.
CONNECTIONS_MAX = 1_024
# How many connections are taken from the socket in one turn of the event loop.  Those that find
# no place are open for up to four turns.
ACCEPTS_MAX = 16
# For the database, the worker, files, and connections about to be closed.
DESCRIPTORS_RESERVED = 64 + 4 * ACCEPTS_MAX
# How long it is not said again that there are no more.
SILENCE_SECONDS = 60
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)

_log = logging.getLogger(__name__)


def raise_limit() -> None:
    """Ask for as many descriptors as are ever needed, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS_MAX + DESCRIPTORS_RESERVED
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        # What is not granted is not counted on: connections_max asks again.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def connections_max() -> int:
    """How many connections the limit leaves room for; it may be changed while we run."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    # With few there is at least one, and what is needed beside it may fail.
    return max(1, min(CONNECTIONS_MAX, soft - DESCRIPTORS_RESERVED))


class Exhaustion:
    """Says once that there are no more descriptors.

    asyncio would say it with a traceback for each connection it cannot take, every second.
    """

    def __init__(self) -> None:
        self._said_at: float | None = None

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The event loop's handler of what nobody caught."""
        error = context.get("exception")
        # Only of what is tried again: elsewhere it is the end of something, to be traced.
        is_accept = "socket" in context and "accept" in context["message"]
        if not (is_accept and isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS):
            loop.default_exception_handler(context)
            return
        now = time.monotonic()
        if self._said_at is None or now - self._said_at > SILENCE_SECONDS:
            self._said_at = now
            _log.warning(
                Said(
                    f"new connections wait: there are no more descriptors ({error.strerror}); "
                    "raise the limit with ulimit -n",
                    event="out_of_descriptors",
                )
            )
