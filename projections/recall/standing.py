"""How what was found stands now: given up, revised, corrected or not, and trusted how far."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString
from uuid import UUID

import psycopg

from ledger.reader import Reader
from projections.identity import content_hash_of
from projections.recall.candidates import Candidate
from projections.recall.filters import Bounds
from projections.trust.policy import FLOOR

SELECT_THOUGHTS = """
    SELECT id, abandoned, revised_by_thought_id, content_hash = %(content_hash)s
      FROM live.thoughts
     WHERE id = ANY (%(thought_ids)s)
"""

SELECT_CONTRADICTED = """
    SELECT to_thought_id
      FROM live.thought_links
     WHERE kind = 'contradicts' AND to_thought_id = ANY (%(thought_ids)s)
"""

SELECT_TRUST = """
    SELECT thought_id, score::float8, dead_end
      FROM live.memory_trust
     WHERE thought_id = ANY (%(thought_ids)s)
"""

SELECT_TRUSTED = """
    SELECT thought_id
      FROM live.memory_trust
     WHERE tenant = %(tenant)s AND score >= %(trust_min)s
"""

# A value below the floor does not decay, and none decays to below it: it is archived, or not, for
# as long as no signal comes.
SELECT_ARCHIVED = """
    WITH archived AS MATERIALIZED (
        SELECT thought_id, chain_id
          FROM live.trust_memories
         WHERE tenant = %(tenant)s AND value_millionths < %(floor)s
    )
    SELECT ARRAY(SELECT thought_id FROM archived),
           ARRAY(SELECT chain_id
                   FROM live.trust_memories
                  WHERE chain_id = ANY (ARRAY(SELECT chain_id FROM archived))
                  GROUP BY chain_id
                 HAVING max(value_millionths) < %(floor)s)
"""

SELECT_CHAIN_TRUST = """
    SELECT chain_id, score::float8
      FROM live.chain_trust
     WHERE chain_id = ANY (%(chain_ids)s) AND score IS NOT NULL
"""

# Until a worker has built the read model of trust, nothing is known of any.
UNKNOWN = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


class Standing:
    """Asks ``live.thoughts``, ``live.memory_trust`` and ``live.chain_trust``."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def bounds(self, tenant: str, trust_min: float | None) -> Bounds:
        """What is left out for the trust it has: by default what is archived, at 0 nothing."""
        if trust_min is None:
            asked = {"tenant": tenant, "floor": FLOOR}
            for archived, chains in await self._known(SELECT_ARCHIVED, asked):
                return Bounds(archived=archived, archived_chains=chains)
        if not trust_min:
            return Bounds()
        # Without the read model of trust there is no answer to that.
        asked = {"tenant": tenant, "trust_min": trust_min}
        rows = await self._reader.fetch(SELECT_TRUSTED, asked)
        return Bounds(trusted=[thought_id for (thought_id,) in rows])

    async def judge(self, candidates: Sequence[Candidate], query: str) -> None:
        """Note what is known of them."""
        thought_ids = [text.thought_id for text in candidates if text.thought_id is not None]
        asked = {"thought_ids": thought_ids, "content_hash": content_hash_of(query)}
        thoughts = {row[0]: row[1:] for row in await self._reader.fetch(SELECT_THOUGHTS, asked)}
        trust = {row[0]: row[1:] for row in await self._known(SELECT_TRUST, asked)}
        contradicted = {row[0] for row in await self._known(SELECT_CONTRADICTED, asked)}
        for text in candidates:
            if text.thought_id is not None:
                text.dead_end, text.superseded_by, text.is_verbatim = thoughts.get(
                    text.thought_id, (False, None, False)
                )
                text.contradicted = text.thought_id in contradicted
                # Trust knows of branches that were given up, too.
                text.trust, of_a_branch = trust.get(text.thought_id, (None, False))
                text.dead_end = text.dead_end or of_a_branch

    async def of_chains(self, chain_ids: Iterable[UUID]) -> Mapping[UUID, float]:
        """The trust of chains, from 0 to 1: the mean over their live thoughts."""
        return dict(await self._known(SELECT_CHAIN_TRUST, {"chain_ids": list(chain_ids)}))

    async def _known(
        self, query: LiteralString, parameters: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """What a read model says that may not have been built yet."""
        try:
            return await self._reader.fetch(query, parameters)
        except UNKNOWN:
            return []
