"""Shoot hostile messages at a real server; it must answer all, go on, and record nothing half.

Exit code 0 when it does, 3 when it does not.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from fuzz_calls import Maker, Shot
from fuzz_http import HttpTarget
from fuzz_judge import Recorded, ViolationError, shown
from fuzz_wire import StdioTarget, Target, resident_mib

from ledger import log
from ledger.embedded import EmbeddedPostgres

VOLLEY = 40
RESIDENT_MIB_MAX = 512
PAGE_BYTES_MAX = 16 * 2**20
REPLAYED = 3
COMMAND = [sys.executable, "-m", "mcp_server"]
TOOLSETS = "compat,chains,critical,kodegen,memory"

SELECT_CHAINS = "SELECT originator_id FROM ledger.events WHERE topic = 'chain.started'"
COUNT_THOUGHTS = """
    SELECT count(*)
      FROM ledger.events
     WHERE topic IN ('thought.added', 'thought.revised', 'thought.branched')
"""


async def fuzz(target: Target, options: argparse.Namespace, recorded: Recorded) -> None:
    """All shots, then a chain of many branches, then a good call.  Raises ViolationError."""
    listed = await target.ask("tools/list", {})
    tools: list[dict[str, Any]] = listed["tools"]
    maker = Maker(options.seed, tools, modern=options.transport == "http")
    before = resident_mib(target.process)
    await shoot(target, maker, options.calls, recorded)
    await branch_out(target, maker, tools, options.branches, recorded)
    after = resident_mib(target.process)
    print(f"resident memory: {before:.0f} MiB before, {after:.0f} MiB after")
    if after > RESIDENT_MIB_MAX:
        raise ViolationError(f"it takes {after:.0f} MiB, more than {RESIDENT_MIB_MAX}")
    arguments = {"thought": "still here", "thoughtNumber": 1, "totalThoughts": 1}
    good = {"name": "sequentialthinking", "arguments": {**arguments, "nextThoughtNeeded": True}}
    result = await target.ask("tools/call", good)
    recorded.take(None, {"result": result})
    # What was answered late, before this call was.
    await target.fire([], maker, recorded)
    if result["structuredContent"]["thoughtNumber"] != 1:
        raise ViolationError(f"a good call is answered {shown(result)}")


async def shoot(target: Target, maker: Maker, calls: int, recorded: Recorded) -> None:
    sent, started = 0, time.monotonic()
    while sent < calls:
        shots: list[Shot] = []
        while len(shots) < min(VOLLEY, calls - sent):
            shots += maker.shots()
        await target.fire(shots, maker, recorded)
        sent += len(shots)
        if sent // 500 > (sent - len(shots)) // 500 or sent >= calls:
            print(f"{sent} sent, {dict(recorded.outcomes)}", flush=True)
    print(f"{sent} messages in {time.monotonic() - started:.1f} s")


async def branch_out(
    target: Target,
    maker: Maker,
    tools: list[dict[str, Any]],
    branches: int,
    recorded: Recorded,
) -> None:
    """Open many branches in one chain, then read it page by page."""
    names = {tool["name"] for tool in tools}
    if not {"branch_thought", "get_thought_chain"} <= names:
        print("no toolset that reads chains: no chain of many branches")
        return
    first = {"thought": "one", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": True}
    said = await target.ask("tools/call", {"name": "add_thought", "arguments": first})
    recorded.take(None, {"result": said})
    chain_id: str = said["structuredContent"]["chain_id"]
    started = time.monotonic()
    for numbers in _batches(branches):
        calls = [
            maker.call(
                "branch_thought",
                {
                    "chain_id": chain_id,
                    "from_thought_number": 1,
                    "branch_id": f"branch {number}",
                    "thought": "another way",
                },
            )
            for number in numbers
        ]
        await target.fire(calls, maker, recorded, fair=True)
    seconds = time.monotonic() - started
    pages, largest, read = await read_all(target, chain_id, branches + 1)
    print(
        f"{branches} branches in {seconds:.1f} s; read in {pages} pages of at most "
        f"{largest / 2**20:.2f} MiB in {read:.1f} s"
    )


async def read_all(target: Target, chain_id: str, thoughts: int) -> tuple[int, int, float]:
    """How many pages, the largest one's bytes, and the seconds.  Raises ViolationError."""
    seen, largest, pages, more = 0, 0, 0, {}
    started = time.monotonic()
    while True:
        arguments = {"chain_id": chain_id, **more}
        answer = await target.ask(
            "tools/call", {"name": "get_thought_chain", "arguments": arguments}
        )
        page = answer["structuredContent"]
        pages += 1
        seen += len(page["thoughts"])
        largest = max(largest, len(json.dumps(answer)))
        if "next" not in page:
            break
        more = {"from": page["next"]}
    if seen != thoughts or largest > PAGE_BYTES_MAX:
        raise ViolationError(f"{seen} thoughts in pages of up to {largest} bytes")
    return pages, largest, time.monotonic() - started


