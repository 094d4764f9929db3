"""Many agents on a few chains over HTTP; at the end the log must hold what they were answered.

Prints a table and a line of JSON.  Exit code 0 when all is well, 3 when it is not.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from soak_agents import Client, Orders, Report, name_of, run_agents, text_of, token_of

from ledger import log
from ledger.embedded import EmbeddedPostgres
from ledger.events import ThoughtRecorded

CLIENT_PROCESSES = 2
START_SECONDS_MAX = 60
END_SECONDS_MAX = 20
SAMPLES_COMPARED = 10
# The chains of a run are in memory without their texts, so that it grows a little.
GROWTH_MIB_MAX = 48.0
PAGE_EVENTS = 500


@dataclass
class Server:
    """A server that listens, and its memory second by second."""

    process: subprocess.Popen[bytes]
    port: int
    resident_mib: list[float]


@contextmanager
def serving(data_dir: Path, agents: int) -> Generator[Server]:
    """The real server with its worker; ended by SIGTERM."""
    tokens = data_dir / "tokens"
    tokens.touch(mode=0o600)
    lines = (f"{name_of(agent)} read,write {token_of(agent)}\n" for agent in range(agents))
    tokens.write_text("".join(lines))
    command = [sys.executable, "-m", "mcp_server", "serve", "--transport", "http", "--port", "0"]
    command += ["--data-dir", str(data_dir / "data"), "--toolsets", "compat,chains"]
    said = data_dir / "stderr"
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "--tokens-file", str(tokens)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    stopping = threading.Event()
    server = Server(process, _port_of(process, said), [])
    sampler = threading.Thread(target=_sample, args=(server, stopping))
    sampler.start()
    try:
        yield server
        stopping.set()
        process.terminate()
        code = process.wait(END_SECONDS_MAX)
        if code != 0 or said.read_text().count("\n") != 1:
            raise RuntimeError(f"the server ended with {code}: {said.read_text()}")
    finally:
        stopping.set()
        sampler.join()
        process.kill()
        process.wait()


def _port_of(process: subprocess.Popen[bytes], said: Path) -> int:
    never = threading.Event()
    for _ in range(START_SECONDS_MAX * 10):
        if found := re.search(r"listening on http://[^/]*:(\d+)", said.read_text()):
            return int(found[1])
        if process.poll() is not None:
            break
        never.wait(0.1)
    process.kill()
    raise RuntimeError(f"the server does not listen: {said.read_text()}")


def _sample(server: Server, stopping: threading.Event) -> None:
    while not stopping.wait(1):
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        server.resident_mib.append(int(status.split("VmRSS:")[1].split()[0]) / 1024)


async def start_chains(port: int, chains: int) -> list[str]:
    client = Client(port, 0)
    started = [await client.call("start_thought_chain", title=f"soak {n}") for n in range(chains)]
    client.close()
    return [result["structuredContent"]["chain_id"] for result in started]


async def think_without_chain_ids(port: int) -> list[str]:
    """What is wrong when two clients, one of each era, name no chain."""
    clients = [Client(port, agent) for agent in (0, 1)]
    thought: dict[str, object] = {"totalThoughts": 2, "nextThoughtNeeded": True, "thought": "mine"}
    wrong: list[str] = []
    for tool in ("sequentialthinking", "add_thought"):
        chain_ids: set[str] = set()
        for _ in range(2):
            for client in clients:
                first = await client.call(tool, thoughtNumber=1, **thought)
                chain_ids.add(first["structuredContent"]["chain_id"])
                second = await client.call(tool, thoughtNumber=2, **thought)
                if not second.get("isError"):
                    wrong.append(f"{tool}: a thought 2 without chain_id is answered {second}")
        if len(chain_ids) != 4:
            wrong.append(f"{tool}: four first thoughts made {len(chain_ids)} chains")
    for client in clients:
        client.close()
    return wrong


def compare_with_log(data_dir: Path, chain_ids: list[str], reports: list[Report]) -> list[str]:
    """What is in the log and was not answered so, or the other way round."""
    answered = [thought for report in reports for thought in report.thoughts]
    wrong = [sentence for report in reports for sentence in report.wrong]
    recorded: list[tuple[str, int, str]] = []
    numbers: Counter[str] = Counter()
    for actor, text, chain_id in _thoughts(data_dir, set(chain_ids)):
        name, number = re.match(r"(\S+) thinks (\d+):", text).groups()  # pyright: ignore[reportOptionalMemberAccess] - ours all begin so
        if actor != name or text != text_of(name, int(number)):
            wrong.append(f"{text[:40]!r} is under {actor}")
        if int(number) <= numbers[name]:
            wrong.append(f"{name} {number} comes after {numbers[name]}")
        numbers[name] = int(number)
        recorded.append((name, int(number), chain_id))
    twice = [thought for thought, times in Counter(recorded).items() if times != 1]
    unpaired = set(answered) ^ set(recorded)
    wrong += [f"{thought} is in the log more than once" for thought in twice]
    wrong += [f"{thought} is only in one of log and answers" for thought in unpaired]
    return wrong


def _thoughts(data_dir: Path, chain_ids: set[str]) -> Generator[tuple[str, str, str]]:
    """Actor, text and chain of each thought in these chains, in the order of the log."""
    with EmbeddedPostgres(data_dir) as postgres, psycopg.connect(postgres.conninfo()) as reader:
        after = 0
        while page := log.read(reader, after=after, limit=PAGE_EVENTS):
            after = page[-1].position
            for recorded in page:
                event = recorded.event
                chain_id = str(event.originator_id)
                if isinstance(event, ThoughtRecorded) and chain_id in chain_ids:
                    yield recorded.header.actor, event.text, chain_id


def figures(seconds: float, reports: list[Report], server: Server) -> dict[str, Any]:
    writes = sorted(taken for report in reports for taken in report.writes)
    reads = sorted(taken for report in reports for taken in report.reads)
    memory = server.resident_mib
    return {
        "seconds": seconds,
        "load_average": os.getloadavg()[0],
        "thoughts": len(writes),
        "thoughts_per_second": round(len(writes) / seconds, 1),
        "write_p50_ms": _ms(writes, 0.5),
        "write_p99_ms": _ms(writes, 0.99),
        "reads": len(reads),
        "read_p50_ms": _ms(reads, 0.5),
        "read_p99_ms": _ms(reads, 0.99),
        "resident_mib_first": round(statistics.mean(memory[:SAMPLES_COMPARED]), 1),
        "resident_mib_last": round(statistics.mean(memory[-SAMPLES_COMPARED:]), 1),
    }


def _ms(ordered: list[float], share: float) -> float:
    return round(ordered[int(len(ordered) * share)] * 1_000, 2) if ordered else 0.0


def soak(options: argparse.Namespace, data_dir: Path) -> list[str]:
    with serving(data_dir, max(options.agents, 2)) as server:
        chain_ids = asyncio.run(start_chains(server.port, options.chains))
        wrong = asyncio.run(think_without_chain_ids(server.port))
        server.resident_mib.clear()
        groups = [list(range(one, options.agents, CLIENT_PROCESSES)) for one in (0, 1)]
        orders = [
            Orders(server.port, group, chain_ids, options.seconds, options.seed) for group in groups
        ]
        with ProcessPoolExecutor(CLIENT_PROCESSES) as pool:
            reports = list(pool.map(run_agents, orders))
        found = figures(options.seconds, reports, server)
        wrong += compare_with_log(data_dir / "data", chain_ids, reports)
    growth = found["resident_mib_last"] - found["resident_mib_first"]
    if growth > GROWTH_MIB_MAX:
        wrong.append(f"its memory grew by {growth:.0f} MiB")
    for name, value in found.items():
        print(f"{name.replace('_', ' '):22}{value:>12,.2f}")
    print(json.dumps({**found, "wrong": len(wrong)}))
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tl-") as data_dir:
        wrong = soak(options, Path(data_dir))
    for sentence in wrong[:20]:
        print(f"WRONG: {sentence[:500]}")
    sys.exit(3 if wrong else 0)


if __name__ == "__main__":
    main()
