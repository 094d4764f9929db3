"""Boxes of thoughts on stderr."""

import os

import pytest

from mcp_server.inputs import parse_sequentialthinking
from mcp_server.tools.echo import echo_thought

SAID = parse_sequentialthinking(
    {"thought": "so be it", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
)


def test_a_thought_that_is_recorded_is_no_failure_when_nobody_watches_any_more(
    monkeypatch: pytest.MonkeyPatch,
):
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "w", buffering=1) as nobody, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", nobody)
        try:
            echo_thought(SAID)
        finally:
            # What could not be written must not fail a second time when the file is closed.
            os.dup2(os.open(os.devnull, os.O_WRONLY), nobody.fileno())
