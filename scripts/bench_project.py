"""Measure the read models: events applied a second, and how soon after its append one is seen.

Each rate is set beside a COPY of the same rows into an equal table in the same run, for the
machine's speed is in both.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.events import ChainEvent
from ledger.header import Context
from ledger.serialization import store
from ledger.settings import Settings
from ledger.thought import Thought
from projections.follower import Follower
from projections.generations import ensure_live, take_lead
from projections.session import configure
from projections.thoughts import COLUMNS, Thoughts
from projections.wait import PositionWaiter, wait_for

BACKLOG_EVENTS = 100_000
THOUGHT_CHARACTERS = 300
CHAINS_AT_ONCE = 64
LAG_SECONDS = 8
LOADS = ((20, 1), (1_500, 32))
REPOSITORY = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run all of it on a server of its own, in a directory that is thrown away."""
    for mixed in (False, True):
        with database_of_its_own() as database:
            _print_rates(database, mixed=mixed)
    for per_second, tasks in LOADS:
        with database_of_its_own() as database, worker_process(database):
            asyncio.run(_print_lag(database, per_second, tasks))


# -- Events a second ------------------------------------------------------------------------------


def _print_rates(database: Database, *, mixed: bool) -> None:
    with closing(psycopg.connect(database.conninfo(Role.WRITER), autocommit=True)) as writer:
        fill(writer, mixed=mixed)
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        configure(connection)
        generation = ensure_live(connection, Thoughts())
        assert take_lead(connection, generation)
        follower = Follower(connection, Thoughts(), generation)
        follower.lead()
        start = time.perf_counter()
        while follower.step():
            pass
        applied = BACKLOG_EVENTS / (time.perf_counter() - start)
        rows, seconds = copy_again(connection, generation.schema, "thoughts", COLUMNS)
    kind = "thoughts with chain events" if mixed else "thoughts"
    print(f"backlog of {BACKLOG_EVENTS:,} events, {kind}: {applied:,.0f} events/s into the read")
    print(
        f"  models; COPY of the {rows:,} thoughts into an equal table: {rows / seconds:,.0f} rows/s"
    )


def fill(writer: Connection[TupleRow], *, mixed: bool) -> None:
    """Write BACKLOG_EVENTS events straight into the log."""
    copy_events(writer, islice(_events(mixed=mixed), BACKLOG_EVENTS), Context(actor="bench"))


def copy_events(
    writer: Connection[TupleRow], events: Iterable[ChainEvent], context: Context
) -> None:
    """Write events straight into the log."""
    statement = """
        COPY ledger.events (
            originator_id, originator_version, topic, state, recorded_at, actor
        ) FROM STDIN
    """
    with writer.cursor() as cursor, cursor.copy(statement) as copy:
        for event in events:
            stored = store(event, context)
            copy.write_row(
                (
                    stored.originator_id,
                    stored.originator_version,
                    stored.topic,
                    stored.state,
                    event.timestamp,
                    context.actor,
                )
            )


def _events(*, mixed: bool) -> Iterator[ChainEvent]:
    """Chains take turns; *mixed*: one event in four is not a thought, and some are revised."""
    chains: list[ThoughtChain] = []
    for number in range(BACKLOG_EVENTS):
        if len(chains) < CHAINS_AT_ONCE:
            chains.append(ThoughtChain.start(uuid4(), title="which index?"))
        chain = chains[number % CHAINS_AT_ONCE % len(chains)]
        round_ = number // CHAINS_AT_ONCE
        if mixed and round_ % 10 == 9 and chain.steps:
            chain.abandon_thought(chain.steps.recorded[-1].thought_id)
        elif mixed and round_ % 10 in (3, 6):
            chain.pause()
            chain.resume()
        chain.add_thought(
            uuid4(), new_thought(chain.thought_count + 1, revises=mixed and round_ % 7 == 6)
        )
        yield from chain.collect()


