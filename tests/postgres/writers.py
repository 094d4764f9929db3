"""Writers as tasks, and as processes: ``python -m tests.postgres.writers``.

A process waits for a line on its standard input, so that several begin together, and prints what
it was told as one JSON object.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Receipt
from ledger.database import Database
from ledger.header import Context
from ledger.settings import Settings
from ledger.thought import Thought

CHECKOUT = Path(__file__).parents[2]
SECONDS_MAX = 60


def a_thought(text: str = "t", number: int = 1, **said: Any) -> Thought:
    plain = {"text": text, "thought_number": number, "total_thoughts": 9}
    return Thought(**(plain | {"next_thought_needed": True} | said))


def count(chain: ThoughtChain) -> Mapping[str, Any]:
    """The answer of these writers."""
    return {"thoughts": chain.thought_count}


async def begin(ledger: Ledger, context: Context, chain_id: UUID) -> Receipt:
    return await ledger.begin(context, ThoughtChain.start(chain_id, title="t"), {})


async def write(
    ledger: Ledger, name: str, chain_ids: list[UUID], tasks: int, thoughts: int
) -> dict[str, int]:
    """Have *tasks* tasks think *thoughts* times each; the position of every text."""

    async def think(task: int) -> dict[str, int]:
        chain_id = chain_ids[task % len(chain_ids)]
        told = {}
        for number in range(thoughts):
            text = f"{name}/{task}/{number}"
            receipt = await ledger.think(Context(actor=name), chain_id, a_thought(text), count)
            assert receipt.position is not None
            told[text] = receipt.position
        return told

    parts = await asyncio.gather(*(think(task) for task in range(tasks)))
    return {text: position for part in parts for text, position in part.items()}


def spawn(url: str, name: str, *numbers: int, chain_ids: list[UUID]) -> subprocess.Popen[str]:
    """A process of writers that waits for ``go``."""
    ids = ",".join(map(str, chain_ids))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres.writers", url, name, ids, *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def go(processes: list[subprocess.Popen[str]]) -> list[dict[str, int]]:
    """Let them write at once, and return what each was told."""
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(each) for each in told]


async def main(url: str, name: str, ids: str, tasks: str, thoughts: str) -> None:
    with Database(Settings(database_url=url)) as database:
        async with Ledger(database) as ledger:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            chain_ids = [UUID(chain_id) for chain_id in ids.split(",")]
            print(json.dumps(await write(ledger, name, chain_ids, int(tasks), int(thoughts))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
