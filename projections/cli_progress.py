"""How far a build is, for who waits for it: a bar on a terminal, else a line now and then."""

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from projections.candidate import Progress as Built
from projections.cli_words import say
from projections.generations import Generation

LINE_SECONDS = 5.0
WORDS = {"events": "applying", "indexes": "making indexes", "following": "catching up"}


class BuildProgress:
    """Shows and remembers what a build reports."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._start = time.monotonic()
        self._said_at = self._start
        self._indexed = 0.0
        self._last: Built | None = None
        self._changed_at = self._start
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(name, total=None, rate="")

    def report(self, built: Built) -> None:
        """Take what a build says of itself."""
        now = time.monotonic()
        if self._last is not None and self._last.phase == "indexes":
            self._indexed += now - self._changed_at
        self._last, self._changed_at = built, now
        rate = f"{round(self._rate()):,} events/s"
        self._bar.update(
            self._task,
            description=f"{self._name}: {WORDS[built.phase]}",
            completed=built.position,
            total=built.head,
            rate=rate,
        )
        if self._bar.disable and not self._quiet and now - self._said_at >= LINE_SECONDS:
            self._said_at = now
            done = f"{self._share(built)} % of the log"
            say(f"{self._name}: {WORDS[built.phase]}, {done}, {rate}{self._eta()}")

    def sentence(self, position: int) -> str:
        """What was done, when it is done."""
        events = self._last.events if self._last else 0
        return (
            f"built to position {position:,}: {events:,} events in "
            f"{self._seconds():.1f} s ({round(self._rate()):,}/s), "
            f"of that indexes {self._indexed:.1f} s"
        )

    def summary(self, generation: Generation, position: int) -> Mapping[str, Any]:
        """The same as facts."""
        return {
            "name": self._name,
            "generation": generation.number,
            "projection_version": generation.projection_version,
            "position": position,
            "events": self._last.events if self._last else 0,
            "seconds": round(self._seconds(), 3),
            "index_seconds": round(self._indexed, 3),
        }

    def _seconds(self) -> float:
        return time.monotonic() - self._start

    def _rate(self) -> float:
        if self._last is None:
            return 0.0
        return self._last.events / max(self._changed_at - self._start, 0.001)

    def _share(self, built: Built) -> int:
        return int(100 * built.position / max(built.head, 1))

    def _eta(self) -> str:
        if self._last is None or not self._rate():
            return ""
        seconds = (self._last.head - self._last.position) / self._rate()
        return f", {seconds:.0f} s to go"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
