"""The leg of search that goes by likeness: vectors, compared with that of the question.

While few thoughts may be found, each is compared.  Else the index (HNSW) is asked, which finds
nearly all of the nearest; by half precision, so more than are wanted are compared again in full.
Where filters leave too few of what the index gives, each is compared after all: never are there
fewer rows than there could be.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg.sql import SQL, Composed, Identifier, Literal

from ledger.reader import Reader
from projections.embeddings.questions import QuestionVector
from projections.embeddings.status import THOUGHT_TOPICS
from projections.recall.candidates import Candidate
from projections.recall.filters import (
    ALLOWED,
    OF_TRUST,
    Bounds,
    RecallFilter,
    parameters_of,
)

# So many thoughts are compared one by one; scripts/bench recall measures where the index wins.
EXACT_THOUGHTS_MAX = 12_000
# pgvector's index keeps vectors of half precision up to here.
INDEXED_DIMENSIONS_MAX = 4_000
# What the index goes through before it gives up, and how many it keeps in view meanwhile.
SCANNED_MAX = 40_000
IN_VIEW = 100
# Of what the index gives, so many times what is wanted is compared in full.
COMPARED_AGAIN = 4

# Once a session; known to PostgreSQL only when pgvector is loaded, and kept until then.
SETTINGS: Mapping[str, str] = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(IN_VIEW),
    "hnsw.max_scan_tuples": str(SCANNED_MAX),
}

COUNT_ALLOWED: LiteralString = f"""{ALLOWED}
    SELECT coalesce(sum(thought_count), 0)::int8 FROM allowed
"""  # noqa: S608 - of constants only

# An array, so that the index on chain_id reads what is allowed and no more.
SELECT_NEAREST_EXACTLY: LiteralString = f"""{ALLOWED}
    SELECT position, chain_id, thought_id, 1 - (vector <=> %(vector)s::vector)
      FROM {{thoughts}} AS near
     WHERE chain_id = ANY (ARRAY(SELECT id FROM allowed))
       AND {OF_TRUST}
     ORDER BY vector <=> %(vector)s::vector, position DESC
     LIMIT %(nearest)s
"""  # noqa: S608 - of constants only

SELECT_NEAREST_CHAINS: LiteralString = f"""{ALLOWED}
    , nearest AS (
        SELECT DISTINCT ON (near.chain_id)
               near.position, near.chain_id, near.thought_id,
               near.vector <=> %(vector)s::vector AS distance
          FROM {{thoughts}} AS near
         WHERE chain_id = ANY (ARRAY(SELECT id FROM allowed))
           AND {OF_TRUST}
         ORDER BY near.chain_id, near.vector <=> %(vector)s::vector
    )
    SELECT position, chain_id, thought_id, 1 - distance
      FROM nearest
     ORDER BY distance, position DESC
     LIMIT %(nearest)s
"""  # noqa: S608

# The question is a vector first: a parameter has one type, and half of it would be lost.
SELECT_NEAREST_BY_INDEX: LiteralString = f"""{ALLOWED}
    SELECT position, chain_id, thought_id,
           1 - (vector <=> %(vector)s::vector)
      FROM (
          SELECT position, chain_id, thought_id, vector
            FROM {{thoughts}} AS near
           WHERE tenant = %(tenant)s
             AND (chain_id IN (SELECT id FROM allowed)) IS TRUE
             AND {OF_TRUST}
           ORDER BY vector::halfvec({{dimensions}})
                    <=> %(vector)s::vector::halfvec({{dimensions}})
           LIMIT %(compared)s
      ) AS near
     ORDER BY vector <=> %(vector)s::vector, position DESC
     LIMIT %(nearest)s
"""  # noqa: S608

SELECT_VECTORS_END = """
    SELECT position
      FROM vectors.spaces
     WHERE number = %(space)s
       AND EXISTS (
           SELECT
             FROM ledger.events
            WHERE notification_id > spaces.position AND topic = ANY (%(topics)s)
       )
"""

SELECT_SIMILARITIES = """
    SELECT position, 1 - (vector <=> %(vector)s::vector)
      FROM {thoughts}
     WHERE position = ANY (%(positions)s)
"""


class Likeness:
    """Asks the vectors of one space."""

    def __init__(self, reader: Reader, question: QuestionVector, exact_thoughts_max: int) -> None:
        self._reader = reader
        self._question = question
        self._exact_thoughts_max = exact_thoughts_max

    async def vectors_end(self) -> int | None:
        """The position after which thoughts lack vectors as yet; None when all have theirs."""
        asked = {"space": self._question.space, "topics": THOUGHT_TOPICS}
        rows = await self._reader.fetch(SELECT_VECTORS_END, asked)
        return rows[0][0] if rows else None

    async def nearest(
        self,
        tenant: str,
        wanted: RecallFilter,
        count: int,
        bounds: Bounds,
    ) -> list[Candidate]:
        """The *count* thoughts most like the question, of those *wanted*; fewer if there are."""
        parameters = parameters_of(tenant, wanted, bounds) | {
            "vector": self._question.vector,
            "nearest": count,
            "compared": count * COMPARED_AGAIN,
        }
        if self._question.dimensions <= INDEXED_DIMENSIONS_MAX:
            ((allowed,),) = await self._reader.fetch(COUNT_ALLOWED, parameters)
            if allowed > self._exact_thoughts_max:
                found = await self._fetch(SELECT_NEAREST_BY_INDEX, parameters)
                if len(found) == count:
                    return found
        return await self._fetch(SELECT_NEAREST_EXACTLY, parameters)

    async def nearest_chains(
        self,
        tenant: str,
        wanted: RecallFilter,
        bounds: Bounds,
        *,
        known: Iterable[UUID],
    ) -> list[Candidate]:
        """The nearest thought of each of the nearest chains, but for those *known*."""
        parameters = parameters_of(tenant, wanted, bounds) | {
            "known": [*bounds.archived_chains, *known],
            "vector": self._question.vector,
            "nearest": wanted.limit,
        }
        return await self._fetch(SELECT_NEAREST_CHAINS, parameters)

    async def compare(self, candidates: Sequence[Candidate]) -> None:
        """Give those their similarity that have none and a vector."""
        lacking = {
            candidate.position: candidate
            for candidate in candidates
            if candidate.similarity is None and candidate.thought_id is not None
        }
        rows = await self._reader.fetch(
            self._of_space(SELECT_SIMILARITIES),
            {"vector": self._question.vector, "positions": list(lacking)},
        )
        for position, similarity in rows:
            lacking[position].similarity = similarity

    async def _fetch(self, query: LiteralString, parameters: Mapping[str, Any]) -> list[Candidate]:
        rows = await self._reader.fetch(self._of_space(query), parameters, prepare=False)
        return [
            Candidate(position, chain_id, thought_id, similarity=similarity)
            for position, chain_id, thought_id, similarity in rows
        ]

    def _of_space(self, query: LiteralString) -> Composed:
        return SQL(query).format(
            thoughts=Identifier("vectors", f"thoughts_{self._question.space}"),
            dimensions=Literal(self._question.dimensions),
        )
