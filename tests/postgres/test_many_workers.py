"""Worker processes, stopped and killed: never an event missed, never one applied twice."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from uuid import uuid4

import pytest

from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.header import Context
from ledger.log import head
from ledger.settings import Settings
from projections.candidate import open_candidate
from projections.catalogue import ALL
from projections.operations import compared_to
from projections.session import SILENCE_SECONDS_MAX
from projections.status import look
from projections.wait import wait_for
from tests.postgres.projecting import (
    REPOSITORY,
    SECONDS_MAX,
    meanwhile,
    record_chain,
)
from tests.postgres.writers import a_thought, begin, count

# By hand, at full size: THOUGHT_LEDGER_STOPPED_SECONDS=30
STOPPED_SECONDS = float(os.environ.get("THOUGHT_LEDGER_STOPPED_SECONDS", "4"))
TAKEOVER_SECONDS_MAX = SILENCE_SECONDS_MAX + 5
WRITERS = 8
THOUGHTS_EACH = 60

pytestmark = pytest.mark.timeout(SECONDS_MAX * 6 + STOPPED_SECONDS)


class WorkerProcess:
    """``projections run``, and which process it is."""

    def __init__(self, database_url):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "projections", "run", "--database-url", database_url],
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            text=True,
        )

    def leads(self, reader, name):
        return leader_of(reader, name) == self.process.pid


def leader_of(reader, name):
    """The process that leads the live generation of *name*; None when none does."""
    for found in look(reader).generations:
        if (found.name, found.state) == (name, "live") and found.leader is not None:
            return int(found.leader.partition("@")[0])
    return None


@contextmanager
def worker_processes(database_url, number):
    with ExitStack() as stack:
        workers = []
        for _ in range(number):
            worker = WorkerProcess(database_url)
            stack.enter_context(worker.process)
            stack.callback(worker.process.kill)
            stack.callback(worker.process.send_signal, signal.SIGCONT)
            workers.append(worker)
        yield workers


def writing(database_url):
    """Chains recorded one after another, until it ends."""

    def write(enough):
        with (
            Database(Settings(database_url=database_url)) as database,
            closing(database.connector(Role.WRITER).connect()) as writer,
        ):
            while not enough.wait(0.01):
                record_chain(writer, "one", "because")

    return meanwhile(write)


def until(said, condition, seconds=SECONDS_MAX):
    """How long it took until *condition* held."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() < start + seconds, said
        time.sleep(0.005)
    return time.monotonic() - start


def leading_worker(workers, reader, name="thoughts"):
    until(f"somebody leads {name}", lambda: leader_of(reader, name) is not None)
    leader = leader_of(reader, name)
    return next(worker for worker in workers if worker.process.pid == leader)


def assert_equal_to_a_fresh_build(database):
    connector = database.connector(Role.PROJECTOR)
    for projection in ALL:
        with open_candidate(connector, projection) as candidate:
            candidate.build_up()
            with compared_to(connector, candidate) as comparison:
                assert comparison.is_even
                live, fresh = map(comparison.digests, (comparison.live, comparison.other))
                assert live == fresh


def test_of_three_workers_one_stopped_and_one_killed_nothing_is_missed_or_applied_twice(
    database, database_url, admin, reader, capsys
):
    with worker_processes(database_url, 3) as workers, writing(database_url):
        stopped = leading_worker(workers, reader)
        stopped.process.send_signal(signal.SIGSTOP)
        start = time.monotonic()
        after_stop = until(
            "another leads",
            lambda: not stopped.leads(reader, "thoughts") and leader_of(reader, "thoughts"),
            TAKEOVER_SECONDS_MAX,
        )
        killed = leading_worker(workers, reader)
        killed.process.kill()
        after_kill = until(
            "the third leads",
            lambda: (
                leader_of(reader, "thoughts") not in (None, killed.process.pid, stopped.process.pid)
            ),
        )
        until(
            "it was stopped long enough",
            lambda: time.monotonic() > start + STOPPED_SECONDS,
            STOPPED_SECONDS + 1,
        )
        position = head(reader)
        assert all(wait_for(reader, known.name, position, SECONDS_MAX) for known in ALL)
        stopped.process.send_signal(signal.SIGCONT)
        position = head(reader)
        assert all(wait_for(reader, known.name, position, SECONDS_MAX) for known in ALL)
        assert stopped.process.poll() is None
    with capsys.disabled():
        print(
            f"\ntaken over from a stopped leader after {after_stop:.2f} s, "
            f"from a killed one after {after_kill * 1000:.0f} ms",
            end=" ",
        )
    with worker_processes(database_url, 1):
        assert all(wait_for(reader, known.name, head(reader), SECONDS_MAX) for known in ALL)
    assert_equal_to_a_fresh_build(database)


def test_no_event_of_eight_writers_with_pauses_and_rollbacks_is_missed(
    database, database_url, admin, reader
):
    with worker_processes(database_url, 2), rolling_back(admin):
        told = asyncio.run(write(database))

        assert all(wait_for(reader, known.name, head(reader), SECONDS_MAX) for known in ALL)

    seen = reader.execute(
        "SELECT chain_id, thought, sequence FROM live.thoughts ORDER BY position"
    ).fetchall()
    assert sorted(text for _, text, _ in seen) == sorted(text for text, _ in told)
    by_chain = {}
    for chain_id, text, sequence in seen:
        by_chain.setdefault(chain_id, []).append((sequence, text))
    for steps in by_chain.values():
        assert [sequence for sequence, _ in steps] == list(range(1, len(steps) + 1))
        writers = [text.split("/") for _, text in steps]
        for writer in {writer for writer, _ in writers}:
            own = [int(number) for name, number in writers if name == writer]
            assert own == sorted(own)
    assert_equal_to_a_fresh_build(database)


async def write(database):
    """Eight writers on four chains; each text with its position, as it was told."""
    chains = [uuid4() for _ in range(WRITERS // 2)]
    async with Ledger(database) as ledger:
        for chain_id in chains:
            await begin(ledger, Context(actor="test"), chain_id)

        async def think(writer):
            pauses = random.Random(writer)
            told = []
            for number in range(THOUGHTS_EACH):
                text = f"{writer}/{number}"
                receipt = await ledger.think(
                    Context(actor=f"{writer}"), chains[writer // 2], a_thought(text), count
                )
                told.append((text, receipt.position))
                await asyncio.sleep(pauses.choice([0, 0, 0.001, 0.02]))
            return told

        parts = await asyncio.gather(*(think(writer) for writer in range(WRITERS)))
    return [one for part in parts for one in part]


def rolling_back(admin):
    """Appends that never come to be, and leave gaps between positions."""

    def roll_back(enough):
        connection = type(admin).connect(admin.info.dsn, autocommit=True)
        with closing(connection):
            while not enough.is_set():
                with connection.transaction(force_rollback=True):
                    connection.execute(
                        "SELECT ledger.append_one(%s, 1, 'chain.started', 'x', now(), 'x', NULL)",
                        (uuid4(),),
                    )

    return meanwhile(roll_back)
