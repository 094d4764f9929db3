"""The embedding process' side of questions: what was asked, embedded in the live space."""

from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow

from projections.embeddings.batches import TEXT_CHARACTERS_READ
from projections.embeddings.model import Vector, as_text, is_usable
from projections.embeddings.spaces import Space

# Of ``vectors.ask``; and what says that a question is answered, by its id.
ASKED_CHANNEL = "vectors_questions"
ANSWERED_CHANNEL = "vectors_answers"

QUESTIONS_MAX = 8
# Who asked leaves after 0.5 s, and the model takes a moment too.
WAITING_SECONDS_MAX = 0.4
KEPT_SECONDS_MAX = 1.0

SELECT_QUESTIONS = """
    SELECT id, text
      FROM vectors.questions
     WHERE vector IS NULL
       AND failure IS NULL
       AND asked_at > clock_timestamp() - make_interval(secs => %(seconds)s)
     ORDER BY asked_at DESC
     LIMIT %(limit)s
"""
UPDATE_ANSWERED = """
    UPDATE vectors.questions
       SET space = %(space)s,
           dimensions = %(dimensions)s,
           vector = %(vector)s,
           failure = %(failure)s
     WHERE id = %(id)s
"""
NOTIFY_ANSWERED = "SELECT pg_notify(%(channel)s, %(id)s)"
DELETE_OLD = """
    DELETE FROM vectors.questions
     WHERE asked_at < clock_timestamp() - make_interval(secs => %(seconds)s)
"""

FAILED = "the model makes no vector of this question"


class Asked(NamedTuple):
    """A question that nobody has answered yet."""

    id: UUID
    text: str


def open_questions(connection: Connection[TupleRow], characters_max: int) -> list[Asked]:
    """Some that somebody still waits for, one at least, of *characters_max* together.

    The latest first: where more is asked than can be answered, the oldest would all be answered
    when nobody waits any more.
    """
    asked = {"seconds": WAITING_SECONDS_MAX, "limit": QUESTIONS_MAX}
    found = [Asked(*row) for row in connection.execute(SELECT_QUESTIONS, asked).fetchall()]
    sizes = accumulate(min(len(question.text), TEXT_CHARACTERS_READ) for question in found)
    return [
        question
        for number, (question, size) in enumerate(zip(found, sizes, strict=True))
        if number == 0 or size <= characters_max
    ]


def answer(
    connection: Connection[TupleRow], question: Asked, space: Space, made: Vector | str
) -> None:
    """Leave a vector in *space* for who asked, or why there is none."""
    usable = not isinstance(made, str) and is_usable(made, space.dimensions)
    _leave(
        connection,
        question,
        space=space.number if usable else None,
        dimensions=space.dimensions if usable else None,
        vector=as_text(made) if usable and not isinstance(made, str) else None,
        failure=None if usable else FAILED,
    )


def refuse(connection: Connection[TupleRow], question: Asked, reason: str) -> None:
    """Tell who asked why there is no vector."""
    _leave(connection, question, space=None, dimensions=None, vector=None, failure=reason)


def forget_old(connection: Connection[TupleRow]) -> None:
    """Delete the questions that nobody waits for any more."""
    connection.execute(DELETE_OLD, {"seconds": KEPT_SECONDS_MAX})


def _leave(connection: Connection[TupleRow], question: Asked, **said: object) -> None:
    with connection.transaction():
        connection.execute(UPDATE_ANSWERED, {"id": question.id, **said})
        connection.execute(NOTIFY_ANSWERED, {"channel": ANSWERED_CHANNEL, "id": str(question.id)})
