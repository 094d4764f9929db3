"""Questions are embedded by whoever embeds, and nobody waits long for it."""

import asyncio
import threading
import time
from contextlib import closing

import pytest

from ledger.database import Connector, Role
from projections.embeddings import status
from projections.embeddings.answering import QUESTIONS_MAX
from projections.embeddings.bursts import Bursts
from projections.embeddings.choice import DEFAULT
from projections.embeddings.hashing import HashingModel
from projections.embeddings.lead import be_ready, take_lead
from projections.embeddings.loading import load
from projections.embeddings.model import as_text
from projections.embeddings.questions import (
    ANSWER_SECONDS_MAX,
    BUSY,
    REASONS,
    STARTING,
    NotEmbedded,
    QuestionEmbedder,
    QuestionVector,
)
from projections.embeddings.schema import ensure_schema
from projections.live import LiveConnections
from tests.acceptance.product import eventually
from tests.postgres.embedding import (
    Gated,
    ask,
    ask_until_embedded,
    asking,
    embed,
    embedding,
    stored,
)
from tests.postgres.projecting import SECONDS_MAX, record_chain

QUESTION = "how did we make the migration safe"


def test_a_question_gets_the_vector_that_its_text_has_as_a_thought(database, reader):
    with embedding(database):
        found = ask_until_embedded(database, QUESTION)

    assert found == QuestionVector(1, 16, as_text(HashingModel(16).embed([QUESTION])[0]))


def test_many_ask_at_once_and_each_gets_its_own(database):
    texts = [f"question {number}" for number in range(20)]

    async def all_at_once():
        async with asking(database) as questions:
            return await asyncio.gather(*map(questions.embed, texts))

    with embedding(database):
        ask_until_embedded(database, QUESTION)
        found = asyncio.run(all_at_once())

    vectors = [as_text(vector) for vector in HashingModel(16).embed(texts)]
    assert [answer.vector for answer in found] == vectors


def test_one_after_the_other_each_is_heard_at_once(database):
    texts = [f"question {number}" for number in range(200)]

    async def one_by_one():
        async with asking(database) as questions:
            return [await questions.embed(text) for text in texts]

    with embedding(database):
        ask_until_embedded(database, QUESTION)
        found = asyncio.run(one_by_one())

    assert [answer for answer in found if isinstance(answer, NotEmbedded)] == []


class Slow(HashingModel):
    """Takes a while for every batch."""

    def embed(self, texts):
        threading.Event().wait(0.15)
        return super().embed(texts)


def test_where_more_is_asked_than_can_be_answered_some_are_answered_all_the_same(database):
    async def in_rounds():
        async with asking(database) as questions:
            return [
                await asyncio.gather(*(questions.embed(f"{turn} {number}") for number in range(40)))
                for turn in range(4)
            ]

    with embedding(database, loads=lambda _: Slow(16)):
        ask_until_embedded(database, QUESTION)
        rounds = asyncio.run(in_rounds())

    answered = [sum(isinstance(each, QuestionVector) for each in found) for found in rounds]
    assert min(answered) >= QUESTIONS_MAX


def test_in_a_burst_only_questions_are_embedded(database, writer, reader, monkeypatch):
    burst = threading.Event()
    burst.set()
    monkeypatch.setattr(Bursts, "are_on", lambda *_: burst.is_set())
    record_chain(writer, "the first", "the second")

    with embedding(database):
        ask_until_embedded(database, QUESTION)
        during = status.look(reader)
        burst.clear()
        eventually(lambda: status.look(reader).behind == 0)

    assert (during.thoughts, during.behind > 0) == (0, True)
    assert status.look(reader).thoughts == 2


def test_the_text_of_a_thought_needs_no_model(database, writer, reader):
    record_chain(writer, QUESTION)
    embed(database)

    found = ask(database, QUESTION)

    assert isinstance(found, QuestionVector)
    assert found.vector == stored(reader)[0][-1]


def test_before_anything_was_embedded_there_is_no_vector(database):
    assert isinstance(ask(database, QUESTION), NotEmbedded)


@pytest.mark.parametrize("text", ["", " ", "\0"])
def test_a_question_without_a_word_has_none(database, text):
    assert isinstance(ask(database, text), NotEmbedded)


def test_while_the_model_loads_nobody_waits(database, projector):
    ensure_schema(projector)
    assert take_lead(projector)

    assert ask(database, QUESTION) == NotEmbedded(REASONS["loading"])


def test_a_model_that_is_busy_is_not_waited_for_long(database, projector):
    ensure_schema(projector)
    assert take_lead(projector)
    # It holds the lock and never answers.
    be_ready(projector)

    began = time.monotonic()
    found = ask(database, QUESTION)

    assert found == NotEmbedded(BUSY)
    assert time.monotonic() - began < ANSWER_SECONDS_MAX + SECONDS_MAX


def test_one_that_died_is_noticed_at_once(database, connector):
    with closing(connector.connect()) as dead:
        ensure_schema(dead)
        take_lead(dead)
        be_ready(dead)

    assert ask(database, QUESTION) == NotEmbedded(STARTING)


def test_a_question_goes_before_the_thoughts_that_wait(database, writer, reader):
    record_chain(writer, *[f"thought {number}" for number in range(100)])
    gated = Gated(16)

    async def ask_meanwhile():
        async with asking(database) as questions:
            asked = asyncio.create_task(questions.embed(QUESTION))
            await asyncio.to_thread(eventually, is_asked, SECONDS_MAX, "a question")
            gated.gate.set()
            return await asked

    def is_asked():
        return reader.execute("SELECT 1 FROM vectors.questions").fetchone()

    with embedding(database, loads=lambda _: gated):
        assert gated.tried.wait(SECONDS_MAX)
        found = asyncio.run(ask_meanwhile())

    assert isinstance(found, QuestionVector)


def test_answered_questions_are_forgotten(database, reader):
    with embedding(database):
        ask_until_embedded(database, QUESTION)
        eventually(
            lambda: reader.execute("SELECT count(*) FROM vectors.questions").fetchone() == (0,),
            SECONDS_MAX,
            "an empty table",
        )


def test_a_database_that_is_gone_is_no_error_and_takes_no_time():
    connector = Connector("host=127.0.0.1 port=1", lambda: None)

    async def once():
        connections = LiveConnections(lambda: connector)
        try:
            return await QuestionEmbedder(connections).embed(QUESTION)
        finally:
            await connections.close()

    assert isinstance(asyncio.run(once()), NotEmbedded)


def test_switched_off_nobody_is_asked():
    def refuse():
        raise AssertionError

    questions = QuestionEmbedder(LiveConnections(refuse), is_off=True)

    assert asyncio.run(questions.embed(QUESTION)) == NotEmbedded(REASONS["off"])


def test_the_real_model_knows_what_is_meant(database, writer, reader):
    """Loads the default model, from the package that has its weights."""
    record_chain(writer, "We moved the schema without downtime.", "The cat sat on the mat.")
    embed(database, DEFAULT)
    space = status.look(reader)

    with closing(database.connector(Role.READER).connect()) as connection:
        vector = as_text(load(DEFAULT).embed([QUESTION])[0])
        nearest = connection.execute(
            "SELECT position FROM vectors.thoughts_1 ORDER BY vector <=> %s::vector", [vector]
        ).fetchall()

    assert (space.model, space.dimensions, space.thoughts) == ("all-MiniLM-L6-v2", 384, 2)
    assert nearest == [(2,), (3,)]
