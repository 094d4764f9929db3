"""The tool ``get_related_chains``: chains whose thoughts are like what is asked for."""

from typing import Any

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.chains.pages import present
from mcp_server.chains.schemas import RELATED
from mcp_server.memory.inputs_recall import RecallInput, parse_recall
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.recall import answers
from projections.recall.search import Recall


class RelatedChains(LedgerTool):
    """Searches the read models, as of what this connection has written."""

    definition = RELATED

    def __init__(self, thinking: Thinking, chains: Recall) -> None:
        self._thinking = thinking
        self._chains = chains

    def parse(self, arguments: dict[str, Any]) -> RecallInput:
        return parse_recall(arguments)

    async def run(self, ledger: Ledger, context: Context, said: RecallInput) -> dict[str, Any]:  # noqa: ARG002 - it asks no log
        position = max(self._thinking.position, said.at_least)
        found = await self._chains.related(
            context.tenant, said.query, said.wanted, strategy=said.strategy, position=position
        )
        return present(
            count=len(found.chains),
            chains=[_row(chain) for chain in found.chains],
            how=str(found.how),
            because=found.because,
            position=found.position,
            stale=found.stale or None,
            warnings=said.warnings or None,
        )


def _row(chain: answers.RelatedChain) -> dict[str, Any]:
    return {
        "chain_id": str(chain.id),
        "session_id": chain.session_id,
        "status": chain.status,
        "snippet": chain.snippet,
        "score": chain.score,
        "thought_count": chain.thought_count,
        "trust": chain.trust,
        **present(
            dead_end=chain.dead_end or None,
            superseded_by=chain.superseded_by and str(chain.superseded_by),
            contradicted=chain.contradicted or None,
        ),
    }
