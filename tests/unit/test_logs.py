"""What is said on stderr, in both forms, from a process of its own."""

import json
import subprocess
import sys

import pytest

from tests.acceptance.client import REPOSITORY, clean_environment

START = """
import logging, sys, threading, warnings
from ledger.logs import configure, say_refusal, teller
from ledger.said import Said
from ledger.settings import LogFormat
configure(LogFormat({log_format!r}))
"""
SAID = """teller("projections", logging.WARNING)(Said("parked é 5%", event="parked", position=7))"""
BUG_IN_LOOP = """
import asyncio
async def main():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)
asyncio.run(main())
"""
FIRST_FIELDS = ["time", "level", "logger", "message"]


def said(code, log_format, **environment):
    """The lines on stderr of a process that runs *code*."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(log_format=log_format) + code],
        capture_output=True,
        cwd=REPOSITORY,
        env=clean_environment(environment),
        timeout=60,
        check=False,
    )
    return done.stderr.decode().splitlines()


def only_object(code, **environment):
    (line,) = said(code, "json", **environment)
    return json.loads(line)


def test_text_is_a_name_and_a_sentence_a_line():
    assert said(SAID, "text") == ["projections: parked é 5%"]
    assert said('say_refusal("thought-ledger", "no")', "text") == ["thought-ledger: no"]


def test_json_has_the_facts_in_fields_of_their_own():
    found = only_object(SAID)

    assert list(found)[:4] == FIRST_FIELDS
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning",
        "logger": "projections",
        "message": "parked é 5%",
        "event": "parked",
        "position": 7,
    }


def test_a_stderr_that_knows_few_letters_gets_json_as_well():
    assert only_object(SAID, PYTHONIOENCODING="ascii")["message"] == "parked é 5%"


def test_facts_do_not_hide_what_every_line_has():
    assert only_object('logging.error(Said("a", level="mine"))')["level"] == "error"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("logging.getLogger('uvicorn.error').error('%s', 'lost')", "lost"),
        ("warnings.warn('old', DeprecationWarning, stacklevel=1)", "old"),
        ("t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()", "ZeroDivisionError"),
        ("type('T', (), {'__del__': lambda self: 1 / 0})()", "ZeroDivisionError"),
        (BUG_IN_LOOP, "ZeroDivisionError"),
        ('say_refusal("thought-ledger", "no answer")', "no answer"),
    ],
    ids=["uncaught", "library", "warning", "thread", "unraisable", "loop", "refusal"],
)
def test_whatever_is_said_is_one_object(code, words):
    found = only_object(code)

    assert list(found)[:4] == FIRST_FIELDS
    assert words in f"{found}"
    if words == "ZeroDivisionError":
        assert found["traceback"].startswith("Traceback")


def test_a_stderr_that_is_closed_is_no_reason_to_stop():
    code = f"import os; os.close(2); {SAID}; print('went on')"
    done = subprocess.run(
        [sys.executable, "-c", START.format(log_format="json") + code],
        capture_output=True,
        cwd=REPOSITORY,
        env=clean_environment(),
        timeout=60,
        check=False,
    )

    assert done.stdout == b"went on\n"
