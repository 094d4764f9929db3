"""The rows of ``trust`` after a batch: new ones, and those its events have changed."""

from collections.abc import Collection, Iterator, Mapping
from uuid import UUID

from projections.identity import memory_id_of
from projections.projection import Change, Copy, Statement
from projections.trust.fold import TrustFold
from projections.trust.state import Chain, Memory, Recalls

CHAIN_COLUMNS = {
    "chain_id": "uuid",
    "tenant": "text",
    "agent": "text",
    "completed": "bool",
    "has_dead_ends": "bool",
    "paused": "int8",
    "paused_since": "int8",
}

CONFIRMATION_COLUMNS = {"chain_id": "uuid", "source": "bytea"}

MEMORY_COLUMNS = {
    "thought_id": "uuid",
    "memory_id": "uuid",
    "chain_id": "uuid",
    "tenant": "text",
    "sequence": "int8",
    "position": "int8",
    "parent_thought_id": "uuid",
    "branch": "bytea",
    "clock": "int8",
    "value_millionths": "int4",
    "agent_used": "int4",
    "user_confirmed": "int4",
    "agent_ignored": "int4",
    "user_corrected": "int4",
    "superseded": "int4",
    "dead_end": "bool",
    "last_signal_at": "timestamptz",
}

UPDATE_CHAINS = """
    UPDATE {schema}.trust_chains AS chain
       SET completed = changed.completed,
           has_dead_ends = changed.has_dead_ends,
           paused = changed.paused,
           paused_since = changed.paused_since
      FROM unnest(
               %(ids)b::uuid[], %(completed)b::bool[], %(has_dead_ends)b::bool[],
               %(paused)b::int8[], %(paused_since)b::int8[]
           ) AS changed (chain_id, completed, has_dead_ends, paused, paused_since)
     WHERE chain.chain_id = changed.chain_id
"""

UPDATE_MEMORIES = """
    UPDATE {schema}.trust_memories AS memory
       SET clock = changed.clock,
           value_millionths = changed.value_millionths,
           agent_used = changed.agent_used,
           user_confirmed = changed.user_confirmed,
           agent_ignored = changed.agent_ignored,
           user_corrected = changed.user_corrected,
           superseded = changed.superseded,
           dead_end = changed.dead_end,
           last_signal_at = changed.last_signal_at
      FROM unnest(
               %(ids)b::uuid[], %(clocks)b::int8[], %(values)b::int4[], %(used)b::int4[],
               %(confirmed)b::int4[], %(ignored)b::int4[], %(corrected)b::int4[],
               %(superseded)b::int4[], %(dead_ends)b::bool[], %(signalled)b::timestamptz[]
           ) AS changed (
               thought_id, clock, value_millionths, agent_used, user_confirmed, agent_ignored,
               user_corrected, superseded, dead_end, last_signal_at
           )
     WHERE memory.thought_id = changed.thought_id
"""

UPSERT_RECALLS = """
    INSERT INTO {schema}.trust_recalls AS recall
           (thought_id, stream_id, recalls, last_recalled_at)
    SELECT more.thought_id, more.stream_id, more.recalls, more.last_recalled_at
      FROM unnest(
               %(ids)b::uuid[], %(stream_ids)b::uuid[], %(recalls)b::int8[],
               %(last_ats)b::timestamptz[]
           ) AS more (thought_id, stream_id, recalls, last_recalled_at)
        ON CONFLICT (thought_id) DO UPDATE
       SET recalls = recall.recalls + excluded.recalls,
           last_recalled_at = greatest(recall.last_recalled_at, excluded.last_recalled_at)
"""


def changes_of(
    fold: TrustFold,
    known_chains: Collection[UUID],
    known: Collection[UUID],
    confirmed_by: Mapping[UUID, set[bytes]],
) -> Iterator[Change]:
    """What the fold has touched, of which these chains, thoughts and confirmations had rows."""
    chains = [chain for chain in fold.chains.values() if chain.id in fold.touched_chains]
    memories = [each for each in fold.memories.values() if each.thought_id in fold.touched]
    yield from _chain_changes(chains, known_chains)
    confirmations = [
        (chain.id, source)
        for chain in fold.chains.values()
        for source in sorted(chain.confirmed_by - confirmed_by.get(chain.id, set()))
    ]
    if confirmations:
        yield Copy("trust_confirmations", CONFIRMATION_COLUMNS, confirmations)
    yield from _memory_changes(memories, known)
    if fold.recalls:
        yield _recalled([*fold.recalls.values()])


def _chain_changes(chains: list[Chain], known: Collection[UUID]) -> Iterator[Change]:
    new = [chain for chain in chains if chain.id not in known]
    changed = [chain for chain in chains if chain.id in known]
    if new:
        rows = [
            (
                chain.id,
                chain.tenant,
                chain.agent,
                chain.completed,
                chain.has_dead_ends,
                chain.paused,
                chain.paused_since,
            )
            for chain in new
        ]
        yield Copy("trust_chains", CHAIN_COLUMNS, rows)
    if changed:
        yield Statement(
            UPDATE_CHAINS,
            {
                "ids": [chain.id for chain in changed],
                "completed": [chain.completed for chain in changed],
                "has_dead_ends": [chain.has_dead_ends for chain in changed],
                "paused": [chain.paused for chain in changed],
                "paused_since": [chain.paused_since for chain in changed],
            },
        )


def _memory_changes(memories: list[Memory], known: Collection[UUID]) -> Iterator[Change]:
    new = [_row(memory) for memory in memories if memory.thought_id not in known]
    changed = [memory for memory in memories if memory.thought_id in known]
    if new:
        yield Copy("trust_memories", MEMORY_COLUMNS, new)
    if changed:
        yield Statement(
            UPDATE_MEMORIES,
            {
                "ids": [memory.thought_id for memory in changed],
                "clocks": [memory.clock for memory in changed],
                "values": [memory.value for memory in changed],
                "used": [memory.agent_used for memory in changed],
                "confirmed": [memory.user_confirmed for memory in changed],
                "ignored": [memory.agent_ignored for memory in changed],
                "corrected": [memory.user_corrected for memory in changed],
                "superseded": [memory.superseded for memory in changed],
                "dead_ends": [memory.dead_end for memory in changed],
                "signalled": [memory.last_signal_at for memory in changed],
            },
        )


def _row(memory: Memory) -> tuple[object, ...]:
    return (
        memory.thought_id,
        memory_id_of(memory.thought_id),
        memory.chain_id,
        memory.tenant,
        memory.sequence,
        memory.position,
        memory.parent_thought_id,
        memory.branch,
        memory.clock,
        memory.value,
        memory.agent_used,
        memory.user_confirmed,
        memory.agent_ignored,
        memory.user_corrected,
        memory.superseded,
        memory.dead_end,
        memory.last_signal_at,
    )


def _recalled(recalls: list[Recalls]) -> Statement:
    return Statement(
        UPSERT_RECALLS,
        {
            "ids": [each.thought_id for each in recalls],
            "stream_ids": [each.stream_id for each in recalls],
            "recalls": [each.count for each in recalls],
            "last_ats": [each.last_at for each in recalls],
        },
    )
