"""Backfill against the model's own best rate, and appends with and without it, in one run.

Baseline of the backfill: the same texts through the same model, all sorted by length, in the best
size of batch.  Appends are one task's, at full speed (embedding stands aside for those) and at an
agent's pace; beside them a real embedding process works through what is in the log.  Rounds
alternate, and medians are printed, because machines are noisy.
"""

import asyncio
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from bench_append import CONTEXT, drive, percentiles, thinker
from bench_stdio import ms

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Connector, Database, Role
from ledger.recorder import repository
from ledger.settings import Settings
from ledger.thought import Thought
from projections.embeddings import status
from projections.embeddings.choice import DEFAULT, Choice
from projections.embeddings.embedder import Embedder
from projections.embeddings.loading import load
from projections.embeddings.model import Model
from projections.stopping import Stop

ROUNDS = 3
TEXTS = 1_024
LOAD_TEXTS = 12_000
CHAIN_THOUGHTS = 25
BATCHES = (4, 8, 16, 32)
READY_SECONDS_MAX = 180.0
PACE = 50
PACED = 400
WORDS = (
    "the a so that we then because index table migration step problem answer total cost each half "
    "number first check wrong right instead branch value left more than two three twelve sum so "
    "far suppose column query lock writer reader therefore contradiction remains option safer "
    "slower"
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tl-") as data_dir:
        settings = Settings(data_dir=Path(data_dir))
        with Database(settings) as database:
            connector = database.connector(Role.PROJECTOR)
            record(database, made_texts(TEXTS, seed=1))
            bench_backfill(connector, load(DEFAULT))
            record(database, made_texts(LOAD_TEXTS, seed=2))
            asyncio.run(bench_appends(database, connector, data_dir))


# -- Backfill -------------------------------------------------------------------------------------


def bench_backfill(connector: Connector, model: Model) -> None:
    texts = sorted(made_texts(TEXTS, seed=1), key=len)
    model.embed(texts[:8])
    rates: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    worst = dict.fromkeys(BATCHES, 0.0)
    backfilled: list[float] = []
    for _ in range(ROUNDS):
        for batch in BATCHES:
            rate, longest = own_rate(model, texts, batch)
            rates[batch].append(rate)
            worst[batch] = max(worst[batch], longest)
        backfilled.append(backfill_rate(connector, model))
    print(f"{model.identity.model}, {TEXTS:,} texts, each another")
    for batch in BATCHES:
        print(
            f"  batches of {batch:>2}   {statistics.median(rates[batch]):>5,.0f} texts/s   "
            f"longest {ms(worst[batch])}"
        )
    best = max(statistics.median(found) for found in rates.values())
    rate = statistics.median(backfilled)
    print(
        f"  backfill        {rate:>5,.0f} texts/s   of the best {rate / best:.2f} (target >= 0.9)"
    )


def own_rate(model: Model, texts: Sequence[str], batch: int) -> tuple[float, float]:
    longest = 0.0
    start = time.perf_counter()
    for first in range(0, len(texts), batch):
        began = time.perf_counter()
        model.embed(texts[first : first + batch])
        longest = max(longest, time.perf_counter() - began)
    return len(texts) / (time.perf_counter() - start), longest


def backfill_rate(connector: Connector, model: Model) -> float:
    """From the log to stored vectors with their indexes, on one session."""
    with connector.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS vectors CASCADE")
        with Stop() as stop:
            start = time.perf_counter()
            embedder = Embedder(
                connector, Choice(DEFAULT), lambda _: model, stop, idle_seconds_max=0.0
            )
            assert embedder.run()
            seconds = time.perf_counter() - start
        found = status.look(connection)
        assert found.thoughts == TEXTS, found
    return found.embedded / seconds


# -- Appends --------------------------------------------------------------------------------------


async def bench_appends(database: Database, connector: Connector, data_dir: str) -> None:
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    rates: list[float] = []
    async with Ledger(database) as ledger:
        await drive(thinker(ledger), 1)
        for _ in range(ROUNDS):
            for name, measured in MEASURED.items():
                found[name, "alone"].append(await measured(ledger))
            with embedding(connector, data_dir):
                for name, measured in MEASURED.items():
                    found[name, "embedding beside"].append(await measured(ledger))
                after = look(connector)
            assert after.behind, "the load ran out; record more texts"
            rates.append(after.rate or 0.0)
    print("appends, one task")
    for (name, beside), rows in sorted(found.items()):
        rate, p50, p99 = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"  {name:<14} {beside:<16} {rate:>6,.0f}/s   p50 {ms(p50)}   p99 {ms(p99)}")
    print(f"  beside those at a pace {statistics.median(rates):,.0f} texts/s were embedded")


async def as_fast_as_it_can(ledger: Ledger) -> tuple[float, float, float]:
    return await drive(thinker(ledger), 1)


async def at_a_pace(ledger: Ledger) -> tuple[float, float, float]:
    """Events a second, p50 and p99 seconds of appends that come as agents' do."""
    step, _ = await thinker(ledger)()
    taken: list[float] = []
    begin = time.perf_counter()
    for _ in range(PACED):
        await asyncio.sleep(1 / PACE)
        start = time.perf_counter()
        await step()
        taken.append(time.perf_counter() - start)
    return PACED / (time.perf_counter() - begin), *percentiles(taken)


MEASURED = {"at full speed": as_fast_as_it_can, "at a pace": at_a_pace}


@contextmanager
def embedding(connector: Connector, data_dir: str) -> Generator[None]:
    """An embedding process in the middle of its work."""
    command = (sys.executable, "-m", "projections", "embed", "--data-dir", data_dir)
    with subprocess.Popen(command) as process:
        try:
            wait_until_it_works(connector)
            yield
        finally:
            process.terminate()
            process.wait()


def wait_until_it_works(connector: Connector) -> None:
    before = look(connector).embedded
    deadline = time.monotonic() + READY_SECONDS_MAX
    while look(connector).embedded == before:
        assert time.monotonic() < deadline, look(connector)
        time.sleep(0.1)


def look(connector: Connector) -> status.EmbeddingStatus:
    with connector.connect() as connection:
        return status.look(connection)


# -- Texts ----------------------------------------------------------------------------------------


def made_texts(count: int, *, seed: int) -> list[str]:
    """The same each run, as long as real thoughts: half under 11 words, one in ten over 35."""
    chosen, words = random.Random(seed), WORDS.split()
    lengths = [round(chosen.lognormvariate(2.3, 1)) for _ in range(count)]
    return [
        " ".join((f"{seed}.{number}", *chosen.choices(words, k=length)))
        for number, length in enumerate(lengths)
    ]


def record(database: Database, texts: Sequence[str]) -> None:
    with database.connector(Role.WRITER).connect() as connection:
        store = repository(connection, CONTEXT).event_store
        for first in range(0, len(texts), CHAIN_THOUGHTS):
            chain = ThoughtChain.start(uuid4(), title="bench")
            for number, text in enumerate(texts[first : first + CHAIN_THOUGHTS], start=1):
                chain.add_thought(
                    uuid4(),
                    Thought(
                        text=text,
                        thought_number=number,
                        total_thoughts=CHAIN_THOUGHTS,
                        next_thought_needed=True,
                    ),
                )
            store.put(chain.collect())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
