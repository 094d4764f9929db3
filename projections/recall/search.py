"""Search of chains and of single thoughts: by words and by likeness at once, the best first."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from projections.embeddings.questions import (
    NotEmbedded,
    QuestionEmbedder,
    QuestionVector,
)
from projections.live import LiveConnections
from projections.recall.answers import FoundMemories, RelatedChains, show_chains, show_memories
from projections.recall.candidates import Candidate
from projections.recall.filters import Bounds, RecallFilter
from projections.recall.likeness import EXACT_THOUGHTS_MAX, SETTINGS, Likeness
from projections.recall.questions import Questions
from projections.recall.ranking import Ranked, Strategy, rank_chains, rank_thoughts
from projections.recall.standing import Standing
from projections.recall.words import ENTRIES_MAX, Said, Words
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.trust.projection import Trust

# So many of the nearest thoughts are looked at, or so many times what is wanted.
NEAREST_MIN = 100
NEAREST_TIMES = 4
# Of so many times the chains wanted the trust is looked up: it moves none further than that.
TRUSTED_CHAINS_TIMES = 3
# Where a thought is this much alike, ``tiered`` does not look for words.
TIERED_SIMILARITY_MIN = 0.6

# The compiler of plans takes longer than the questions: the guess at their size is far too great.
SELECT_POSITION = """
    SELECT set_config('jit', 'off', false),
           (SELECT count(set_config(name, value, false))
              FROM unnest(%(names)s::text[], %(values)s::text[]) AS setting (name, value)),
           least(thoughts.position, terms.position)
      FROM live.thoughts_checkpoint AS thoughts
     CROSS JOIN live.terms_checkpoint AS terms
