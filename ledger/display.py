"""Text of strangers on a terminal, and tables."""

import shutil
import sys
from collections.abc import Iterable, Sequence


def printable(text: str) -> str:
    """Without control characters, so that a thought cannot drive the terminal it is shown on."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)


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
