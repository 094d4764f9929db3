"""Boxes of thoughts on stderr, for whoever watches an agent think."""

import queue
import threading
from contextlib import suppress
from typing import TextIO

from ledger.display import printable
from mcp_server.inputs import ThoughtInput

WIDTH_MAX = 100
WAITING_MAX = 100
CLOSE_SECONDS_MAX = 0.2


class Echo:
    """Writes thoughts to a stream from a thread: a reader that is slow or gone holds up no call."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._boxes: queue.Queue[str | None] = queue.Queue(WAITING_MAX)
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def __call__(self, said: ThoughtInput) -> None:
        """Show a thought, unless too many wait to be shown already."""
        with suppress(queue.Full):
            self._boxes.put_nowait(_box(said))

    def close(self) -> None:
        """Show what waits, if somebody reads it."""
        with suppress(queue.Full):
            self._boxes.put_nowait(None)
        self._writer.join(CLOSE_SECONDS_MAX)

    def _write(self) -> None:
        # The thoughts are recorded: that nobody reads our stderr any more is no failure of theirs.
        with suppress(OSError, ValueError):
            while (box := self._boxes.get()) is not None:
                print(printable(box), file=self._stream, flush=True)


def _box(said: ThoughtInput) -> str:
    where = f"{said.thought_number}/{said.total_thoughts}"
    if said.branch_id is not None:
        heading = f"Branch {where} (from thought {said.branch_from_thought}, id {said.branch_id})"
    elif said.is_revision:
        heading = f"Revision {where} (of thought {said.revises_thought or '?'})"
    else:
        heading = f"Thought {where}"
    lines = [line[:WIDTH_MAX] for line in said.thought.splitlines()] or [""]
    width = max(len(heading), *map(len, lines))
    rule = "─" * (width + 2)
    body = "\n".join(f"│ {line.ljust(width)} │" for line in lines)
    return f"┌{rule}┐\n│ {heading.ljust(width)} │\n├{rule}┤\n{body}\n└{rule}┘"
