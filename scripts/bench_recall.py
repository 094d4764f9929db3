"""Measure recall: whether search finds what is alike, by words, by likeness and by both.

The reasoning traces beside the checkout are recorded without their titles, embedded by the real
process with the real model, and asked by the real search.
"""

import asyncio
import gzip
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any
from uuid import UUID

import bench_recall_filtered
from bench_project import REPOSITORY, database_of_its_own, worker_process
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.header import Context
from ledger.imports import import_traces
from ledger.traces import Operation, chain_id_of
from projections.embeddings.questions import QuestionEmbedder
from projections.live import LiveConnections
from projections.recall.filters import RecallFilter
from projections.recall.ranking import Strategy
from projections.recall.search import Recall

TRACES = REPOSITORY.parent / "shared" / "data" / "reasoning_traces.jsonl.gz"
SOLVED = "gsm8k_models"
FOUND = 10
SAMPLES, CHARACTERS_MIN = 200, 40
SIZES = (100, 1_000, 10_000, None)
EVERY = ("active", "completed", "paused", "abandoned")
POLL_SECONDS = 1.0
REBUILT = ("thoughts", "trust", "terms")

SELECT_EMBEDDED = """
    SELECT position >= (SELECT max(notification_id) FROM ledger.events), thoughts, embedded
      FROM vectors.spaces
     WHERE state = 'live'
"""


@dataclass(frozen=True, slots=True)
class Quality:
    """Of one question: recall and nDCG of the first FOUND rows, and the reciprocal rank."""

    recall: float
    ndcg: float
    reciprocal_rank: float


def main() -> None:
    """Run all of it; the second part on vectors that were made of those of the first."""
    if not TRACES.exists():
        sys.exit(f"scripts/bench recall: the reasoning traces are not there: {TRACES}")
    with database_of_its_own() as database:
        asyncio.run(_measure(database))
        vectors = bench_recall_filtered.stored_vectors(database)
    with database_of_its_own() as database:
        bench_recall_filtered.measure(database, vectors)


async def _measure(database: Database) -> None:
    traces = _traces()
    connections = LiveConnections(lambda: database.connector(Role.READER))
    recall = Recall(connections, QuestionEmbedder(connections))
    async with Ledger(database) as ledger:
        with worker_process(database):
            recorded: list[str] = []
            for size in SIZES:
                recorded += await _record_up_to(ledger, traces, recorded, size)
                await _embedded(database)
                await _print_exact(recall, traces, recorded)
            await _print_quality(recall, traces)
            await record(ledger, [_renamed(chain) for chain in traces.values()])
            before = await _embedded(database)
            _print_rebuilds(database, before)
            await _embedded(database, than=before)
    await connections.close()


# -- The traces -----------------------------------------------------------------------------------

Chain = list[dict[str, Any]]


def _traces() -> dict[str, Chain]:
    """The operations of each chain, without titles."""
    chains: dict[str, Chain] = {}
    with gzip.open(TRACES, "rt", encoding="utf-8", newline="\n") as lines:
        for line in lines:
            operation = json.loads(line)
            if operation["op"] == "start":
                operation["content"] = ""
            chains.setdefault(operation["chain"], []).append(operation)
    return chains


def _thoughts(chain: Chain) -> list[str]:
    return [each["content"] for each in chain if each["op"] in ("append", "branch", "revise")]


def _renamed(chain: Chain) -> Chain:
    return [{**operation, "chain": f"again {operation['chain']}"} for operation in chain]


async def _record_up_to(
    ledger: Ledger, traces: Mapping[str, Chain], known: Sequence[str], size: int | None
) -> list[str]:
    """Record more chains, by chance, until there are so many thoughts; which those were."""
    names = [name for name in sorted(traces) if name not in set(known)]
    random.Random(5).shuffle(names)
    count = sum(len(_thoughts(traces[name])) for name in known)
    more: list[str] = []
    for name in names:
        if size is not None and count >= size:
            break
        more.append(name)
        count += len(_thoughts(traces[name]))
    await record(ledger, [traces[name] for name in more])
    return more


