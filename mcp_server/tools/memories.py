"""The tool ``search_memories``: single thoughts like what is asked for."""

from typing import Any

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.chains.pages import present
from mcp_server.memory.inputs_recall import RecallInput, parse_recall
from mcp_server.memory.schema_search import SEARCH_MEMORIES
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.recall.answers import FoundMemory
from projections.recall.search import Recall


class SearchMemories(LedgerTool):
    """Searches the read models, as of what this connection has written, or of a position."""

    definition = SEARCH_MEMORIES

    def __init__(self, thinking: Thinking, recall: Recall) -> None:
        self._thinking = thinking
        self._recall = recall

    def parse(self, arguments: dict[str, Any]) -> RecallInput:
        return parse_recall(arguments)

    async def run(self, ledger: Ledger, context: Context, said: RecallInput) -> dict[str, Any]:  # noqa: ARG002 - it asks no log
        found = await self._recall.memories(
            context.tenant,
            said.query,
            said.wanted,
            strategy=said.strategy,
            position=max(self._thinking.position, said.at_least),
        )
        return present(
            count=len(found.memories),
            memories=[_row(memory) for memory in found.memories],
            how=str(found.how),
            because=found.because,
            position=found.position,
            stale=found.stale or None,
        )


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
    )
