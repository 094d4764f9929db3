"""kill -9 at any exchange with the database, of a step and of a rebuild: all comes right."""

import os
import random
import signal
import subprocess
import sys
from contextlib import closing
from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from projections.generations import listed
from tests.postgres.projecting import (
    REPOSITORY,
    SECONDS_MAX,
    catch_up,
    follow,
    record,
    tables,
    thought,
)

# By hand, at full size: THOUGHT_LEDGER_KILL_ROUNDS=20
ROUNDS_COUNT = int(os.environ.get("THOUGHT_LEDGER_KILL_ROUNDS", "5"))
FRESH = 99

pytestmark = pytest.mark.timeout(SECONDS_MAX * (2 + ROUNDS_COUNT))


def work(database_url, name, *fate):
    return subprocess.run(
        [sys.executable, "-m", "tests.postgres.killing", database_url, name, *map(str, fate)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def exchanges(database_url, name):
    done = work(database_url, name)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def record_history(writer, chains=6):
    """Chains with revisions, a branch and a dead end, one event after the other."""
    for number in range(chains):
        chain = ThoughtChain.start(uuid4(), title=f"{number}")
        dead = uuid4()
        chain.add_thought(uuid4(), thought(f"{number}, 1"))
        chain.add_thought(dead, thought(f"{number}, 2", 2))
        chain.add_thought(
            uuid4(), thought(f"{number}, 3", 3, is_revision=True, revises_thought_number=1)
        )
        chain.add_thought(
            uuid4(), thought(f"{number}, 4", 4, branch_id="b", branch_from_thought_number=2)
        )
        record(writer, chain)
        chain.abandon_thought(dead)
        chain.pause()
        record(writer, chain)


def fates(count):
    """Of each round: an exchange, and whether before or after it; never the same twice."""
    chosen = random.Random(7)
    all_fates = [(n, *when) for n in range(1, count + 1) for when in ((), ("before",))]
    return chosen.sample(all_fates, min(ROUNDS_COUNT, len(all_fates)))


def fresh(database):
    """The tables as a fresh build from the whole log has them."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        catch_up(follow(connection, number=FRESH))
        return tables(connection, f"thoughts_g{FRESH}")


def test_a_step_killed_at_any_exchange_applies_each_event_once(
    database, database_url, writer, admin
):
    record_history(writer)
    count = exchanges(database_url, "step")
    for fate in fates(count):
        record_history(writer)
        killed = work(database_url, "step", *fate)
        assert killed.returncode == -signal.SIGKILL, killed.stderr

    done = work(database_url, "step")

    assert done.returncode == 0, done.stderr
    assert tables(admin, "thoughts_g1") == fresh(database)


def test_a_rebuild_killed_at_any_exchange_is_made_good_by_the_next(
    database, database_url, writer, admin
):
    record_history(writer)
    exchanges(database_url, "step")
    count = exchanges(database_url, "rebuild")
    for fate in fates(count):
        record_history(writer)
        killed = work(database_url, "rebuild", *fate)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        # Readers see one of them, whole, whatever was going on.
        states = [generation.state for generation in listed(admin, "thoughts")]
        assert states.count("live") == 1
        assert states.count("building") <= 1

    step, rebuild = work(database_url, "step"), work(database_url, "rebuild")

    assert step.returncode == 0, step.stderr
    assert rebuild.returncode == 0, rebuild.stderr
    expected = fresh(database)
    live, kept, *_ = listed(admin, "thoughts")
    assert (live.state, kept.state) == ("live", "kept")
    assert tables(admin, live.schema) == expected
    assert tables(admin, kept.schema) == expected
    assert tables(admin, "live") == expected