async def record(ledger: Ledger, chains: Sequence[Chain], *, actor: str = "bench") -> None:
    """Record chains of operations by the import."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(operation) + "\n" for chain in chains for operation in chain)
        file.flush()
        context = Context(actor=actor, client="bench")
        await import_traces(ledger, context, Path(file.name), lambda _: None)


async def _embedded(database: Database, *, than: int | None = None) -> int:
    """Wait until all is; how many texts the model has been given, which may be as told."""
    start = time.perf_counter()
    with database.connector(Role.READER).connect() as reader:
        while True:
            rows = reader.execute(SELECT_EMBEDDED).fetchall() if _is_there(reader) else []
            if rows and rows[0][0]:
                break
            done = f"{rows[0][1]:,} thoughts" if rows else "waiting for the model"
            print(f"\rembedding: {done}", end="", file=sys.stderr, flush=True)
            await asyncio.sleep(POLL_SECONDS)
    ((_, thoughts, embedded),) = rows
    seconds = time.perf_counter() - start
    print(f"\r{thoughts:,} thoughts have vectors, made of {embedded:,} texts (+{seconds:.0f} s)")
    if than is not None and embedded != than:
        sys.exit(f"{embedded - than} texts were embedded again")
    return embedded


def _is_there(reader: Connection[TupleRow]) -> bool:
    row = reader.execute("SELECT to_regclass('vectors.spaces') IS NOT NULL").fetchone()
    return row is not None and row[0]


# -- The exact text -------------------------------------------------------------------------------


async def _print_exact(
    recall: Recall, traces: Mapping[str, Chain], recorded: Sequence[str]
) -> None:
    """Of texts by chance: how many find a chain that holds them first."""
    holders: dict[str, set[UUID]] = {}
    for name in recorded:
        for text in _thoughts(traces[name]):
            holders.setdefault(text, set()).add(id_of(traces[name]))
    long = sorted(text for text in holders if len(text) >= CHARACTERS_MIN)
    samples = random.Random(1).sample(long, min(SAMPLES, len(long)))
    count = sum(len(_thoughts(traces[name])) for name in recorded)
    for strategy in (Strategy.HYBRID, Strategy.TEXT):
        first, seconds, ways = 0, list[float](), set[str]()
        for text in samples:
            start = time.perf_counter()
            found = await recall.related(
                "default",
                text,
                RecallFilter(statuses=EVERY, limit=3),
                strategy=strategy,
                position=0,
            )
            seconds.append(time.perf_counter() - start)
            ways.add(str(found.how))
            first += bool(found.chains) and found.chains[0].id in holders[text]
        print(
            f"exact text among {count:,} thoughts, {strategy} ({', '.join(sorted(ways))}): "
            f"{first} of {len(samples)} first, p50 {median(seconds) * 1000:.0f} ms"
        )


def id_of(chain: Chain) -> UUID:
    """What the import calls it in the log."""
    start = chain[0]
    return chain_id_of(Operation(1, start["chain"], "start", start))


# -- Likeness -------------------------------------------------------------------------------------


async def _print_quality(recall: Recall, traces: Mapping[str, Chain]) -> None:
    """One solver's steps are asked for; the other solvers' chains of that problem are alike."""
    problems: dict[str, list[Chain]] = {}
    for name, chain in traces.items():
        if chain[0]["src"] == SOLVED:
            problems.setdefault("-".join(name.split("-")[:2]), []).append(chain)
    print(f"{sum(map(len, problems.values()))} questions among {len(traces):,} chains:")
    print(f"  {'':8} recall@{FOUND} nDCG@{FOUND}   MRR    p50 ms")
    for strategy in (Strategy.TEXT, Strategy.VECTOR, Strategy.HYBRID, Strategy.TIERED):
        results: list[Quality] = []
        seconds: list[float] = []
        for solved in problems.values():
            for chain in solved:
                start = time.perf_counter()
                results.append(await _ask(recall, strategy, chain, solved))
                seconds.append(time.perf_counter() - start)
        print(
            f"  {strategy:8} {fmean(each.recall for each in results):9.3f} "
            f"{fmean(each.ndcg for each in results):7.3f} "
            f"{fmean(each.reciprocal_rank for each in results):5.3f} {median(seconds) * 1000:9.0f}"
        )


async def _ask(
    recall: Recall, strategy: Strategy, chain: Chain, solved: Sequence[Chain]
) -> Quality:
    own = id_of(chain)
    relevant = {id_of(other) for other in solved} - {own}
    while True:
        found = await recall.related(
            "default",
            "\n".join(_thoughts(chain)),
            RecallFilter(statuses=EVERY, limit=FOUND + 1),
            strategy=strategy,
            position=0,
        )
        if found.because is None:
            break
        await asyncio.sleep(POLL_SECONDS)  # the model is busy; what it finds is the question here
    ranked = [row.id for row in found.chains if row.id != own][:FOUND]
    hits = [chain_id in relevant for chain_id in ranked]
    gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits))
    best = sum(1 / math.log2(rank + 2) for rank in range(len(relevant)))
    rank = next((rank for rank, hit in enumerate(hits, 1) if hit), math.inf)
    return Quality(sum(hits) / len(relevant), gain / best, 1 / rank)


# -- Rebuilds -------------------------------------------------------------------------------------


def _print_rebuilds(database: Database, embedded: int) -> None:
    for name in REBUILT:
        start = time.perf_counter()
        subprocess.run(
            _command(database, "projections", "rebuild", name, "--promote"),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        print(f"rebuilt and promoted {name}: {time.perf_counter() - start:.1f} s")
    print(f"texts embedded before the rebuilds: {embedded:,}; after:")


def _command(database: Database, *words: str) -> list[str]:
    assert database.embedded is not None
    where = f"--database-url={database.embedded.conninfo()}"
    return [sys.executable, "-m", "mcp_server", *words, where]


if __name__ == "__main__":
    main()
