"""Text of strangers on a terminal, and tables."""

import os
import shutil
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime

QUOTED_CHARACTERS_MAX = 60
# What a shell reports of a program whose reader went away: 128 and SIGPIPE.
READER_GONE = 141


def printable(text: str) -> str:
    """Without control characters, so that a thought cannot drive the terminal it is shown on."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)


def local_time(moment: datetime) -> str:
    """A moment as people here read it, to the second."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


@contextmanager
def printing() -> Generator[None]:
    """Print to a reader who may have seen enough, like head: then the command ends quietly."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Or the interpreter would try once more to write it, and complain, when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(READER_GONE) from None


def shortened(text: str) -> str:
    """A text of a stranger in an error: quoted, and cut when it is long."""
    return (
        repr(text) if len(text) <= QUOTED_CHARACTERS_MAX else f"{text[:QUOTED_CHARACTERS_MAX]!r}…"
    )


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns that can be copied from: only the last is cut short, and only on a terminal."""
    lines = [titles, *rows]
    cells = [[printable(cell).replace("\n", " ") for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        text = "  ".join(padded).rstrip()
        print(text if limit is None or len(text) <= limit else text[: limit - 1] + "…")
