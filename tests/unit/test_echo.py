"""Boxes of thoughts on stderr."""

import os
import threading

import pytest

from mcp_server.inputs import parse_sequentialthinking
from mcp_server.tools.echo import WAITING_MAX, Echo

SECONDS_MAX = 20


def said(text):
    return parse_sequentialthinking(
        {"thought": text, "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": True}
    )


@pytest.fixture
def pipe():
    """The reading end of a pipe, and the stream that writes into it."""
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "w", buffering=1) as stream:
        yield ours, stream
        # What could not be written must not fail a second time when the file is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def test_a_thought_is_shown_in_a_box(pipe):
    watcher, stream = pipe
    echo = Echo(stream)

    echo(said("so be it"))
    echo.close()

    shown = os.read(watcher, 10_000).decode()
    os.close(watcher)
    assert "Thought 1/2" in shown
    assert "so be it" in shown


def test_a_watcher_who_left_is_no_failure_of_the_thought(pipe):
    watcher, stream = pipe
    os.close(watcher)
    echo = Echo(stream)

    echo(said("so be it"))
    echo.close()


def test_a_watcher_who_does_not_read_holds_up_no_call(pipe):
    watcher, stream = pipe
    echo = Echo(stream)
    long = said("x\n" * 10_000)

    def think_on():
        for _ in range(2 * WAITING_MAX):
            echo(long)

    thinking = threading.Thread(target=think_on, daemon=True)
    thinking.start()
    thinking.join(SECONDS_MAX)

    assert not thinking.is_alive()
    os.close(watcher)
