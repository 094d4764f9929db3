"""The read model ``entities``: what thoughts name, and how they hang together."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from uuid import UUID

from ledger.events import ThoughtRecorded
from ledger.serialization import Recorded
from projections.entity import Entity, entity_id_of, folded
from projections.entity_text import entities_of
from projections.links import LinkRows
from projections.projection import Change, Copy, Statement
from projections.text import shown

MENTION_COLUMNS = {
    "entity_id": "uuid",
    "position": "int8",
    "chain_id": "uuid",
    "thought_id": "uuid",
}

# An entity is shown as the earliest thought in the log has it, also when that one comes late.
# Most are known: they are found by the primary key and left alone.
UPSERT_ENTITIES = """
    INSERT INTO {schema}.entities AS known
           (id, tenant, kind, name, folded, short, written, position)
    SELECT id, tenant, kind, name, folded, short, written, position
      FROM unnest(
               %(ids)b::uuid[], %(tenants)s::text[], %(kinds)s::text[], %(names)s::text[],
               %(folded)s::text[], %(short)s::text[], %(written)s::text[], %(positions)b::int8[]
           ) AS said (id, tenant, kind, name, folded, short, written, position)
     WHERE coalesce(
               (SELECT earlier.position
                  FROM {schema}.entities AS earlier
                 WHERE earlier.id = said.id),
               said.position + 1
           ) > said.position
        ON CONFLICT (id) DO UPDATE
       SET written = excluded.written,
           position = excluded.position
"""


class Entities:
    """Files, symbols, packages, addresses and quoted names of thoughts, and links between these.

    Titles are left out: that of most chains is their first thought.
    """

    name = "entities"
    version = 1
    tables = ("entities", "entity_mentions", "thought_links")
    chain_columns = MappingProxyType({"entity_mentions": "chain_id", "thought_links": "chain_id"})
    rest_seconds = 0.02

    def changes(self, batch: Sequence[Recorded]) -> Iterator[Change]:
        named, links = _Named(), LinkRows()
        for recorded in batch:
            links.add(recorded)
            if isinstance(recorded.event, ThoughtRecorded):
                named.add(recorded, recorded.event)
        yield from named.changes()
        yield from links.changes()


class _Named:
    """Folds the thoughts of a batch into the entities they name and one row a mention."""

    def __init__(self) -> None:
        self._mentions: list[tuple[object, ...]] = []
        self._entities: dict[UUID, tuple[str, Entity, int]] = {}

    def add(self, recorded: Recorded, event: ThoughtRecorded) -> None:
        tenant = shown(recorded.header.tenant)
        position = recorded.position
        for entity in entities_of(event.text):
            id_ = entity_id_of(tenant, entity)
            self._mentions.append((id_, position, event.originator_id, event.thought_id))
            self._entities.setdefault(id_, (tenant, entity, position))

    def changes(self) -> Iterator[Change]:
        if not self._mentions:
            return
        said = self._entities.values()
        yield Statement(
            UPSERT_ENTITIES,
            {
                "ids": list(self._entities),
                "tenants": [tenant for tenant, _, _ in said],
                "kinds": [str(entity.kind) for _, entity, _ in said],
                "names": [entity.name for _, entity, _ in said],
                "folded": [folded(entity.name) for _, entity, _ in said],
                "short": [folded(entity.short) for _, entity, _ in said],
                "written": [entity.written for _, entity, _ in said],
                "positions": [position for _, _, position in said],
            },
        )
        yield Copy("entity_mentions", MENTION_COLUMNS, self._mentions)
