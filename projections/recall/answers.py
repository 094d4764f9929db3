"""What a search answers: rows of chains and of thoughts, as they are when they are shown."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.reader import Reader
from projections.recall.ranking import Ranked, Strategy
from projections.recall.snippets import snippet_of
from projections.tokens import TEXT_CHARACTERS_MAX

SELECT_CHAINS = """
    SELECT chain.id, chain.session_id, chain.status, chain.thought_count,
           left(coalesce(thought.thought, chain.title), %(characters_max)s)
      FROM unnest(%(chain_ids)s::uuid[], %(thought_ids)s::uuid[]) AS best (chain_id, thought_id)
      JOIN live.thought_chains AS chain ON chain.id = best.chain_id
      LEFT JOIN live.thoughts AS thought ON thought.id = best.thought_id
"""

SELECT_MEMORIES = """
    SELECT thought.id, thought.memory_id, thought.chain_id, chain.session_id, chain.status,
           thought.sequence, thought.thought_number, thought.branch_id, thought.agent,
           thought.created_at, left(thought.thought, %(characters_max)s)
      FROM live.thoughts AS thought
      JOIN live.thought_chains AS chain ON chain.id = thought.chain_id
     WHERE thought.id = ANY (%(thought_ids)s)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedChain:
    """A chain that was found.

    ``score`` goes from 0 to 1, which is for the exact text of a thought; ``trust`` likewise, None
    where nothing is known.  ``dead_end``, ``superseded_by`` and ``contradicted`` are of its best
    thought: it was given up, revised by another, corrected by a user.
    """

    id: UUID
    session_id: str | None
    status: str
    thought_count: int
    score: float
    trust: float | None
    dead_end: bool
    superseded_by: UUID | None
    contradicted: bool
    snippet: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundMemory:
    """A thought that was found.  ``similarity`` is the cosine of the vectors, None without them."""

    id: UUID
    thought_id: UUID
    chain_id: UUID
    session_id: str | None
    status: str
    sequence: int
    thought_number: int
    branch_id: str | None
    agent: str
    created_at: datetime
    score: float
    similarity: float | None
    trust: float | None
    dead_end: bool
    superseded_by: UUID | None
    contradicted: bool
    snippet: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """How it was searched, up to which ``position`` of the log.

    ``because`` says why it was not searched as asked.  ``stale``: what was written up to the
    position asked for is not all in it yet.
    """

    how: Strategy
    position: int
    stale: bool
    because: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedChains(Found):
    """Chains, the best first."""

    chains: list[RelatedChain]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundMemories(Found):
    """Thoughts, the best first."""

    memories: list[FoundMemory]


async def show_chains(
    reader: Reader,
    ranked: Sequence[Ranked],
    trust: Mapping[UUID, float],
    weights: Mapping[str, float],
) -> list[RelatedChain]:
    """The rows of chains; *weights* are those of the terms that were asked for."""
    rows = await reader.fetch(
        SELECT_CHAINS,
        {
            "chain_ids": [row.best.chain_id for row in ranked],
            "thought_ids": [row.best.thought_id for row in ranked],
            "characters_max": TEXT_CHARACTERS_MAX,
        },
    )
    shown = {row[0]: row for row in rows}
    snippets = await _snippets(((row[0], row[-1]) for row in rows), weights)
    return [
        RelatedChain(
            id=chain_id,
            session_id=session_id,
            status=status,
            thought_count=thought_count,
            score=row.score,
            trust=trust.get(chain_id),
            dead_end=row.best.dead_end,
            superseded_by=row.best.superseded_by,
            contradicted=row.best.contradicted,
            snippet=snippets[chain_id],
        )
        for row in ranked
        if row.best.chain_id in shown
        for chain_id, session_id, status, thought_count, _ in (shown[row.best.chain_id],)
    ]


async def show_memories(
    reader: Reader, ranked: Sequence[Ranked], weights: Mapping[str, float]
) -> list[FoundMemory]:
    """The rows of thoughts."""
    rows = await reader.fetch(
        SELECT_MEMORIES,
        {
            "thought_ids": [row.best.thought_id for row in ranked],
            "characters_max": TEXT_CHARACTERS_MAX,
        },
    )
    shown = {row[0]: row for row in rows}
    snippets = await _snippets(((row[0], row[-1]) for row in rows), weights)
    return [
        _memory(row, shown[row.best.thought_id], snippets)
        for row in ranked
        if row.best.thought_id in shown
    ]


async def _snippets(
    texts: Iterable[tuple[UUID, str]], weights: Mapping[str, float]
) -> dict[UUID, str]:
    listed = list(texts)
    return await asyncio.to_thread(lambda: {key: snippet_of(text, weights) for key, text in listed})


def _memory(row: Ranked, shown: Sequence[Any], snippets: Mapping[UUID, str]) -> FoundMemory:
    thought_id, memory_id, chain_id, session_id, status, *place, created_at, _ = shown
    sequence, thought_number, branch_id, agent = place
    similarity = row.best.similarity
    return FoundMemory(
        id=memory_id,
        thought_id=thought_id,
        chain_id=chain_id,
        session_id=session_id,
        status=status,
        sequence=sequence,
        thought_number=thought_number,
        branch_id=branch_id,
        agent=agent,
        created_at=created_at,
        score=row.score,
        similarity=None if similarity is None else round(similarity, 6),
        trust=row.best.trust,
        dead_end=row.best.dead_end,
        superseded_by=row.best.superseded_by,
        contradicted=row.best.contradicted,
        snippet=snippets[thought_id],
    )
