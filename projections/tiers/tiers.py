"""What the tiers are made of, asked of the live read models: ``thoughts`` and ``trust``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from projections.live import LiveConnections
from projections.recall.standing import UNKNOWN
from projections.thoughts import Thoughts
from projections.tiers.text import (
    AVOIDED,
    SOLVED,
    Best,
    Identity,
    Pattern,
    TrustedMemory,
    identity_text,
    summary_text,
)
from projections.trust.projection import Trust

T = TypeVar("T")

PROMOTED_MILLIONTHS = 800_000
KNOWN_MILLIONTHS = 500_000
# A dead end that was read so often is worth a line.
RECALLS_MIN = 2
# Of each kind: more than there is room for.
LINES_MAX = 100
TITLES_MAX = 3
AGENTS_MAX = 3
# Of a thought or title there is no need for more.
CHARACTERS_MAX = 1_000

SELECT_POSITION = """
    SELECT least(thoughts.position, trust.position)
      FROM live.thoughts_checkpoint AS thoughts
     CROSS JOIN live.trust_checkpoint AS trust
"""

SELECT_COUNTS = """
    SELECT count(*), coalesce(sum(thought_count), 0)::int8, count(DISTINCT session_id)
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
"""

SELECT_AGENTS = """
    SELECT agent
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
     GROUP BY agent
     ORDER BY count(*) DESC, agent
     LIMIT %(agents_max)s
"""

# The scores of the latest chains only: each is a mean over its thoughts.
SELECT_TITLES = """
    WITH latest AS MATERIALIZED (
        SELECT id, title, updated_at
          FROM live.thought_chains
         WHERE tenant = %(tenant)s AND status <> 'abandoned' AND title <> ''
         ORDER BY updated_at DESC, id
         LIMIT 20
    )
    SELECT left(latest.title, %(characters_max)s)
      FROM live.chain_trust AS trust
      JOIN latest ON latest.id = trust.chain_id
     WHERE trust.chain_id = ANY (ARRAY(SELECT id FROM latest))
       AND trust.score_millionths >= %(known)s
     ORDER BY latest.updated_at DESC, latest.id
     LIMIT %(titles_max)s
"""

# A value only rises by a signal, and a score is never above its value: so what is promoted now is
# among the values that are, and the mean of a chain is never above its best.
SELECT_SOLVED = """
    WITH candidate AS MATERIALIZED (
        SELECT DISTINCT chain_id
          FROM live.trust_memories
         WHERE tenant = %(tenant)s AND value_millionths >= %(promoted)s
    ), promoted AS MATERIALIZED (
        SELECT chain.id, chain.session_id, chain.title, chain.conclusion, trust.score_millionths,
               count(*) OVER () AS total
          FROM live.chain_trust AS trust
          JOIN live.thought_chains AS chain ON chain.id = trust.chain_id
         WHERE trust.chain_id = ANY (ARRAY(SELECT chain_id FROM candidate))
           AND trust.score_millionths >= %(promoted)s
           AND chain.status <> 'abandoned'
           AND (%(session_id)s::text IS NULL OR chain.session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR chain.agent = %(agent)s)
         ORDER BY trust.score_millionths DESC, chain.updated_at DESC, chain.id
         LIMIT %(limit)s
    )
    SELECT promoted.id, promoted.session_id,
           left(promoted.title, %(characters_max)s),
           left(coalesce(nullif(promoted.conclusion, ''), last.thought), %(characters_max)s),
           promoted.score_millionths / 1000000.0::float8,
           first.position, last.position, promoted.total
      FROM promoted
     CROSS JOIN LATERAL (
           SELECT position FROM live.thoughts WHERE chain_id = promoted.id ORDER BY sequence LIMIT 1
     ) AS first
     CROSS JOIN LATERAL (
           SELECT thought, position
             FROM live.thoughts
            WHERE chain_id = promoted.id AND NOT abandoned
            ORDER BY branch_id IS NULL DESC, sequence DESC
            LIMIT 1
     ) AS last
     ORDER BY promoted.score_millionths DESC, last.position DESC
"""

# Few thoughts are ever recalled, so these are gone through; of each chain the one recalled most.
# Trust knows of branches that were given up, too.  Texts and scores of those that are shown alone:
# joined, a score would be the mean of every chain there is.
SELECT_AVOIDED = """
    WITH recalled AS MATERIALIZED (
        SELECT thought_id, recalls FROM live.trust_recalls WHERE recalls >= %(recalls_min)s
    ), dead_end AS (
        SELECT DISTINCT ON (memory.chain_id)
               memory.chain_id, memory.thought_id, memory.position, recalled.recalls,
               chain.session_id, chain.title
          FROM recalled
          JOIN live.trust_memories AS memory ON memory.thought_id = recalled.thought_id
          JOIN live.thought_chains AS chain ON chain.id = memory.chain_id
         WHERE memory.tenant = %(tenant)s
           AND (memory.dead_end OR chain.status = 'abandoned')
           AND (%(session_id)s::text IS NULL OR chain.session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR chain.agent = %(agent)s)
         ORDER BY memory.chain_id, recalled.recalls DESC, NOT memory.dead_end, memory.sequence
    ), foremost AS MATERIALIZED (
        SELECT *, count(*) OVER () AS total
          FROM dead_end
         ORDER BY recalls DESC, position DESC
         LIMIT %(limit)s
    )
    SELECT foremost.chain_id, foremost.session_id, left(foremost.title, %(characters_max)s),
           left(thought.thought, %(characters_max)s),
           (SELECT trust.score::float8
              FROM live.chain_trust AS trust
             WHERE trust.chain_id = foremost.chain_id),
           foremost.recalls, foremost.position, foremost.total
      FROM foremost
      JOIN live.thoughts AS thought ON thought.id = foremost.thought_id
     ORDER BY foremost.recalls DESC, foremost.position DESC
