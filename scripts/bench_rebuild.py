"""Measure a rebuild: events a second against a COPY of the same rows, and beside live traffic.

The second part runs the real commands: a worker keeps the live generation up, thoughts are
appended at a steady rate, readers ask prepared statements without a pause, and meanwhile the
read model is built again and promoted.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from bench_project import (
    REPOSITORY,
    copy_again,
    database_of_its_own,
    fill,
    new_thought,
    worker_process,
)

from ledger import log
from ledger.application import Ledger
from ledger.database import Connector, Database, Role
from ledger.header import Context
from projections.candidate import open_candidate
from projections.chains import COLUMNS as CHAIN_COLUMNS
from projections.memories import COLUMNS as MEMORY_COLUMNS
from projections.thoughts import COLUMNS as THOUGHT_COLUMNS
from projections.thoughts import Thoughts
from projections.wait import wait_for

APPENDS_PER_SECOND = 200
CHAINS = 8
READERS = 3
SETTLE_SECONDS = 2.0
CATCH_UP_SECONDS_MAX = 120.0
TABLES = {
    "thought_chains": CHAIN_COLUMNS,
    "thoughts": THOUGHT_COLUMNS,
    "memories": MEMORY_COLUMNS,
}
# What an up-to-date reader asks: how far it is, and a page of the chain moved last.
SELECT_POSITION = "SELECT position FROM live.thoughts_checkpoint"
SELECT_PAGE = """
    SELECT thought.position, thought.id, thought.thought, memory.content_hash
      FROM live.thoughts AS thought
      JOIN live.memories AS memory ON memory.thought_id = thought.id
     WHERE thought.chain_id = %(chain_id)s
     ORDER BY thought.sequence DESC
     LIMIT 20
