"""Which chains speak of something by name, and what else is spoken of with it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, LiteralString
from uuid import UUID

import psycopg

from projections.entities import Entities
from projections.entity_queries import (
    SELECT_CHAINS,
    SELECT_MATCHED,
    SELECT_MENTIONING,
    SELECT_OF_CHAIN,
    SELECT_POSITION,
    SELECT_TOGETHER,
)
from projections.entity_question import AskedEntities, ask_by_name, ask_by_text
from projections.live import LiveConnections
from projections.recall.snippets import snippet_of
from projections.thoughts import Thoughts
from projections.tokens import TEXT_CHARACTERS_MAX, terms_of

CHAINS_MAX = 50
ENTITIES_MAX = 10
# Of so many that are called alike the most mentioned are taken.
MATCHED_MAX = 64
# What occurs together is looked for in so many thoughts.
TOGETHER_THOUGHTS_MAX = 1_000

MISSING = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityQuestion:
    """Asked by one of the first three.  ``kind`` narrows what is meant, not what is beside it.

    ``limit`` is at most CHAINS_MAX.
    """

    query: str | None = None
    entity: str | None = None
    chain_id: UUID | None = None
    kind: str | None = None
    limit: int = CHAINS_MAX


@dataclass(frozen=True, slots=True)
class MentionedEntity:
    """An entity, in how many thoughts and chains it is mentioned."""

    kind: str
    name: str
    written: str
    thoughts: int
    chains: int


@dataclass(frozen=True, slots=True)
class MentioningChain:
    """A chain that mentions ``entities`` of them, in ``mentions`` thoughts each counted once.

    ``position`` is that of its latest thought that does, and ``snippet`` is of it.
    """

    id: UUID
    session_id: str | None
    status: str
    title: str
    snippet: str
    mentions: int
    entities: int
    position: int


@dataclass(frozen=True, slots=True)
class BesideEntity:
    """An entity, in how many of the latest thoughts that mention the others it is, too."""

    kind: str
    name: str
    thoughts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedEntities:
    """What was found in what is recorded up to ``position``, of how many in all.

    ``stale``: what was written up to the position asked for is not all in it yet.
    """

    entities: list[MentionedEntity] = field(default_factory=list[MentionedEntity])
    entities_total: int = 0
    chains: list[MentioningChain] = field(default_factory=list[MentioningChain])
    chains_total: int = 0
    together: list[BesideEntity] = field(default_factory=list[BesideEntity])
    position: int = 0
    stale: bool


class EntitySearch:
    """Asks the live read models ``entities`` and ``thoughts``."""

    def __init__(self, connections: LiveConnections) -> None:
        self._connections = connections

    async def related(
        self, tenant: str, asked: EntityQuestion, *, position: int
    ) -> RelatedEntities:
        """What is asked for as of *position*, waited for as lists do.

        Raises DatabaseUnavailableError.
        """
        seen = await self._connections.wait(position, Entities.name, Thoughts.name)
        try:
            return await self._search(tenant, asked, stale=not seen)
        except MISSING:
            return RelatedEntities(stale=True)  # no worker has built it yet

    async def _search(self, tenant: str, asked: EntityQuestion, *, stale: bool) -> RelatedEntities:
        ((_, position),) = await self._fetch(SELECT_POSITION)
        first_ids, matched = await self._matched(tenant, asked)
        if not matched:
            return RelatedEntities(position=position, stale=stale)
        mentioning = await self._fetch(
            SELECT_MENTIONING,
            ids=list(matched),
            first_ids=first_ids,
            chain_id=asked.chain_id,
            entities_max=ENTITIES_MAX,
            limit=asked.limit,
        )
        entities = [row for is_chain, *row in mentioning if not is_chain]
        chains = [row for is_chain, *row in mentioning if is_chain]
        return RelatedEntities(
            entities=[_entity(matched[id_], *counts) for id_, *counts in entities],
            entities_total=max((row[4] for row in entities), default=0),
            chains=await self._chains(tenant, chains, [matched[row[0]] for row in entities]),
            chains_total=max((row[4] for row in chains), default=0),
            together=await self._together(tenant, [id_ for id_, *_ in entities]),
            position=position,
            stale=stale,
        )

    async def _matched(
        self, tenant: str, asked: EntityQuestion
    ) -> tuple[Sequence[UUID], dict[UUID, Sequence[str]]]:
        """What is named by the question's own form, and all that it may mean."""
        said: dict[str, Any] = {"tenant": tenant, "kind": asked.kind}
        if asked.chain_id is not None:
            rows = await self._fetch(
                SELECT_OF_CHAIN, **said, chain_id=asked.chain_id, entities_max=ENTITIES_MAX
            )
            return [], {id_: row for id_, *row in rows}
        # In a thread, as all that goes through texts: a long one must not hold up other callers.
        names = await asyncio.to_thread(_names, tenant, asked)
        rows = await self._fetch(
            SELECT_MATCHED, **said, ids=names.ids, keys=names.keys, matched_max=MATCHED_MAX
        )
        return names.ids, {id_: row for id_, *row in rows}

    async def _chains(
        self, tenant: str, found: Sequence[Sequence[Any]], entities: Sequence[Sequence[str]]
    ) -> list[MentioningChain]:
        rows = await self._fetch(
            SELECT_CHAINS,
            tenant=tenant,
            chain_ids=[row[0] for row in found],
            positions=[row[3] for row in found],
            characters_max=TEXT_CHARACTERS_MAX,
        )
        weights = {term: 1.0 for *_, written in entities for term in terms_of(written)}
        shown = await asyncio.to_thread(_shown, rows, weights)
        return [
            MentioningChain(id_, *shown[id_], mentions, others, latest)
            for id_, mentions, others, latest, *_ in found
            if id_ in shown
        ]

    async def _together(self, tenant: str, ids: Sequence[UUID]) -> list[BesideEntity]:
        rows = await self._fetch(
            SELECT_TOGETHER,
            tenant=tenant,
            ids=ids,
            thoughts_max=TOGETHER_THOUGHTS_MAX,
            entities_max=ENTITIES_MAX,
        )
        return [BesideEntity(*row) for row in rows]

    async def _fetch(self, query: LiteralString, **parameters: Any) -> list[Any]:
        # Planned for these parameters: a name has one mention, or all there are.
        return await self._connections.reader.fetch(query, parameters, prepare=False)


def _names(tenant: str, asked: EntityQuestion) -> AskedEntities:
    if asked.entity is not None:
        return ask_by_name(tenant, asked.entity)
    return ask_by_text(tenant, asked.query or "")


def _entity(named: Sequence[str], mentions: int, chains: int, *_: Any) -> MentionedEntity:
    kind, name, written = named
    return MentionedEntity(kind, name, written, mentions, chains)


def _shown(
    rows: Sequence[Sequence[Any]], weights: Mapping[str, float]
) -> dict[UUID, tuple[str | None, str, str, str]]:
    return {
        id_: (session_id, status, snippet_of(title, {}), snippet_of(text or title, weights))
        for id_, session_id, status, title, text in rows
    }
