"""The tool ``search_memories``: single thoughts like what is asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.chains.pages import present
from mcp_server.memory.inputs_recall import RecallInput, parse_recall
from mcp_server.memory.schemas import SEARCH
from mcp_server.memory.trust import json_of_reasons
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.recall.answers import FoundMemory
from projections.recall.search import Recall
from projections.trust.explaining import ThoughtTrust, explain_now

# Each chain that is explained is read from the log.
EXPLAINED_MAX = 10


class SearchMemories(LedgerTool):
    """Searches the read models, as of what this connection has written, or of a position."""

    definition = SEARCH

    def __init__(self, thinking: Thinking, recall: Recall) -> None:
        self._thinking = thinking
        self._recall = recall

    def parse(self, arguments: dict[str, Any]) -> RecallInput:
        return parse_recall(arguments)

    async def run(self, ledger: Ledger, context: Context, said: RecallInput) -> dict[str, Any]:
        wanted = said.wanted
        if said.explain:
            wanted = replace(wanted, limit=min(wanted.limit, EXPLAINED_MAX))
        found = await self._recall.memories(
            context.tenant,
            said.query,
            wanted,
            strategy=said.strategy,
            position=max(self._thinking.position, said.at_least),
        )
        explained = found.memories if said.explain else []
        reasons = await _reasons(ledger, explained)
        return present(
            count=len(found.memories),
            memories=[
                _row(memory) | _explained(reasons.get(memory.thought_id))
                for memory in found.memories
            ],
            how=str(found.how),
            because=found.because,
            position=found.position,
            stale=found.stale or None,
            warnings=said.warnings or None,
        )


async def _reasons(ledger: Ledger, memories: Iterable[FoundMemory]) -> Mapping[UUID, ThoughtTrust]:
    """What is known of the thoughts of the chains that were found, by the log."""
    chain_ids = dict.fromkeys(memory.chain_id for memory in memories)
    chains = [await explain_now(ledger, chain_id) for chain_id in chain_ids]
    return {thought.thought_id: thought for chain in chains for thought in chain.thoughts}


def _explained(thought: ThoughtTrust | None) -> dict[str, Any]:
    if thought is None:
        return {}
    recalled = {"recalls": thought.recalls} if thought.recalls else {}
    return {"level": str(thought.level), **recalled, **json_of_reasons(thought)}


def _row(memory: FoundMemory) -> dict[str, Any]:
    return present(
        memory_id=str(memory.id),
        thought_id=str(memory.thought_id),
        chain_id=str(memory.chain_id),
        session_id=memory.session_id,
        status=memory.status,
        thought_number=memory.thought_number,
        branch_id=memory.branch_id,
        agent=memory.agent,
        created_at=memory.created_at.isoformat(),
        snippet=memory.snippet,
        score=memory.score,
        similarity=memory.similarity,
        trust=memory.trust,
        dead_end=memory.dead_end or None,
        superseded_by=memory.superseded_by and str(memory.superseded_by),
        contradicted=memory.contradicted or None,
    )