"""
SELECT_CHAIN = "SELECT id FROM live.thought_chains ORDER BY updated_at DESC, id LIMIT 1"


def main() -> None:
    """Run both parts, each on a server of its own."""
    with database_of_its_own() as database:
        fill_log(database)
        print_rate(database)
    with database_of_its_own() as database:
        fill_log(database)
        print_live(database)


def fill_log(database: Database) -> None:
    with closing(psycopg.connect(database.conninfo(Role.WRITER), autocommit=True)) as writer:
        fill(writer, mixed=True)


# -- Alone ----------------------------------------------------------------------------------------


def print_rate(database: Database) -> None:
    connector = database.connector(Role.PROJECTOR)
    start = time.perf_counter()
    with open_candidate(connector, Thoughts()) as candidate:
        events = candidate.build_up()
        seconds = time.perf_counter() - start
        copied = [
            copy_again(candidate.connection, candidate.generation.schema, table, columns)
            for table, columns in TABLES.items()
        ]
    rows, copy_seconds = sum(rows for rows, _ in copied), sum(taken for _, taken in copied)
    print(
        f"rebuild of {events:,} events, chains, thoughts and memories with indexes: "
        f"{events / seconds:,.0f} events/s"
    )
    print(
        f"  COPY of the {rows:,} rows into equal tables: {rows / copy_seconds:,.0f} rows/s; "
        f"the rebuild takes {seconds / copy_seconds:.2f} times as long"
    )


# -- Beside live traffic --------------------------------------------------------------------------


@dataclass
class Readings:
    """What readers got: seconds of each question, errors, and how often time went back."""

    seconds: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    went_back: int = 0


def print_live(database: Database) -> None:
    with worker_process(database), reading(database) as readings, appending(database) as appended:
        wait_until_caught_up(database)
        time.sleep(SETTLE_SECONDS)
        alone = sorted(readings.seconds)
        began = len(readings.seconds)
        before = len(appended)
        start = time.perf_counter()
        built, switched = rebuild(database)
        seconds = time.perf_counter() - start
        rate = (len(appended) - before) / seconds
        time.sleep(SETTLE_SECONDS)
        during = sorted(readings.seconds[began:])
    compared = diff(database)
    print(
        f"rebuild of {built['events']:,} events beside {rate:,.0f} appends/s, {READERS} readers: "
        f"{built['events'] / built['seconds']:,.0f} events/s"
    )
    print(
        f"  switched in {switched['switch_milliseconds']} ms; {len(readings.seconds):,} reads, "
        f"{len(readings.errors)} errors, {readings.went_back} back in time; "
        f"old and new {'equal' if compared['equal'] else 'NOT EQUAL'} at position "
        f"{compared['live']['position']:,}"
    )
    print(
        f"  a read alone p50 {at(alone, 0.5):.2f} ms, p99 {at(alone, 0.99):.2f} ms; "
        f"during rebuild and switch p50 {at(during, 0.5):.2f} ms, p99 {at(during, 0.99):.2f} ms, "
        f"worst {at(during, 1):.1f} ms"
    )
    for error in set(readings.errors):
        print(f"  error: {error}")


def at(sorted_seconds: list[float], share: float) -> float:
    place = min(int(len(sorted_seconds) * share), len(sorted_seconds) - 1)
    return sorted_seconds[place] * 1000


def wait_until_caught_up(database: Database) -> None:
    with closing(database.connector(Role.READER).connect()) as reader:
        if not wait_for(reader, "thoughts", log.head(reader), CATCH_UP_SECONDS_MAX):
            raise TimeoutError


def rebuild(database: Database) -> tuple[Any, Any]:
    built, switched = command(database, "rebuild", "thoughts", "--promote")
    return built, switched


def diff(database: Database) -> Any:
    (compared,) = command(database, "diff", "thoughts")
    return compared


def command(database: Database, *words: str) -> list[Any]:
    assert database.embedded is not None
    url = f"--database-url={database.embedded.conninfo()}"
    run = subprocess.run(
        [sys.executable, "-m", "projections", *words, "--json", url],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        cwd=REPOSITORY,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


@contextmanager
def reading(database: Database) -> Generator[Readings]:
    readings, enough = Readings(), threading.Event()
    connector = database.connector(Role.READER)
    threads = [
        threading.Thread(target=read, args=(connector, readings, enough)) for _ in range(READERS)
    ]
    wait_until_there(connector)
    for thread in threads:
        thread.start()
    try:
        yield readings
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def wait_until_there(connector: Connector) -> None:
    with closing(connector.connect()) as connection:
        wait_for(connection, "thoughts", 1, CATCH_UP_SECONDS_MAX)


def read(connector: Connector, readings: Readings, enough: threading.Event) -> None:
    """Ask both statements, prepared from the first time on."""
    latest = (0, 0)
    with closing(connector.connect()) as connection:
        connection.prepare_threshold = 0
        chain = connection.execute(SELECT_CHAIN).fetchone()
        assert chain is not None
        chain_id = chain[0]
        while not enough.wait(0.002):
            start = time.perf_counter()
            try:
                row = connection.execute(SELECT_POSITION).fetchone()
                page = connection.execute(SELECT_PAGE, {"chain_id": chain_id}).fetchall()
            except psycopg.Error as error:
                readings.errors.append(str(error))
                continue
            readings.seconds.append(time.perf_counter() - start)
            assert row is not None
            # Neither the position nor what is in the chain may be less than it was.
            seen = (row[0], page[0][0])
            readings.went_back += seen[0] < latest[0] or seen[1] < latest[1]
            latest = seen


@contextmanager
def appending(database: Database) -> Generator[list[float]]:
    """Thoughts at a steady rate, by a thread with a loop of its own; when each was recorded."""
    times: list[float] = []
    enough = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(append(database, times, enough)))
    thread.start()
    try:
        yield times
    finally:
        enough.set()
        thread.join()


async def append(database: Database, times: list[float], enough: threading.Event) -> None:
    context = Context(actor="bench")
    async with Ledger(database) as ledger:

        async def think() -> None:
            first = await ledger.begin_thinking(context, None, new_thought(1), lambda _: {})
            number, due = 1, time.perf_counter()
            while not enough.is_set():
                number += 1
                due += CHAINS / APPENDS_PER_SECOND
                await asyncio.sleep(due - time.perf_counter())
                await ledger.think(context, first.chain_id, new_thought(number), lambda _: {})
                times.append(time.perf_counter())

        async with asyncio.TaskGroup() as group:
            for _ in range(CHAINS):
                group.create_task(think())


if __name__ == "__main__":
    main()
