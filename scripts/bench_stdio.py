"""The stdio call against an empty one, start-up and memory; a part of ``scripts/bench append``."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

ROUNDS = 5
CALLS = 1_000
TEXT = "The thought of a model that explains what it holds true and why, at some length. " * 4

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


class Client:
    """A raw client: one line out, one line in."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        client = {"name": "bench", "version": "1"}
        opening: dict[str, object] = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": client,
        }
        self.ask("initialize", opening)
        self.seconds_to_answer = time.perf_counter() - self.started
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, object]) -> dict[str, Any]:
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
        assert not answer["result"].get("isError"), answer

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
def client_of(*arguments: str) -> Generator[Client]:
    client = Client([sys.executable, *arguments])
    try:
        yield client
    finally:
        client.close()


def bench_stdio(data_dir: str, admin: str, payload: bytes) -> None:
    """The call against an empty tool on the stock transport and a raw insert of *payload*."""
    ours_p50: list[float] = []
    ours_p99: list[float] = []
    stock_p50: list[float] = []
    raw_p50: list[float] = []
    worker_p50: list[float] = []
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
    mine, empty, insert = map(statistics.median, (ours_p50, stock_p50, raw_p50))
    print("stdio call, sequential")
    print(f"  sequentialthinking           p50 {ms(mine)}  p99 {ms(statistics.median(ours_p99))}")
    print(f"  the same beside its worker   p50 {ms(statistics.median(worker_p50))}")
    print(f"  empty tool on stock stdio    p50 {ms(empty)}")
    print(f"  raw INSERT commit            p50 {ms(insert)}")
    print(f"  ratio to stock + raw         {mine / (empty + insert):.2f}   (target <= 1.0)")


def latencies(call: Callable[[int], object], count: int) -> tuple[float, float]:
    """p50 and p99 in seconds."""
    taken: list[float] = []
    for number in range(2, count + 2):
        start = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - start)
    return percentiles(taken)


def bench_start(data_dir: str) -> None:
    starts: list[float] = []
    ends: list[float] = []
    resident: list[float] = []
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


def percentiles(taken: list[float]) -> tuple[float, float]:
    ordered = sorted(taken)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99) - 1]


def ms(seconds: float) -> str:
    return f"{seconds * 1_000:.2f} ms"
