"""The arguments of ``related_entities``, as lenient as those of other tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from mcp_server.chains.values import to_choice, to_name
from mcp_server.inputs import Arguments, InputError, to_integer, to_uuid
from mcp_server.memory.inputs_recall import to_query
from projections.entity import Kind
from projections.entity_search import CHAINS_MAX, EntityQuestion

CHAINS_DEFAULT = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class EntitiesInput:
    """One call of ``related_entities``."""

    asked: EntityQuestion
    at_least: int
    request_id: None = None


def parse_entities(arguments: Mapping[str, object]) -> EntitiesInput:
    """Read the arguments of ``related_entities``.  Raises InputError."""
    given = Arguments(arguments)
    asked = EntityQuestion(
        query=given.allow("query", to_query),
        entity=given.allow("entity", to_name),
        chain_id=given.allow("chain_id", to_uuid),
        kind=given.allow("kind", partial(to_choice, choices=[*map(str, Kind)])),
        limit=min(given.allow("limit", to_integer) or CHAINS_DEFAULT, CHAINS_MAX),
    )
    at_least = given.allow("at_least", to_integer) or 0
    given.refuse_problems()
    if [asked.query, asked.entity, asked.chain_id].count(None) != 2:
        raise InputError(
            ("entity", "or query or chain_id is needed, exactly one: a name, a text, or a chain")
        )
    return EntitiesInput(asked=asked, at_least=at_least)
