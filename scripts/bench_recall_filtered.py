"""The second part of ``scripts/bench recall``: 50,000 vectors, and filters of every width.

The vectors are those of the recorded thoughts and, where these run out, of the same moved a little.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from statistics import fmean, median
from uuid import UUID, uuid4

from bench_project import copy_events, new_thought
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.aggregate import ThoughtChain
from ledger.database import Database, Role
from ledger.events import ChainEvent, ThoughtRecorded
from ledger.header import Context
from projections.catalogue import ALL
from projections.embeddings.model import Identity
from projections.embeddings.questions import QuestionVector
from projections.embeddings.schema import ensure_schema
from projections.embeddings.spaces import index_neighbours, space_for
from projections.live import LiveConnections
from projections.recall.filters import Bounds, RecallFilter
from projections.recall.likeness import EXACT_THOUGHTS_MAX, SETTINGS, Likeness
from projections.workers import catch_up_all

VECTORS = 50_000
SHARES = {"0.1 %": 0.001, "2 %": 0.02, "17 %": 0.17, "80 %": 0.80}
THOUGHTS_A_CHAIN = 20
QUESTIONS = 100
WANTED = 10
MOVED = 0.035
CATCH_UP_SECONDS_MAX = 600.0

Vector = list[float]

SELECT_TRUTH = """
    SELECT position
      FROM vectors.thoughts_1
     WHERE tenant = %(tenant)s
     ORDER BY vector <=> %(vector)s::vector, position DESC
     LIMIT %(wanted)s
"""


def stored_vectors(database: Database) -> list[Vector]:
    """The vectors of all different texts that were embedded."""
    with closing(database.connector(Role.READER).connect()) as reader:
        rows = reader.execute(
            "SELECT DISTINCT ON (content_hash) vector::real[] FROM vectors.thoughts_1"
        ).fetchall()
    return [list(vector) for (vector,) in rows]


def measure(database: Database, vectors: Sequence[Vector]) -> None:
    """Make the thoughts of five tenants and ask among those of four of them."""
    made = list(_made(vectors))
    _record(database, made)
    asyncio.run(_print_all(database, made))


def _made(vectors: Sequence[Vector]) -> Iterator[Vector]:
    chance = random.Random(9)
    shuffled = chance.sample(list(vectors), len(vectors))[:VECTORS]
    yield from shuffled
    for number in range(VECTORS - len(shuffled)):
        yield _moved(chance, shuffled[number % len(shuffled)], MOVED)


def _moved(chance: random.Random, vector: Vector, by: float) -> Vector:
    moved = [value + chance.gauss(0, by) for value in vector]
    length = math.sqrt(sum(value * value for value in moved))
    return [value / length for value in moved]


def _text(vector: Vector) -> str:
    return f"[{','.join(f'{value:.9g}' for value in vector)}]"


def _record(database: Database, vectors: Sequence[Vector]) -> None:
    """Write chains straight into the log, have them folded, and give their thoughts the vectors."""
    sizes = {tenant: round(share * len(vectors)) for tenant, share in SHARES.items()}
    sizes["rest"] = len(vectors) - sum(sizes.values())
    with closing(database.connector(Role.WRITER).connect()) as writer:
        thoughts = list(_thoughts(writer, sizes))
    connector = database.connector(Role.PROJECTOR)
    assert catch_up_all(connector, ALL, CATCH_UP_SECONDS_MAX) == []
    with closing(connector.connect()) as connection:
        connection.execute("SET statement_timeout = 0")
        ensure_schema(connection)
        identity = Identity(
            model="made", revision="made", dimensions=len(vectors[0]), normalised=True
        )
        space = space_for(connection, identity, "made")
        statement = """
            COPY vectors.thoughts_1 (position, tenant, chain_id, thought_id, content_hash, vector)
            FROM STDIN
        """
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for position, (thought, vector) in enumerate(zip(thoughts, vectors, strict=True), 1):
                copy.write_row((position, *thought, uuid4().bytes, _text(vector)))
        start = time.perf_counter()
        index_neighbours(connection, space)
        connection.execute("ANALYZE vectors.thoughts_1")
        print(f"index of {len(vectors):,} vectors: {time.perf_counter() - start:.1f} s")


def _thoughts(
    writer: Connection[TupleRow], sizes: dict[str, int]
) -> Iterator[tuple[str, UUID, UUID]]:
    for tenant, size in sizes.items():
        events: list[ChainEvent] = []
        for first in range(0, size, THOUGHTS_A_CHAIN):
            chain = ThoughtChain.start(uuid4(), title="")
            for number in range(1, min(THOUGHTS_A_CHAIN, size - first) + 1):
                chain.add_thought(uuid4(), new_thought(number))
            events += chain.collect()
        copy_events(writer, events, Context(actor="bench", tenant=tenant))
        for event in events:
            if isinstance(event, ThoughtRecorded):
                yield tenant, event.originator_id, event.thought_id


async def _print_all(database: Database, vectors: Sequence[Vector]) -> None:
    chance = random.Random(3)
    questions = [_moved(chance, chance.choice(vectors), 0.02) for _ in range(QUESTIONS)]
    connections = LiveConnections(lambda: database.connector(Role.READER))
    reader = connections.reader
    settings = {"names": list(SETTINGS), "values": list(SETTINGS.values())}
    await reader.fetch(
        "SELECT count(set_config(name, value, false)) "
        "FROM unnest(%(names)s::text[], %(values)s::text[]) AS setting (name, value)",
        settings,
    )
    print(f"the {WANTED} nearest of a tenant's, with the vector given:")
    for exact_max in (EXACT_THOUGHTS_MAX, 0, VECTORS):
        way = {EXACT_THOUGHTS_MAX: "as shipped", 0: "by index", VECTORS: "each compared"}[exact_max]
        for tenant, share in SHARES.items():
            found: list[float] = []
            rows: list[int] = []
            seconds: list[float] = []
            for vector in questions:
                text = _text(vector)
                likeness = Likeness(reader, QuestionVector(1, len(vector), text), exact_max)
                start = time.perf_counter()
                near = await likeness.nearest(
                    tenant, RecallFilter(statuses=("active", "completed")), WANTED, Bounds()
                )
                seconds.append(time.perf_counter() - start)
                asked = {"tenant": tenant, "vector": text, "wanted": WANTED}
                truth = {position for (position,) in await reader.fetch(SELECT_TRUTH, asked)}
                found.append(len(truth & {each.position for each in near}) / len(truth))
                rows.append(len(near))
            print(
                f"  {way:13} {tenant:>5} ({share * len(vectors):>6,.0f} rows): "
                f"recall@{WANTED} {fmean(found):.4f}, rows {min(rows)} to {max(rows)}, "
                f"p50 {median(seconds) * 1000:.1f} ms, slowest {max(seconds) * 1000:.1f} ms"
            )
    await connections.close()
