"""What the tests of read models share: writing the log, building and following generations."""

import asyncio
import errno
import queue
import threading
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from psycopg import sql
from psycopg.rows import dict_row

from ledger.aggregate import ThoughtChain
from ledger.database import Connector, DatabaseUnavailableError, Role
from ledger.header import Context
from ledger.recorder import repository
from ledger.thought import Thought
from projections.follower import Follower
from projections.generations import build, ensure_live, take_lead
from projections.projection import Projection, Statement
from projections.session import configure
from projections.stopping import Stop
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.workers import Workers

SECONDS_MAX = 20
CONTEXT = Context(actor="ada", client="cursor")


REPOSITORY = Path(__file__).resolve().parent.parent.parent


class NextThoughts(Thoughts):
    version = Thoughts.version + 1


class NextTerms(Terms):
    version = Terms.version + 1


class Wider(Thoughts):
    """Has one column more, at the end."""

    version = Thoughts.version + 1

    def changes(self, batch):
        yield from super().changes(batch)
        yield Statement("UPDATE {schema}.thoughts SET added_here = 1 WHERE added_here IS NULL", {})


@contextmanager
def meanwhile(work):
    """``work(enough)`` in a thread, until the block ends and the event *enough* is set."""
    enough = threading.Event()
    thread = threading.Thread(target=work, args=(enough,))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()


class Faulty(Connector):
    """Fails as one without descriptors does, while it is told to; ``tried`` is set when it has."""

    def __init__(self, connector: Connector) -> None:
        super().__init__(connector.conninfo, self._revive)
        self.fails = False
        self.tried = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def connect_async(self):
        if self.fails:
            raise DatabaseUnavailableError("Too many open files")
        return await super().connect_async()

    def _revive(self) -> None:
        if self.fails:
            self._loop.call_soon_threadsafe(self.tried.set)
            raise OSError(errno.EMFILE, "Too many open files")

    async def fail_until_tried(self) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await self.tried.wait()
        self.fails = False


def thought(text: str = "because", number: int = 1, **fields) -> Thought:
    return Thought(
        text=text, thought_number=number, total_thoughts=9, next_thought_needed=True, **fields
    )


def record(connection, *chains: ThoughtChain) -> int:
    """Append what the chains decided since the last time; the position reached."""
    store = repository(connection, CONTEXT).event_store
    recordings = [recording for chain in chains for recording in store.put(chain.collect())]
    return recordings[-1].notification.id


def record_chain(connection, *texts: str) -> ThoughtChain:
    chain = ThoughtChain.start(uuid4(), title="which index?")
    for number, text in enumerate(texts, start=1):
        chain.add_thought(uuid4(), thought(text, number))
    record(connection, chain)
    return chain


def follow(connection, projection=None, *, number: int | None = None, said=None) -> Follower:
    """Lead a generation on *connection*: the live one, or a new one of that number."""
    projection = projection or Thoughts()
    configure(connection)
    generation = ensure_live(connection, projection)
    if number is not None:
        generation = build(connection, projection, number)
    assert take_lead(connection, generation)
    follower = Follower(
        connection, projection, generation, (said if said is not None else []).append
    )
    follower.lead()
    return follower


def catch_up(follower: Follower, limit: int = 500) -> None:
    while follower.step(limit):
        pass


def rows(connection, schema: str, table: str) -> list[dict]:
    """All rows of a table, in an order that does not depend on how they got there."""
    with connection.cursor(row_factory=dict_row) as cursor:
        statement = sql.SQL("SELECT * FROM {} ORDER BY 1").format(sql.Identifier(schema, table))
        return cursor.execute(statement).fetchall()


def tables(connection, schema: str) -> dict[str, list[dict]]:
    return {name: rows(connection, schema, name) for name in Thoughts.tables}


class RunningWorker:
    """The workers of one read model in a thread, and what they say."""

    def __init__(self, connector: Connector, projection: Projection, stop: Stop) -> None:
        self.said: queue.Queue[str] = queue.Queue()
        self.stop = stop
        workers = Workers(connector, [projection], stop, self.said.put)
        self.thread = threading.Thread(target=workers.run)

    def hear(self, words: str) -> str:
        """The next line it says with *words* in it."""
        while True:
            line = self.said.get(timeout=SECONDS_MAX)
            if words in line:
                return line


@contextmanager
def running_worker(database, projection=None):
    with Stop() as stop:
        connector = database.connector(Role.PROJECTOR)
        running = RunningWorker(connector, projection or Thoughts(), stop)
        running.thread.start()
        try:
            yield running
        finally:
            stop.set()
            running.thread.join(SECONDS_MAX)
            assert not running.thread.is_alive()
