"""Boxes of thoughts on stderr, for whoever watches an agent think."""

import sys
from contextlib import suppress

from ledger.display import printable
from mcp_server.inputs import ThoughtInput

WIDTH_MAX = 100


def echo_thought(said: ThoughtInput) -> None:
    """Write a thought in a box to stderr."""
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
    box = f"┌{rule}┐\n│ {heading.ljust(width)} │\n├{rule}┤\n{body}\n└{rule}┘"
    # The thought is recorded: that nobody reads our stderr any more must not look like a failure.
    with suppress(OSError):
        print(printable(box), file=sys.stderr, flush=True)
