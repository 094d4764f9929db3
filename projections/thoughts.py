"""The read model ``thoughts``: one row a chain, one row a thought, one row a memory."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from ledger.events import ThoughtAbandoned, ThoughtBranched, ThoughtRecorded, ThoughtRevised
from ledger.serialization import Recorded
from projections.chains import ChainRows
from projections.identity import content_hash_of, memory_id_of
from projections.memories import MemoryRows
from projections.projection import Change, Copy, Statement
from projections.text import shown, shown_or_none

COLUMNS = {
    "revised_by_thought_id": "uuid",
    "id": "uuid",
    "chain_id": "uuid",
    "sequence": "int8",
    "thought": "text",
    "thought_number": "int8",
    "total_thoughts": "int8",
    "next_thought_needed": "bool",
    "needs_more_thoughts": "bool",
    "is_revision": "bool",
    "revises_thought_number": "int8",
    "revises_thought_id": "uuid",
    "branch_from_thought_number": "int8",
    "branch_from_thought_id": "uuid",
    "branch_id": "text",
    "abandoned": "bool",
    "parent_thought_id": "uuid",
    "confidence_millionths": "int8",
    "assumptions": "text[]",
    "critique": "text",
    "counter_argument": "text",
    "next_step_rationale": "text",
    "content_hash": "bytea",
    "memory_id": "uuid",
    "tenant": "text",
    "agent": "text",
    "client": "text",
    "position": "int8",
    "created_at": "timestamptz",
}

UPDATE_REVISED = """
    UPDATE {schema}.thoughts AS thought
       SET revised_by_thought_id = revision.by_id
      FROM unnest(%(ids)b::uuid[], %(by_ids)b::uuid[]) AS revision (id, by_id)
     WHERE thought.id = revision.id
"""

# Given up are the seeds and all that hangs under them.  Seeds are the thoughts given up in this
# batch, and dead parents from before it that got children in it.  What is dead already is not
# gone through again: all under it is dead too.  LATERAL with OFFSET 0 and the ARRAY make each
# step an index probe, whatever the planner thinks of the size of a set it cannot know.
UPDATE_ABANDONED = """
    WITH RECURSIVE dead (id) AS (
        SELECT seed.id
          FROM unnest(%(given_up)b::uuid[]) AS seed (id)
         UNION
        SELECT parent.id
          FROM {schema}.thoughts AS parent
         WHERE parent.id = ANY (%(parents)b::uuid[]) AND parent.abandoned
    ), doomed (id) AS (
        SELECT dead.id FROM dead
         UNION
        SELECT child.id
          FROM doomed
         CROSS JOIN LATERAL (
               SELECT thought.id
                 FROM {schema}.thoughts AS thought
                WHERE thought.parent_thought_id = doomed.id AND NOT thought.abandoned
               OFFSET 0
         ) AS child
    )
    UPDATE {schema}.thoughts AS thought
       SET abandoned = true
     WHERE thought.id = ANY (ARRAY(SELECT doomed.id FROM doomed)) AND NOT thought.abandoned
"""


class Thoughts:
    """Chains and thoughts as agents and auditors list, page and search them."""

    name = "thoughts"
    version = 2
    tables = ("thought_chains", "thoughts", "memories")
    chain_columns = MappingProxyType(
        {"thought_chains": "id", "thoughts": "chain_id", "memories": "chain_id"}
    )
    rest_seconds = 0.0

    def changes(self, batch: Sequence[Recorded]) -> Iterator[Change]:
        chains, thoughts = ChainRows(), _ThoughtRows()
        for recorded in batch:
            chains.add(recorded)
            match recorded.event:
                case ThoughtRecorded() as event:
                    thoughts.add(recorded, event)
                case ThoughtAbandoned(thought_id=thought_id):
                    thoughts.given_up.append(thought_id)
                case _:
                    pass  # not this table's business
        yield from chains.changes()
        yield from thoughts.changes()


class _ThoughtRows:
    """Folds the events of a batch into new rows and what happens to rows from before it."""

    def __init__(self) -> None:
        self.given_up: list[UUID] = []
        self._rows: list[list[Any]] = []
        self._rows_by_id: dict[UUID, list[Any]] = {}
        self._revised: dict[UUID, UUID] = {}
        self._parents: set[UUID] = set()
        self._memories = MemoryRows()

    def add(self, recorded: Recorded, event: ThoughtRecorded) -> None:
        is_revision, revises_number, revises_id, branch_from_id = False, None, None, None
        if isinstance(event, ThoughtRevised | ThoughtBranched):
            revises_number = event.revises_thought_number
            revises_id = event.revises_thought_id
            is_revision = True
        if isinstance(event, ThoughtBranched):
            is_revision = event.is_revision
            branch_from_id = event.branch_from_thought_id
        if revises_id is not None:
            self._revise(revises_id, event.thought_id)
        parent_id = event.parent_thought_id
        if parent_id is not None and parent_id not in self._rows_by_id:
            self._parents.add(parent_id)
        header = recorded.header
        text, tenant = shown(event.text), shown(header.tenant)
        memory_id = memory_id_of(event.thought_id)
        content_hash = content_hash_of(event.text)
        row = [
            None,
            event.thought_id,
            event.originator_id,
            event.sequence,
            text,
            event.thought_number,
            event.total_thoughts,
            event.next_thought_needed,
            event.needs_more_thoughts,
            is_revision,
            revises_number,
            revises_id,
            event.branch_from_thought_number,
            branch_from_id,
            shown_or_none(event.branch_id),
            False,
            parent_id,
            event.confidence_millionths,
            event.assumptions and [shown(text) for text in event.assumptions],
            shown_or_none(event.critique),
            shown_or_none(event.counter_argument),
            shown_or_none(event.next_step_rationale),
            content_hash,
            memory_id,
            tenant,
            shown(header.actor),
            shown_or_none(header.client),
            recorded.position,
            event.timestamp,
        ]
        self._rows.append(row)
        self._rows_by_id[event.thought_id] = row
        self._memories.add(
            recorded,
            event,
            memory_id=memory_id,
            text=text,
            content_hash=content_hash,
            tenant=tenant,
        )

    def changes(self) -> Iterator[Change]:
        if self._rows:
            yield Copy("thoughts", COLUMNS, self._rows)
        yield from self._memories.changes()
        if self._revised:
            yield Statement(
                UPDATE_REVISED,
                {"ids": list(self._revised), "by_ids": list(self._revised.values())},
            )
        if self.given_up or self._parents:
            yield Statement(
                UPDATE_ABANDONED, {"given_up": self.given_up, "parents": list(self._parents)}
            )

    def _revise(self, thought_id: UUID, by_id: UUID) -> None:
        row = self._rows_by_id.get(thought_id)
        if row is None:
            self._revised[thought_id] = by_id
        else:
            row[0] = by_id
