"""The vector of a question, from the embedding process, wherever that runs; or why there is none.

The question goes through the database, so that any server may ask.  No answer is waited for long:
search has words to go by.
"""

import asyncio
from dataclasses import dataclass
from uuid import UUID, uuid4

from ledger.background import FAULTS
from ledger.errors import reason_of
from ledger.reader import Reader
from projections.embeddings import lead
from projections.embeddings.answers import AnswerListener
from projections.embeddings.model import can_be_embedded
from projections.embeddings.schema import MISSING
from projections.identity import content_hash_of
from projections.live import LiveConnections
from projections.text import shown

ANSWER_SECONDS_MAX = 0.5
# Of a question; no model reads more of a text.  Its hash is that of all of it.
TEXT_CHARACTERS_MAX = 16_384

ASK = """
    SELECT outcome, reason, space_number, space_dimensions, known_vector
      FROM vectors.ask(%(id)s, %(text)s, %(content_hash)s)
"""
SELECT_ANSWER = """
    SELECT space, dimensions, vector, failure FROM vectors.questions WHERE id = %(id)s
"""

BUSY = "the model is busy"
STARTING = "no process embeds at the moment; a worker starts one"
# By what ``vectors.ask`` says; what failed says why itself.
REASONS = {
    lead.LOADING: "the model is loading",
    lead.OFF: "embedding is switched off",
    lead.FAILED: "the model failed",
    lead.NOT_INSTALLED: "what embeds texts is not installed",
}


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """Where a question lies in a space; ``vector`` is in pgvector's form of text."""

    space: int
    dimensions: int
    vector: str


@dataclass(frozen=True, slots=True)
class NotEmbedded:
    """Why there is no vector now, for people."""

    reason: str


class QuestionEmbedder:
    """Asks for many at once."""

    def __init__(self, connections: LiveConnections, *, is_off: bool = False) -> None:
        """*connections* are lent, and closed by who made them; *is_off*: nobody is asked."""
        self._connections = connections
        self._is_off = is_off

    async def embed(self, text: str) -> QuestionVector | NotEmbedded:
        """The vector of *text*, in ANSWER_SECONDS_MAX or not at all.  It never raises a fault."""
        if self._is_off:
            return NotEmbedded(REASONS[lead.OFF])
        if not can_be_embedded(text):
            return NotEmbedded("the question says nothing")
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await _ask(self._connections.reader, self._connections.answers, text)
        except TimeoutError:
            return NotEmbedded(BUSY)
        except MISSING:
            return NotEmbedded("nothing was embedded yet")
        except FAULTS as fault:
            return NotEmbedded(f"the database failed ({reason_of(fault)})")


async def _ask(reader: Reader, answers: AnswerListener, text: str) -> QuestionVector | NotEmbedded:
    await answers.listen()
    question_id = uuid4()
    answered = answers.expect(question_id)
    try:
        ((outcome, reason, space, dimensions, known),) = await reader.fetch(
            ASK,
            {
                "id": question_id,
                "text": shown(text[:TEXT_CHARACTERS_MAX]),
                "content_hash": content_hash_of(text),
            },
        )
        if outcome == "known":
            return QuestionVector(space, dimensions, known)
        if outcome != "asked":
            return NotEmbedded(reason or REASONS.get(outcome, STARTING))
        await answered
        return await _answer(reader, question_id)
    finally:
        answers.forget(question_id)


async def _answer(reader: Reader, question_id: UUID) -> QuestionVector | NotEmbedded:
    rows = await reader.fetch(SELECT_ANSWER, {"id": question_id})
    if not rows:
        return NotEmbedded(BUSY)
    ((space, dimensions, vector, failure),) = rows
    return NotEmbedded(failure) if vector is None else QuestionVector(space, dimensions, vector)