"""

# The texts of those that are shown alone.
SELECT_MEMORIES = """
    WITH foremost AS (
        SELECT chain_id, thought_id, score_millionths, score, position, count(*) OVER () AS total
          FROM live.memory_trust
         WHERE tenant = %(tenant)s
           AND value_millionths >= %(promoted)s
           AND score_millionths >= %(promoted)s
           AND counts
         ORDER BY score_millionths DESC, position DESC
         LIMIT %(limit)s
    )
    SELECT foremost.chain_id, foremost.thought_id, left(thought.thought, %(characters_max)s),
           foremost.score::float8, foremost.position, foremost.total
      FROM foremost
      JOIN live.thoughts AS thought ON thought.id = foremost.thought_id
     ORDER BY foremost.score_millionths DESC, foremost.position DESC
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """L1, as text and as its patterns; made of what was recorded up to ``position``.

    ``total`` patterns there are, of which ``patterns`` are the best.
    """

    text: str = ""
    patterns: Sequence[Pattern] = ()
    total: int = 0
    position: int = 0
    stale: bool


class Tiers:
    """Asks for one tier at a time."""

    def __init__(self, connections: LiveConnections) -> None:
        self._connections = connections

    async def identity(self, tenant: str) -> str:
        """L0.  Raises DatabaseUnavailableError."""
        counted = await self._rows(SELECT_COUNTS, tenant)
        if not counted:
            return identity_text(Identity(chains=0, thoughts=0, sessions=0, agents=[], titles=[]))
        ((chains, thoughts, sessions),) = counted
        agents = await self._rows(SELECT_AGENTS, tenant)
        titles = await self._rows(SELECT_TITLES, tenant)
        return identity_text(
            Identity(
                chains=chains,
                thoughts=thoughts,
                sessions=sessions,
                agents=[agent for (agent,) in agents],
                titles=[title for (title,) in titles],
            )
        )

    async def summary(
        self,
        tenant: str,
        *,
        session_id: str | None = None,
        agent: str | None = None,
        limit: int = LINES_MAX,
        position: int = 0,
    ) -> Summary:
        """L1 as of *position*, waited for as lists do; with patterns of a session or agent only.

        *limit* is how many of a kind at most, which are the best; those left out are counted.
        Raises DatabaseUnavailableError.
        """
        seen = await self._connections.wait(position, Thoughts.name, Trust.name)
        built = await self._rows(SELECT_POSITION, tenant)
        if not built:
            return Summary(stale=True)
        ((as_of,),) = built
        narrowed = {"session_id": session_id, "agent": agent, "limit": limit}
        solved = _best(_solved, await self._rows(SELECT_SOLVED, tenant, **narrowed))
        avoided = _best(_avoided, await self._rows(SELECT_AVOIDED, tenant, **narrowed))
        memories: Best[TrustedMemory] = Best()
        if session_id is None and agent is None:
            memories = _best(_memory, await self._rows(SELECT_MEMORIES, tenant, limit=limit))
        return Summary(
            text=summary_text(solved, avoided, memories),
            patterns=[*solved.rows, *avoided.rows],
            total=solved.total + avoided.total,
            position=as_of,
            stale=not seen,
        )

    async def _rows(self, query: Any, tenant: str, **parameters: object) -> list[tuple[Any, ...]]:
        known = {
            "tenant": tenant,
            "promoted": PROMOTED_MILLIONTHS,
            "known": KNOWN_MILLIONTHS,
            "recalls_min": RECALLS_MIN,
            "characters_max": CHARACTERS_MAX,
            "titles_max": TITLES_MAX,
            "agents_max": AGENTS_MAX,
        }
        try:
            return await self._connections.reader.fetch(query, known | parameters, prepare=False)
        except UNKNOWN:  # no worker has built it yet
            return []


def _best(read: Callable[[tuple[Any, ...]], T], rows: Sequence[tuple[Any, ...]]) -> Best[T]:
    """Rows that end with how many there would be without a limit."""
    return Best([read(row[:-1]) for row in rows], rows[0][-1] if rows else 0)


def _solved(row: tuple[Any, ...]) -> Pattern:
    chain_id, session_id, title, approach, trust, first, last = row
    return Pattern(
        kind=SOLVED,
        chain_id=chain_id,
        session_id=session_id,
        title=title,
        approach=approach,
        trust=float(trust),
        recalls=0,
        positions=sorted({first, last}),
    )


def _avoided(row: tuple[Any, ...]) -> Pattern:
    chain_id, session_id, title, approach, trust, recalls, position = row
    return Pattern(
        kind=AVOIDED,
        chain_id=chain_id,
        session_id=session_id,
        title=title,
        approach=approach,
        trust=trust,
        recalls=recalls,
        positions=[position],
    )


def _memory(row: tuple[Any, ...]) -> TrustedMemory:
    chain_id, thought_id, text, trust, position = row
    return TrustedMemory(
        chain_id=chain_id, thought_id=thought_id, text=text, trust=trust, position=position
    )
