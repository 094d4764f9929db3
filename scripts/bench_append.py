"""Appends against raw inserts, and the stdio call against an empty one, in one run.

Baseline: one raw single-row INSERT a commit by psycopg, into a table of the shape of the log on the
same server; for the stdio call, an empty tool on the SDK's stock stdio plus such an insert.
Rounds alternate, and medians of rounds are printed, because machines are noisy.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database
from ledger.header import Context
from ledger.serialization import encode
from ledger.settings import Settings
from ledger.thought import Thought

ROUNDS = 5
SECONDS = 1.5
CALLS = 1_000
RAW_CONNECTIONS_MAX = 32
CONTEXT = Context(actor="bench", client="bench", client_version="1")
TEXT = "The thought of a model that explains what it holds true and why, at some length. " * 4

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
INSERT_RAW = """
    INSERT INTO public.raw (originator_id, originator_version, topic, state)
    VALUES (%s, %s, 'thought.added', %s) RETURNING notification_id
"""

STOCK_SERVER = """
from mcp.server import MCPServer
server = MCPServer("stock", log_level="ERROR")
@server.tool()
async def sequentialthinking(thought: str, nextThoughtNeeded: bool, thoughtNumber: int,
                             totalThoughts: int) -> dict[str, int]:
    return {"thoughtNumber": thoughtNumber}
server.run("stdio")
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
            bench_stdio(data_dir, admin)
            asyncio.run(bench_tasks(database, admin))
            asyncio.run(bench_chain_length(database))
            asyncio.run(bench_cold_read(database))
            bench_start(data_dir)
        finally:
            database.close()


# -- The stdio call -------------------------------------------------------------------------------


class Client:
    """A raw client: one line out, one line in."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        client = {"name": "bench", "version": "1"}
        opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.ask("initialize", opening)
        self.seconds_to_answer = time.perf_counter() - self.started
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        assert self.process.stdout is not None
        self.send({"id": 1, "method": method, "params": params})
        return json.loads(self.process.stdout.readline())

    def think(self, number: int) -> None:
        arguments = {
            "thought": TEXT,
            "nextThoughtNeeded": True,
            "thoughtNumber": number,
            "totalThoughts": number,
        }
        answer = self.ask("tools/call", {"name": "sequentialthinking", "arguments": arguments})
        result = answer["result"]
        assert isinstance(result, dict)
        assert not result.get("isError"), answer

    def resident_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def close(self) -> float:
        """End it; the seconds that took."""
        assert self.process.stdin is not None
        start = time.perf_counter()
        self.process.stdin.close()
        self.process.wait()
        return time.perf_counter() - start


@contextmanager
def client_of(*arguments: str):
    client = Client([sys.executable, *arguments])
    try:
        yield client
    finally:
        client.close()


def bench_stdio(data_dir: str, admin: str) -> None:
    payload = encode(thought_event(), CONTEXT)
    ours_p50, stock_p50, raw_p50, ours_p99, worker_p50 = [], [], [], [], []
    with (
        client_of("-m", "mcp_server", "serve", "--data-dir", data_dir, "--no-worker") as ours,
        client_of("-c", STOCK_SERVER) as stock,
        psycopg.connect(admin, autocommit=True) as connection,
    ):
        for client in (ours, stock):
            latencies(client.think, 100)
        for _ in range(ROUNDS):
            mine = latencies(ours.think, CALLS)
            ours_p50.append(mine[0])
            ours_p99.append(mine[1])
            stock_p50.append(latencies(stock.think, CALLS)[0])
            chain_id = uuid4()
            raw_p50.append(
                latencies(
                    lambda n, c=chain_id: connection.execute(
                        INSERT_RAW, (c, n, payload), prepare=True
                    ).fetchone(),
                    CALLS,
                )[0]
            )
    with client_of("-m", "mcp_server", "serve", "--data-dir", data_dir) as beside:
        latencies(beside.think, 300)
        worker_p50.extend(latencies(beside.think, CALLS)[0] for _ in range(ROUNDS))
    mine, stock, raw = map(statistics.median, (ours_p50, stock_p50, raw_p50))
    print("stdio call, sequential")
    print(f"  sequentialthinking           p50 {ms(mine)}  p99 {ms(statistics.median(ours_p99))}")
    print(f"  the same beside its worker   p50 {ms(statistics.median(worker_p50))}")
    print(f"  empty tool on stock stdio    p50 {ms(stock)}")
    print(f"  raw INSERT commit            p50 {ms(raw)}")
    print(f"  ratio to stock + raw         {mine / (stock + raw):.2f}   (target <= 1.0)")


def latencies(call: Callable[[int], object], count: int) -> tuple[float, float]:
    """p50 and p99 in seconds."""
    taken = []
    for number in range(2, count + 2):
        start = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - start)
    return percentiles(taken)


# -- Appends in process ---------------------------------------------------------------------------


async def bench_tasks(database: Database, admin: str) -> None:
    print("appends in process, each task on a chain of its own")
    payload = encode(thought_event(), CONTEXT)
    async with Ledger(database) as ledger:
        for tasks in (1, 8, 32, 256):
            ours, raw = [], []
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
                taken = []
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
    taken = []
    for _ in range(20):
        async with Ledger(database) as ledger:
            await ledger.session_chains("connect")
            start = time.perf_counter()
            await ledger.chain(begun.chain_id)
            taken.append(time.perf_counter() - start)
    print(f"a chain of 500 thoughts, read cold  p50 {ms(percentiles(taken)[0])}  (target <= 10 ms)")


def bench_start(data_dir: str) -> None:
    starts, ends, resident = [], [], []
    for _ in range(10):
        client = Client([sys.executable, "-m", "mcp_server", "serve", "--data-dir", data_dir])
        latencies(client.think, 200)
        starts.append(client.seconds_to_answer)
        resident.append(client.resident_mib())
        ends.append(client.close())
    print(
        f"spawn to initialize answered  p50 {statistics.median(starts):.2f} s  (target <= 1.0 s)\n"
        f"end of input to exit          p50 {statistics.median(ends):.2f} s  (target < 1 s)\n"
        f"resident memory               {statistics.median(resident):.0f} MiB  (target <= 120)"
    )


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


def thought_event():
    return chain_of(1).collect()[1]


def percentiles(taken: list[float]) -> tuple[float, float]:
    ordered = sorted(taken)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99) - 1]


def ms(seconds: float) -> str:
    return f"{seconds * 1_000:.2f} ms"


async def nothing() -> None: ...


if __name__ == "__main__":
    os.environ.pop("THOUGHT_LEDGER_DATABASE_URL", None)
    main()
