"""What goes on in the background: how its faults are told, and how a bug in it is."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import psycopg

from ledger.errors import LedgerError, reason_of
from ledger.said import Said

# What passes by itself, or when somebody sees to it: the work goes on when it does.
FAULTS = (OSError, psycopg.Error, LedgerError)

logger = logging.getLogger("thought-ledger")


class Outage:
    """Says what keeps some work from going on: once, until it goes on again."""

    def __init__(self, work: str) -> None:
        self._work = work
        self._is_said = False

    def say(self, fault: Exception) -> None:
        if not self._is_said:
            reason = reason_of(fault)
            logger.warning(
                Said(
                    f"{self._work} has to wait and tries again: {reason}",
                    event="waits",
                    work=self._work,
                    error=reason,
                )
            )
        self._is_said = True

    def end(self) -> None:
        self._is_said = False


def in_background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task that nobody waits for: should a bug end it, the log has the traceback at once."""
    task = asyncio.create_task(work)
    task.add_done_callback(_say_bug)
    return task


def _say_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (bug := task.exception()) is not None:
        logger.error(Said(f"{task.get_coro()} ended by a bug", event="bug"), exc_info=bug)
