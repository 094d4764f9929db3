"""Which rows of ``trust`` the events of a batch touch, and how they are read."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ledger.events import (
    BranchClosed,
    ChainAbandoned,
    ChainCompleted,
    ChainRecalled,
    ChainStarted,
    FeedbackGiven,
    Outcome,
    Scope,
    ThoughtAbandoned,
    ThoughtBranched,
    ThoughtRecorded,
    ThoughtRevised,
)
from ledger.serialization import Recorded
from projections.projection import Deciding, Read
from projections.trust.fold import TrustFold
from projections.trust.state import Chain, Memory

SELECT_CHAINS = """
    SELECT chain_id, tenant, agent, completed, has_dead_ends, paused, paused_since
      FROM {schema}.trust_chains
     WHERE chain_id = ANY (%(chain_ids)b::uuid[])
"""

SELECT_CONFIRMATIONS = """
    SELECT chain_id, source
      FROM {schema}.trust_confirmations
     WHERE chain_id = ANY (%(chain_ids)b::uuid[])
"""

# The thoughts that are named; thoughts given up and those on branches given up, with all that hangs
# under them; the last thought, and the last of the trunk, of chains that are judged; whole chains.
# LATERAL with OFFSET 0 makes each step an index probe, whatever the planner thinks of a set it
# cannot know.
SELECT_MEMORIES = """
    WITH RECURSIVE given_up (thought_id) AS (
        SELECT seed.thought_id
          FROM unnest(%(given_up)b::uuid[]) AS seed (thought_id)
         UNION
        SELECT memory.thought_id
          FROM unnest(%(closed)b::uuid[], %(branches)b::bytea[]) AS closed (chain_id, branch)
          JOIN {schema}.trust_memories AS memory
            ON memory.chain_id = closed.chain_id AND memory.branch = closed.branch
    ), doomed (thought_id) AS (
        SELECT given_up.thought_id FROM given_up
         UNION
        SELECT child.thought_id
          FROM doomed
         CROSS JOIN LATERAL (
               SELECT memory.thought_id
                 FROM {schema}.trust_memories AS memory
                WHERE memory.parent_thought_id = doomed.thought_id
               OFFSET 0
         ) AS child
    ), last (thought_id) AS (
        SELECT memory.thought_id
          FROM unnest(%(judged)b::uuid[]) AS judged (chain_id)
         CROSS JOIN LATERAL (
               (SELECT thought.thought_id
                  FROM {schema}.trust_memories AS thought
                 WHERE thought.chain_id = judged.chain_id
                 ORDER BY thought.sequence DESC
                 LIMIT 1)
                UNION ALL
               (SELECT thought.thought_id
                  FROM {schema}.trust_memories AS thought
                 WHERE thought.chain_id = judged.chain_id AND thought.branch IS NULL
                 ORDER BY thought.sequence DESC
                 LIMIT 1)
         ) AS memory
    )
    SELECT thought_id, chain_id, tenant, sequence, position, parent_thought_id, branch, clock,
           value_millionths, agent_used, user_confirmed, agent_ignored, user_corrected, superseded,
           dead_end, last_signal_at
      FROM {schema}.trust_memories
     WHERE thought_id = ANY (ARRAY(
               SELECT named.thought_id FROM unnest(%(named)b::uuid[]) AS named (thought_id)
                UNION ALL
               SELECT doomed.thought_id FROM doomed
                UNION ALL
               SELECT last.thought_id FROM last
           ))
        OR chain_id = ANY (%(whole)b::uuid[])
"""


class Touched:
    """What a batch of events is about, of what is in the tables already."""

    def __init__(self, batch: Sequence[Recorded]) -> None:
        self.confirmed_by: dict[UUID, set[bytes]] = defaultdict(set)
        """Who had confirmed the chains that are confirmed in the batch; once it is loaded."""
        self._chains: set[UUID] = set()
        self._started: set[UUID] = set()
        self._added: set[UUID] = set()
        self._parents: defaultdict[UUID, set[UUID]] = defaultdict(set)
        self._thoughts: set[UUID] = set()
        self._whole: set[UUID] = set()
        self._judged: set[UUID] = set()
        self._confirmed: set[UUID] = set()
        self._given_up: set[UUID] = set()
        self._branches: set[tuple[UUID, bytes]] = set()
        for recorded in batch:
            if not isinstance(recorded.event, ChainRecalled):
                self._touch(recorded)

    def load(self, fold: TrustFold) -> Deciding:
        """Ask for it, and have the fold hold it.  A chain that starts in the batch has nothing."""
        chain_ids = self._chains - self._started
        if not chain_ids:
            return
        for row in (yield Read(SELECT_CHAINS, {"chain_ids": list(chain_ids)})):
            chain = Chain(*row)
            fold.chains[chain.id] = chain
        if confirmed := self._confirmed & chain_ids:
            for chain_id, source in (
                yield Read(SELECT_CONFIRMATIONS, {"chain_ids": list(confirmed)})
            ):
                self.confirmed_by[chain_id].add(source)
            for chain_id, sources in self.confirmed_by.items():
                fold.chains[chain_id].confirmed_by |= sources
        wanted = self._memories(chain_ids, fold)
        if any(wanted.values()):
            for row in (yield Read(SELECT_MEMORIES, wanted)):
                fold.hold(Memory(*row))

    def _memories(self, chain_ids: set[UUID], fold: TrustFold) -> dict[str, list[Any]]:
        """Of which thoughts the rows are needed: as a rule of none."""
        parents: set[UUID] = set()
        for chain_id in chain_ids & self._parents.keys():
            # Without dead ends it does not matter what a thought hangs under.
            if chain_id in fold.chains and fold.chains[chain_id].has_dead_ends:
                parents |= self._parents[chain_id]
        branches = [each for each in self._branches if each[0] in chain_ids]
        return {
            "named": list((self._thoughts | parents) - self._added),
            "given_up": list(self._given_up - self._added),
            "closed": [chain_id for chain_id, _ in branches],
            "branches": [branch for _, branch in branches],
            "judged": list(self._judged & chain_ids),
            "whole": list(self._whole & chain_ids),
        }

    def _touch(self, recorded: Recorded) -> None:
        chain_id = recorded.event.originator_id
        self._chains.add(chain_id)
        match recorded.event:
            case ChainStarted():
                self._started.add(chain_id)
            case ThoughtRecorded() as event:
                self._touch_by_thought(event)
            case ChainCompleted() | ChainAbandoned() | FeedbackGiven(scope=Scope.CHAIN):
                self._whole.add(chain_id)
                self._confirmed.add(chain_id)
            case FeedbackGiven(thought_id=None):
                self._judged.add(chain_id)
            case FeedbackGiven(thought_id=UUID() as thought_id):
                self._thoughts.add(thought_id)
            case ThoughtAbandoned(thought_id=thought_id):
                self._given_up.add(thought_id)
            case BranchClosed(outcome=Outcome.ABANDONED, branch_id=branch_id):
                self._branches.add((chain_id, branch_id.encode()))
            case _:
                pass  # about the chain alone

    def _touch_by_thought(self, event: ThoughtRecorded) -> None:
        self._added.add(event.thought_id)
        if event.parent_thought_id is not None:
            self._parents[event.originator_id].add(event.parent_thought_id)
        if isinstance(event, ThoughtRevised | ThoughtBranched) and event.revises_thought_id:
            self._thoughts.add(event.revises_thought_id)