def new_thought(number: int, *, revises: bool = False) -> Thought:
    return Thought(
        text=f"{number} because ".ljust(THOUGHT_CHARACTERS, "x"),
        thought_number=number,
        total_thoughts=number + 1,
        next_thought_needed=True,
        is_revision=revises,
        revises_thought_number=number - 1 if revises else None,
    )


def copy_again(
    connection: Connection[TupleRow], schema: str, table: str, columns: Mapping[str, str]
) -> tuple[int, float]:
    """COPY the rows of a table into an equal one; how many rows, in how many seconds."""
    names = {
        "table": sql.Identifier(schema, table),
        "equal": sql.Identifier(schema, f"{table}_again"),
        "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
    }
    rows = connection.execute(sql.SQL("SELECT {columns} FROM {table}").format(**names)).fetchall()
    connection.execute(sql.SQL("CREATE TABLE {equal} (LIKE {table} INCLUDING ALL)").format(**names))
    statement = sql.SQL("COPY {equal} ({columns}) FROM STDIN (FORMAT binary)")
    start = time.perf_counter()
    with connection.cursor() as cursor, cursor.copy(statement.format(**names)) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)
    return len(rows), time.perf_counter() - start


# -- Lag ------------------------------------------------------------------------------------------


async def _print_lag(database: Database, per_second: int, tasks: int) -> None:
    """Appends at a steady rate by *tasks* tasks, each on a chain of its own."""
    waiter = PositionWaiter(database.connector(Role.READER), "thoughts")
    async with Ledger(database) as ledger:
        lags: list[float] = []
        async with asyncio.TaskGroup() as group:
            for number in range(tasks):
                delay = number / per_second
                group.create_task(_think(ledger, waiter, delay, tasks / per_second, lags))
    await waiter.close()
    lags.sort()
    p50, p99 = (lags[int(len(lags) * share)] * 1000 for share in (0.5, 0.99))
    print(
        f"lag at {per_second:,}/s, append acknowledged to seen by a waiting reader: "
        f"p50 {p50:.2f} ms, p99 {p99:.2f} ms ({len(lags) / LAG_SECONDS:,.0f}/s reached)"
    )


async def _think(
    ledger: Ledger, waiter: PositionWaiter, delay: float, period: float, lags: list[float]
) -> None:
    context = Context(actor="bench")
    start = time.perf_counter() + 0.5 + delay
    receipt = await ledger.begin_thinking(context, None, new_thought(1), lambda _: {})
    seen: set[asyncio.Task[None]] = set()
    for turn in range(int(LAG_SECONDS / period)):
        await asyncio.sleep(start + turn * period - time.perf_counter())
        receipt = await ledger.think(context, receipt.chain_id, new_thought(turn + 2), lambda _: {})
        acknowledged = time.perf_counter()
        seen.add(asyncio.create_task(_see(waiter, receipt.position or 0, acknowledged, lags)))
    await asyncio.gather(*seen)


async def _see(
    waiter: PositionWaiter, position: int, acknowledged: float, lags: list[float]
) -> None:
    if not await waiter.wait(position, 60):
        raise TimeoutError
    lags.append(time.perf_counter() - acknowledged)


# -- A database, and a worker in its own process --------------------------------------------------


@contextmanager
def database_of_its_own() -> Generator[Database]:
    """An embedded server in a directory that is thrown away."""
    with (
        tempfile.TemporaryDirectory(prefix="tl-bench-", ignore_cleanup_errors=True) as data_dir,
        Database(Settings(data_dir=Path(data_dir))) as database,
    ):
        yield database


@contextmanager
def worker_process(database: Database) -> Generator[None]:
    """A worker for all read models, once they are there."""
    assert database.embedded is not None
    command = [sys.executable, "-m", "projections", "run", "--until-eof"]
    url = f"--database-url={database.embedded.conninfo()}"
    with (
        subprocess.Popen([*command, url], stdin=subprocess.PIPE, cwd=REPOSITORY) as process,
        closing(database.connector(Role.READER).connect()) as reader,
    ):
        assert process.stdin is not None
        try:
            wait_for(reader, "thoughts", 0, 30)
            yield
        finally:
            process.stdin.close()


if __name__ == "__main__":
    main()
