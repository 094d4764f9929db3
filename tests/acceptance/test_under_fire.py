"""``scripts/fuzz`` and ``scripts/soak``, for a moment; by hand they run for longer."""

import subprocess
import sys

import pytest

from tests.acceptance.client import REPOSITORY, clean_environment

SECONDS_MAX = 110


def run_script(name, *arguments):
    done = subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=clean_environment(),
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_whatever_is_sent_is_answered_and_nothing_is_recorded_half(transport):
    said = run_script("fuzz", "--transport", transport, "--calls", "300", "--branches", "150")

    assert "events verified" in said


def test_the_log_holds_what_many_agents_were_answered():
    said = run_script("soak", "--agents", "8", "--chains", "3", "--seconds", "3")

    assert '"wrong": 0' in said