"""

MISSING = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


@dataclass(frozen=True, slots=True)
class _Pool:
    """What was found, before it is ranked."""

    candidates: list[Candidate]
    weights: Mapping[str, float]
    how: Strategy
    position: int
    because: str | None
    vectors_end: int | None = None

    def lacks(self, position: int) -> bool:
        """Whether thoughts up to *position* cannot be in it, for they lack vectors."""
        end = self.vectors_end
        return self.how is Strategy.VECTOR and end is not None and end < position


class Recall:
    """Asks the live read models, and the vectors where there are any."""

    def __init__(
        self,
        connections: LiveConnections,
        questions: Questions,
        *,
        entries_max: int = ENTRIES_MAX,
        exact_thoughts_max: int = EXACT_THOUGHTS_MAX,
    ) -> None:
        self._connections = connections
        self._questions = questions
        self._entries_max = entries_max
        self._exact_thoughts_max = exact_thoughts_max

    async def related(
        self,
        tenant: str,
        query: str,
        wanted: RecallFilter,
        *,
        strategy: Strategy = Strategy.HYBRID,
        position: int,
    ) -> RelatedChains:
        """Chains with thoughts like *query* as of *position*, waited for as lists do.

        Raises DatabaseUnavailableError.
        """
        seen = await self._wait(position)
        try:
            pool = await self._pool(tenant, query, wanted, strategy, by_chain=True)
        except MISSING:
            return RelatedChains(chains=[], **_not_built())
        ranked, trust = await self._rank_chains(pool, wanted.limit)
        return RelatedChains(
            chains=await show_chains(self._connections.reader, ranked, trust, pool.weights),
            how=pool.how,
            position=pool.position,
            stale=not seen or pool.lacks(position),
            because=pool.because,
        )

    async def memories(
        self,
        tenant: str,
        query: str,
        wanted: RecallFilter,
        *,
        strategy: Strategy = Strategy.HYBRID,
        position: int,
    ) -> FoundMemories:
        """Thoughts like *query*, each by itself; else as ``related``."""
        seen = await self._wait(position)
        try:
            pool = await self._pool(tenant, query, wanted, strategy, by_chain=False)
        except MISSING:
            return FoundMemories(memories=[], **_not_built())
        ranked = rank_thoughts(pool.candidates, pool.how)[: wanted.limit]
        return FoundMemories(
            memories=await show_memories(self._connections.reader, ranked, pool.weights),
            how=pool.how,
            position=pool.position,
            stale=not seen or pool.lacks(position),
            because=pool.because,
        )

    async def _wait(self, position: int) -> bool:
        return await self._connections.wait(position, Thoughts.name, Terms.name, Trust.name)

    # -- What is found ----------------------------------------------------------------------------

    async def _pool(
        self, tenant: str, query: str, wanted: RecallFilter, strategy: Strategy, *, by_chain: bool
    ) -> _Pool:
        reader = self._connections.reader
        position, vector = await asyncio.gather(self._position(), self._embed(query, strategy))
        standing = Standing(reader)
        bounds = await standing.bounds(tenant, wanted.trust_min)
        how, because, likeness, near = Strategy.TEXT, None, None, list[Candidate]()
        end: int | None = None
        if isinstance(vector, NotEmbedded):
            because = vector.reason
        elif vector is not None:
            likeness = Likeness(reader, vector, self._exact_thoughts_max)
            # Before it is looked for: what comes meanwhile is missing too.
            end = await likeness.vectors_end()
            near = await self._nearest(likeness, tenant, wanted, bounds, by_chain=by_chain)
            how = strategy
            if strategy is Strategy.TIERED:
                how = _tier(near) if end is None else Strategy.HYBRID
            if end is not None and (how is Strategy.VECTOR or not near):
                because = f"thoughts after position {end} have no vectors yet"
                how = how if near else Strategy.TEXT
        said = Said([], {})
        if how is not Strategy.VECTOR:
            words = Words(reader, self._entries_max)
            also = [candidate.position for candidate in near]
            said = await words.find(
                tenant,
                query,
                wanted,
                position=position,
                bounds=bounds,
                also=also,
                with_titles=by_chain,
            )
        found = _merged(said.texts, near)
        if likeness is not None and how is Strategy.HYBRID:
            await likeness.compare(found)
        await standing.judge(found, query)
        return _Pool(found, said.weights, how, position, because, end)

    async def _position(self) -> int:
        settings = {"names": list(SETTINGS), "values": list(SETTINGS.values())}
        ((*_, position),) = await self._connections.reader.fetch(SELECT_POSITION, settings)
        return position

    async def _embed(self, query: str, strategy: Strategy) -> QuestionVector | NotEmbedded | None:
        return None if strategy is Strategy.TEXT else await self._questions.embed(query)

    async def _nearest(
        self,
        likeness: Likeness,
        tenant: str,
        wanted: RecallFilter,
        bounds: Bounds,
        *,
        by_chain: bool,
    ) -> list[Candidate]:
        count = max(NEAREST_MIN, NEAREST_TIMES * wanted.limit)
        near = await likeness.nearest(tenant, wanted, count, bounds)
        chains = {candidate.chain_id for candidate in near}
        if by_chain and len(chains) < wanted.limit and len(near) == count:
            # Many thoughts of few chains: look at each chain's nearest one.
            near += await likeness.nearest_chains(tenant, wanted, bounds, known=chains)
        return near

    # -- What is answered -------------------------------------------------------------------------

    async def _rank_chains(
        self, pool: _Pool, limit: int
    ) -> tuple[list[Ranked], Mapping[UUID, float]]:
        foremost = rank_chains(pool.candidates, pool.how, {})[: limit * TRUSTED_CHAINS_TIMES]
        chain_ids = {row.best.chain_id for row in foremost}
        trust = await Standing(self._connections.reader).of_chains(chain_ids)
        leading = [text for text in pool.candidates if text.chain_id in chain_ids]
        return rank_chains(leading, pool.how, trust)[:limit], trust


def recall_over(connections: LiveConnections) -> Recall:
    """Recall that has its questions embedded by the embedding process, wherever it runs."""
    return Recall(connections, QuestionEmbedder(connections))


def _not_built() -> dict[str, Any]:
    because = "no worker has built the read models of search yet"
    return {"how": Strategy.TEXT, "position": 0, "stale": True, "because": because}


def _tier(near: Sequence[Candidate]) -> Strategy:
    best = max((candidate.similarity or 0 for candidate in near), default=0)
    return Strategy.VECTOR if best >= TIERED_SIMILARITY_MIN else Strategy.HYBRID


def _merged(texts: Sequence[Candidate], near: Sequence[Candidate]) -> list[Candidate]:
    """Each text once, with what both legs know of it."""
    merged = {text.position: text for text in texts}
    for candidate in near:
        known = merged.setdefault(candidate.position, candidate)
        known.similarity = candidate.similarity
    return list(merged.values())