def _batches(count: int) -> list[range]:
    return [range(at, min(at + VOLLEY, count)) for at in range(0, count, VOLLEY)]


def check_log(data_dir: str, recorded: Recorded) -> None:
    """Verify every event, and count the thoughts.  Raises ViolationError."""
    with EmbeddedPostgres(Path(data_dir)) as server, psycopg.connect(server.conninfo()) as reader:
        chains = [chain_id for (chain_id,) in reader.execute(SELECT_CHAINS).fetchall()]
        events = sum(1 for chain_id in chains for _ in log.history(reader, chain_id))
        ((thoughts,),) = reader.execute(COUNT_THOUGHTS).fetchall()
    print(f"{len(chains)} chains, {events} events verified, {thoughts} thoughts recorded")
    if not recorded.thoughts <= thoughts <= recorded.thoughts + recorded.perhaps:
        raise ViolationError(
            f"answered as recorded: {recorded.thoughts} thoughts, and perhaps {recorded.perhaps}"
        )
    for chain_id in sorted(recorded.chain_ids & set(map(str, chains)))[:REPLAYED]:
        replay = [*COMMAND, "replay", chain_id, "--json", "--data-dir", data_dir]
        if subprocess.run(replay, capture_output=True, check=False).returncode != 0:
            raise ViolationError(f"chain {chain_id} does not replay")


async def run(options: argparse.Namespace, data_dir: str, recorded: Recorded) -> None:
    command = [*COMMAND, "serve", "--data-dir", data_dir, "--actor", "fuzz"]
    command += ["--toolsets", options.toolsets]
    http = options.transport == "http"
    target = HttpTarget(options.seed) if http else StdioTarget()
    try:
        await target.start([*command, "--transport", "http", "--port", "0"] if http else command)
        await fuzz(target, options, recorded)
        await end(target)
    except ViolationError as violation:
        violation.add_note("stderr: " + "".join(target.stderr)[-4_000:])
        raise
    finally:
        await target.kill()


async def end(target: Target) -> None:
    """End the server.  Raises ViolationError unless it ends well and has had no bug."""
    code = await target.end()
    if code != 0 or "Traceback" in "".join(target.stderr):
        raise ViolationError(f"exit code {code}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio")
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--branches", type=int, default=10_000)
    parser.add_argument("--toolsets", default=TOOLSETS)
    options = parser.parse_args()
    print(f"{options.calls} messages over {options.transport}, seed {options.seed}", flush=True)
    recorded = Recorded()
    with tempfile.TemporaryDirectory(prefix="tl-") as data_dir:
        try:
            asyncio.run(run(options, data_dir, recorded))
            check_log(data_dir, recorded)
        except ViolationError as violation:
            print(f"VIOLATION: {violation}", *getattr(violation, "__notes__", []), sep="\n")
            sys.exit(3)


if __name__ == "__main__":
    main()
