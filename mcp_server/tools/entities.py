"""The tool ``related_entities``: who spoke of a file, a symbol, a package, an address, a name."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from ledger.application import Ledger
from ledger.errors import ChainNotFoundError
from ledger.header import Context
from mcp_server.chains.pages import present
from mcp_server.memory.inputs_entities import EntitiesInput, parse_entities
from mcp_server.memory.schemas import ENTITIES
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.entity_search import EntitySearch, MentionedEntity, MentioningChain


class RelatedEntities(LedgerTool):
    """Asks the read models, as of what this connection has written, or of a position."""

    definition = ENTITIES

    def __init__(self, thinking: Thinking, entities: EntitySearch) -> None:
        self._thinking = thinking
        self._entities = entities

    def parse(self, arguments: dict[str, Any]) -> EntitiesInput:
        return parse_entities(arguments)

    async def run(self, ledger: Ledger, context: Context, said: EntitiesInput) -> dict[str, Any]:
        await _refuse_unknown(ledger, said.asked.chain_id)
        found = await self._entities.related(
            context.tenant, said.asked, position=max(self._thinking.position, said.at_least)
        )
        return present(
            count=len(found.chains),
            entities=[_entity(entity) for entity in found.entities],
            entities_total=found.entities_total,
            chains=[_chain(chain) for chain in found.chains],
            chains_total=found.chains_total,
            together=[asdict(beside) for beside in found.together],
            position=found.position,
            stale=found.stale or None,
        )


async def _refuse_unknown(ledger: Ledger, chain_id: UUID | None) -> None:
    """Raises ChainNotFoundError: an empty answer would look like a chain that names nothing."""
    if chain_id is not None and not await ledger.events(chain_id, after=0, limit=1):
        raise ChainNotFoundError(chain_id)


def _entity(entity: MentionedEntity) -> dict[str, Any]:
    written = entity.written if entity.written != entity.name else None
    return present(
        kind=entity.kind,
        name=entity.name,
        written=written,
        thoughts=entity.thoughts,
        chains=entity.chains,
    )


def _chain(chain: MentioningChain) -> dict[str, Any]:
    return {
        "chain_id": str(chain.id),
        "session_id": chain.session_id,
        "status": chain.status,
        "title": chain.title,
        "snippet": chain.snippet,
        "entities": chain.entities,
        "mentions": chain.mentions,
        "position": chain.position,
    }
