"""Measure search: texts taken up a second, and how long a question takes over how many of them."""

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from uuid import uuid4

from bench_project import copy_events
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.aggregate import ThoughtChain
from ledger.database import Database, Role
from ledger.events import ChainEvent
from ledger.header import Context
from ledger.settings import Settings
from ledger.thought import Thought
from projections.catalogue import ALL
from projections.embeddings.questions import QuestionEmbedder
from projections.follower import Follower
from projections.generations import ensure_live, take_lead
from projections.live import LiveConnections
from projections.projection import Projection
from projections.recall.filters import RecallFilter
from projections.recall.search import Recall
from projections.session import configure

WORDS = 30_000
WORDS_A_THOUGHT = 50
THOUGHTS_A_CHAIN = 20
SIZES = (10, 1_000, 50_000)
QUESTIONS = 21


def main() -> None:
    """Run all of it on servers of their own, in directories that are thrown away."""
    for size in SIZES:
        with (
            tempfile.TemporaryDirectory(prefix="tl-bench-", ignore_cleanup_errors=True) as data_dir,
            Database(Settings(data_dir=Path(data_dir))) as database,
        ):
            words = Words()
            connector = database.connector(Role.WRITER)
            with closing(connector.connect()) as writer:
                _fill(writer, words, size)
            for projection in ALL:
                _print_rate(database, projection, size)
            asyncio.run(_print_answers(database, words))


def _print_rate(database: Database, projection: Projection, size: int) -> None:
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        configure(connection)
        generation = ensure_live(connection, projection)
        assert take_lead(connection, generation)
        follower = Follower(connection, projection, generation)
        follower.lead()
        start = time.perf_counter()
        events = 0
        while applied := follower.step():
            events += applied
        rate = events / (time.perf_counter() - start)
        print(f"{size:,} thoughts of {WORDS_A_THOUGHT} words: {rate:,.0f} events/s into ", end="")
        print(projection.name)


async def _print_answers(database: Database, words: "Words") -> None:
    connections = LiveConnections(lambda: database.connector(Role.READER))
    search = Recall(connections, QuestionEmbedder(connections))
    wanted = RecallFilter(statuses=("active", "completed"), limit=10)
    questions = {
        "four words": [words.text(4) for _ in range(QUESTIONS)],
        "a text of the length of a thought": [words.text(50) for _ in range(QUESTIONS)],
        "the commonest word": [words.common(1)] * QUESTIONS,
        "the 64 commonest words": [words.common(64)] * QUESTIONS,
    }
    for kind, queries in questions.items():
        seconds: list[float] = []
        for query in queries:
            start = time.perf_counter()
            await search.related("default", query, wanted, position=0)
            seconds.append(time.perf_counter() - start)
        p50, slowest = statistics.median(seconds) * 1000, max(seconds) * 1000
        print(f"  {kind}: p50 {p50:.1f} ms, slowest {slowest:.1f} ms")
    await connections.close()


class Words:
    """Texts of words as common as those of a language: the n-th is said 1/n times as often."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        letters = "etaoinshrdlu"
        self._words = [
            "".join(self._random.choices(letters, k=2 + min(n, 20_000).bit_length() // 2))
            for n in range(WORDS)
        ]
        self._weights = list(accumulate(1 / n for n in range(1, WORDS + 1)))

    def text(self, words: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=words))

    def common(self, words: int) -> str:
        return " ".join(self._words[:words])


def _fill(writer: Connection[TupleRow], words: Words, size: int) -> None:
    copy_events(writer, _events(words, size), Context(actor="bench", client="bench"))


def _events(words: Words, size: int) -> Iterator[ChainEvent]:
    for first in range(0, size, THOUGHTS_A_CHAIN):
        chain = ThoughtChain.start(uuid4(), title=words.text(6))
        for number in range(1, min(THOUGHTS_A_CHAIN, size - first) + 1):
            chain.add_thought(
                uuid4(),
                Thought(
                    text=words.text(WORDS_A_THOUGHT),
                    thought_number=number,
                    total_thoughts=THOUGHTS_A_CHAIN,
                    next_thought_needed=True,
                ),
            )
        yield from chain.collect()


if __name__ == "__main__":
    main()
