"""Appends against raw inserts, and the stdio call against an empty one, in one run.

Baseline: one raw single-row INSERT a commit by psycopg, into a table of the shape of the log on the
same server; for the stdio call, an empty tool on the SDK's stock stdio plus such an insert.
Rounds alternate, and medians of rounds are printed, because machines are noisy.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
from bench_stdio import (
    INSERT_RAW,
    ROUNDS,
    TEXT,
    bench_start,
    bench_stdio,
    ms,
    percentiles,
)

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database
from ledger.events import ChainEvent
from ledger.header import Context
from ledger.serialization import encode
from ledger.settings import Settings
from ledger.thought import Thought

SECONDS = 1.5
RAW_CONNECTIONS_MAX = 32
CONTEXT = Context(actor="bench", client="bench", client_version="1")

CREATE_RAW = """
    CREATE TABLE IF NOT EXISTS public.raw (
        originator_id      uuid   NOT NULL,
        originator_version bigint NOT NULL,
        topic              text   NOT NULL,
        state              bytea  NOT NULL,
        notification_id    bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
        PRIMARY KEY (originator_id, originator_version)
    )
"""


Step = Callable[[], Awaitable[None]]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tl-") as data_dir:
        database = Database(Settings(data_dir=Path(data_dir)))
        database.open()
        try:
            admin = database.embedded.conninfo() if database.embedded else ""
            with psycopg.connect(admin, autocommit=True) as connection:
                connection.execute(CREATE_RAW)
            bench_stdio(data_dir, admin, encode(thought_event(), CONTEXT))
            asyncio.run(bench_tasks(database, admin))
            asyncio.run(bench_chain_length(database))
            asyncio.run(bench_cold_read(database))
            bench_start(data_dir)
        finally:
            database.close()


# -- Appends in process ---------------------------------------------------------------------------


async def bench_tasks(database: Database, admin: str) -> None:
    print("appends in process, each task on a chain of its own")
    payload = encode(thought_event(), CONTEXT)
    async with Ledger(database) as ledger:
        for tasks in (1, 8, 32, 256):
            ours: list[tuple[float, float, float]] = []
            raw: list[tuple[float, float, float]] = []
            for _ in range(ROUNDS):
                connections = min(tasks, RAW_CONNECTIONS_MAX)
                raw.append(await drive(raw_inserter(admin, payload), connections))
                ours.append(await drive(thinker(ledger), tasks))
            rate, p50, p99 = (statistics.median(column) for column in zip(*ours, strict=True))
            raw_rate, raw_p50, _ = (statistics.median(column) for column in zip(*raw, strict=True))
            extra = f"  p50 - raw p50 {ms(p50 - raw_p50)} (target <= 0.4 ms)" if tasks == 1 else ""
            target = {32: "  (target >= 0.8)", 256: "  (target >= 1.2)"}.get(tasks, "")
            print(
                f"  {tasks:>3} tasks  {rate:>7,.0f}/s  p50 {ms(p50)}  p99 {ms(p99)}"
                f"   raw {raw_rate:>7,.0f}/s  p50 {ms(raw_p50)}   ratio {rate / raw_rate:.2f}"
                f"{target}{extra}"
            )


def thinker(ledger: Ledger) -> Callable[[], Awaitable[tuple[Step, Step]]]:
    async def prepare() -> tuple[Step, Step]:
        begun = await ledger.begin_thinking(CONTEXT, None, thought(), lambda _: {})

        async def step() -> None:
            await ledger.think(CONTEXT, begun.chain_id, thought(), lambda _: {})

        return step, nothing

    return prepare


def raw_inserter(admin: str, payload: bytes) -> Callable[[], Awaitable[tuple[Step, Step]]]:
    async def prepare() -> tuple[Step, Step]:
        connection = await psycopg.AsyncConnection.connect(admin, autocommit=True)
        chain_id, version = uuid4(), iter(range(1, 10**9))

        async def step() -> None:
            cursor = await connection.execute(
                INSERT_RAW, (chain_id, next(version), payload), prepare=True
            )
            await cursor.fetchone()

        return step, connection.close

    return prepare


async def drive(
    prepare: Callable[[], Awaitable[tuple[Step, Step]]], tasks: int
) -> tuple[float, float, float]:
    """Events a second, p50 and p99 seconds of *tasks* that go on for SECONDS."""
    steps = [await prepare() for _ in range(tasks)]
    taken: list[float] = []
    end = time.perf_counter() + SECONDS

    async def work(step: Step) -> None:
        while (start := time.perf_counter()) < end:
            await step()
            taken.append(time.perf_counter() - start)

    begin = time.perf_counter()
    await asyncio.gather(*(work(step) for step, _ in steps))
    seconds = time.perf_counter() - begin
    for _, finish in steps:
        await finish()
    return len(taken) / seconds, *percentiles(taken)


async def bench_chain_length(database: Database) -> None:
    async with Ledger(database) as ledger:
        short, long = [await ledger.begin(CONTEXT, chain_of(n), {}) for n in (10, 10_000)]
        p50: dict[UUID, list[float]] = {short.chain_id: [], long.chain_id: []}
        for _ in range(ROUNDS * 2):
            for chain_id, medians in p50.items():
                taken: list[float] = []
                for _ in range(500):
                    start = time.perf_counter()
                    await ledger.think(CONTEXT, chain_id, thought(), lambda _: {})
                    taken.append(time.perf_counter() - start)
                medians.append(percentiles(taken)[0])
    of_ten, of_many = (statistics.median(medians) for medians in p50.values())
    print("append to a chain that has")
    print(f"  10 thoughts      p50 {ms(of_ten)}")
    print(f"  10,000 thoughts  p50 {ms(of_many)}   ratio {of_many / of_ten:.2f}  (target <= 1.3)")


async def bench_cold_read(database: Database) -> None:
    async with Ledger(database) as ledger:
        begun = await ledger.begin(CONTEXT, chain_of(500), {})
    taken: list[float] = []
    for _ in range(20):
        async with Ledger(database) as ledger:
            await ledger.session_chains("connect")
            start = time.perf_counter()
            await ledger.chain(begun.chain_id)
            taken.append(time.perf_counter() - start)
    print(f"a chain of 500 thoughts, read cold  p50 {ms(percentiles(taken)[0])}  (target <= 10 ms)")


# -- Small things ---------------------------------------------------------------------------------


def thought(number: int = 2) -> Thought:
    return Thought(
        text=TEXT, thought_number=number, total_thoughts=number, next_thought_needed=True
    )


def chain_of(thoughts: int) -> ThoughtChain:
    chain = ThoughtChain.start(uuid4(), title="bench")
    for number in range(1, thoughts + 1):
        chain.think(uuid4(), thought(number))
    return chain


def thought_event() -> ChainEvent:
    return chain_of(1).collect()[1]


async def nothing() -> None: ...


if __name__ == "__main__":
    os.environ.pop("THOUGHT_LEDGER_DATABASE_URL", None)
    main()
