"""What the tests of embedding share: running the process' work, and what must come of it."""

import asyncio
import hashlib
import threading
from contextlib import asynccontextmanager, contextmanager

from psycopg import sql

from ledger import log
from ledger.database import Role
from ledger.events import ThoughtRecorded
from projections.embeddings.choice import Choice
from projections.embeddings.embedder import Embedder
from projections.embeddings.hashing import HashingModel
from projections.embeddings.loading import load
from projections.embeddings.model import as_text
from projections.embeddings.questions import QuestionEmbedder, QuestionVector
from projections.live import LiveConnections
from projections.stopping import Stop
from projections.text import shown
from tests.postgres.projecting import SECONDS_MAX

MODEL = "hashing:16"
READ_MAX = 100_000


class Gated(HashingModel):
    """Embeds nothing until its gate is opened; ``tried`` is set when somebody stands before it."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.gate = threading.Event()
        self.tried = threading.Event()

    def embed(self, texts):
        self.tried.set()
        assert self.gate.wait(SECONDS_MAX)
        return super().embed(texts)


class Choosy(HashingModel):
    """Fails on one text."""

    refused = "the model chokes on this"

    def embed(self, texts):
        if self.refused in texts:
            raise RuntimeError("out of memory")
        return super().embed(texts)


def embed(database, source=MODEL, *, dimensions=None, loads=load, said=None):
    """Embed all there is, as a process of its own does; whether the model let it."""
    with Stop() as stop:
        connector = database.connector(Role.PROJECTOR)
        said = said if said is not None else []
        choice = Choice(source, dimensions)
        embedder = Embedder(connector, choice, loads, stop, say=said.append, idle_seconds_max=0.0)
        return embedder.run()


@contextmanager
def embedding(database, source=MODEL, *, loads=load, said=None):
    """The same in a thread, until the block ends."""
    with Stop() as stop:
        connector = database.connector(Role.PROJECTOR)
        said = said if said is not None else []
        embedder = Embedder(connector, Choice(source), loads, stop, say=said.append)
        thread = threading.Thread(target=embedder.run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()


@asynccontextmanager
async def asking(database):
    connections = LiveConnections(lambda: database.connector(Role.READER))
    try:
        yield QuestionEmbedder(connections)
    finally:
        await connections.close()


def ask(database, text):
    """What one question is answered, asked once."""

    async def once():
        async with asking(database) as questions:
            return await questions.embed(text)

    return asyncio.run(once())


def ask_until_embedded(database, text):
    async def again():
        async with asking(database) as questions, asyncio.timeout(SECONDS_MAX):
            # What it waits for says nothing when it comes.
            while not isinstance(  # noqa: ASYNC110
                found := await questions.embed(text), QuestionVector
            ):
                await asyncio.sleep(0.02)
            return found

    return asyncio.run(again())


def stored(connection, number=1):
    """The rows of a space, the vectors as text."""
    return connection.execute(
        sql.SQL(
            "SELECT position, tenant, chain_id, thought_id, content_hash, vector::text "
            "FROM vectors.{} ORDER BY position"
        ).format(sql.Identifier(f"thoughts_{number}"))
    ).fetchall()


def expected(connection, model=None):
    """What the log says must be in a space of the model, by a fold of its own."""
    model = model or HashingModel(16)
    rows = []
    for recorded in log.read(connection, after=0, limit=READ_MAX):
        event = recorded.event
        if isinstance(event, ThoughtRecorded) and event.text.strip().strip("\0"):
            digest = hashlib.sha256(event.text.encode()).digest()
            place = (recorded.position, shown(recorded.header.tenant))
            vector = normal(connection, as_text(model.embed([event.text])[0]))
            rows.append((*place, event.originator_id, event.thought_id, digest, vector))
    return rows


def normal(connection, vector):
    """A vector as PostgreSQL writes it."""
    return connection.execute("SELECT %s::vector::text", [vector]).fetchone()[0]
