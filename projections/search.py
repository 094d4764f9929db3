"""Search of chains by the words of their thoughts and titles: BM25, one row a chain, best first."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from projections.live import LiveConnections
from projections.question import AskedTerms, ask, weigh
from projections.snippets import snippet_of
from projections.terms import BLOCK_BITS, PLACE_SHIFT, TIMES_MAX, TIMES_SHIFT, Terms
from projections.thoughts import Thoughts
from projections.tokens import TEXT_CHARACTERS_MAX

RELATED_CHAINS_MAX = 50
# A question goes through so many entries of its terms, from the rarest term on.  If that leaves
# too few chains, all its terms are looked for in so many of the latest blocks in which allowed
# chains that were not found have texts.
ENTRIES_MAX = 100_000
BLOCKS_MAX = 64
# So many chains are looked at for dead ends, and so many texts of each.
LEADING_CHAINS_MAX = 200
LEADING_TEXTS_MAX = 50

# BM25's usual saturation by repetition, and its weight of a text's length.
SATURATION = 1.2
LENGTH_WEIGHT = 0.75
# What a dead end is worth of what it would be otherwise, and what a title is: less, for the title
# of most chains is their first thought, and must not stand for it when that was given up.
DEAD_END_WEIGHT = 0.5
TITLE_WEIGHT = 0.4
SCORE_DIGITS = 6

# The compiler of plans takes longer than the questions: the guess at their size is far too great.
SELECT_TOTALS = """
    SELECT set_config('jit', 'off', false),
           least(thoughts.position, terms.position),
           coalesce(total.texts, 0),
           coalesce(total.terms, 0)
      FROM live.thoughts_checkpoint AS thoughts
     CROSS JOIN live.terms_checkpoint AS terms
      LEFT JOIN live.term_totals AS total ON total.tenant = %(tenant)s
"""

SELECT_FREQUENCIES = """
    SELECT term, sum(cardinality(entries))
      FROM live.terms
     WHERE tenant = %(tenant)s AND term = ANY (%(terms)s)
     GROUP BY term
"""

SELECT_BLOCKS = """
    SELECT DISTINCT position >> %(block_bits)s AS block
      FROM live.term_texts
     WHERE (chain_id IN (
               SELECT id
                 FROM live.thought_chains
                WHERE tenant = %(tenant)s
                  AND status = ANY (%(statuses)s)
                  AND id <> ALL (%(known)s)
                  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
                  AND (%(agent)s::text IS NULL OR agent = %(agent)s)
           )) IS TRUE
     ORDER BY block DESC
     LIMIT %(blocks_max)s
"""

# The share of a text: what it has of the sum a text could get, which is 1 for the exact text.
# Before the tables are analysed the planner takes each for a row or two and goes through one again
# for every row of another.  So there is no join but by an index: IS TRUE keeps the allowed chains a
# set that is looked into, and arrays take the texts of the foremost chains along.
SELECT_RELATED = """
    WITH allowed AS MATERIALIZED (
        SELECT id
          FROM live.thought_chains
         WHERE tenant = %(tenant)s
           AND status = ANY (%(statuses)s)
           AND id <> ALL (%(known)s)
           AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR agent = %(agent)s)
    ), entry AS (
        SELECT term.block, asked.weight, unnest(term.entries) AS bits
          FROM unnest(%(terms)s::text[], %(weights)s::float8[]) AS asked (term, weight)
          JOIN live.terms AS term
            ON term.term = asked.term AND term.tenant = %(tenant)s
           AND term.block >= %(first_block)s
           AND (%(blocks)s::int8[] IS NULL OR term.block = ANY (%(blocks)s))
    ), part AS (
        SELECT (block << %(block_bits)s) + (bits >> %(place_shift)s) AS position,
               (bits >> %(times_shift)s) & %(times_max)s AS times,
               bits & ((1 << %(times_shift)s) - 1) AS length,
               weight
          FROM entry
    ), found AS (
        SELECT position, least(sum(share), 1) AS share
          FROM (SELECT position,
                       weight * times / (times + %(fixed)s + %(per_term)s * length) AS share
                  FROM part
                 UNION ALL
                SELECT position, 1
                  FROM live.term_texts
                 WHERE digest = %(digest)s AND tenant = %(tenant)s) AS share
         GROUP BY position
    ), matched AS (
        SELECT text.chain_id AS id, text.thought_id, text.position, found.share
          FROM found
          JOIN live.term_texts AS text ON text.position = found.position
         WHERE (text.chain_id IN (SELECT id FROM allowed)) IS TRUE
    ), foremost AS (
        SELECT id,
               array_agg(position) AS positions,
               array_agg(thought_id) AS thought_ids,
               array_agg(share) AS shares
          FROM matched
         GROUP BY id
         ORDER BY max(share) DESC, max(position) DESC
         LIMIT %(leading_chains_max)s
    ), ranked AS (
        SELECT foremost.id, text.thought_id, text.position, text.share,
               row_number() OVER (
                   PARTITION BY foremost.id ORDER BY text.share DESC, text.position DESC
               ) AS rank
          FROM foremost
         CROSS JOIN LATERAL unnest(positions, thought_ids, shares)
               AS text (position, thought_id, share)
    ), weighed AS (
        SELECT DISTINCT ON (ranked.id)
               ranked.id, ranked.thought_id, ranked.position,
               coalesce(thought.abandoned, false) AS dead_end,
               round(
                   CASE
                       WHEN ranked.thought_id IS NULL THEN share * %(title_weight)s
                       WHEN thought.abandoned AND share < 1 THEN share * %(dead_end_weight)s
                       ELSE share
                   END::numeric, %(score_digits)s
               ) AS score
          FROM ranked
          LEFT JOIN live.thoughts AS thought ON thought.id = ranked.thought_id
         WHERE ranked.rank <= %(leading_texts_max)s
         ORDER BY ranked.id, score DESC, dead_end, ranked.position DESC
    ), best AS (
        SELECT id, thought_id, position, dead_end, score
          FROM weighed
         ORDER BY score DESC, dead_end, position DESC
         LIMIT %(limit)s
    )
    SELECT chain.id, chain.session_id, chain.status, chain.thought_count,
           best.score::float8, best.dead_end,
           left(coalesce(thought.thought, chain.title), %(characters_max)s)
      FROM best
      JOIN live.thought_chains AS chain ON chain.id = best.id
      LEFT JOIN live.thoughts AS thought ON thought.id = best.thought_id
     ORDER BY best.score DESC, best.dead_end, best.position DESC
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedFilter:
    """Which chains may be found: those of all that is not None, and of one of *statuses*.

    ``limit`` is at most RELATED_CHAINS_MAX.
    """

    statuses: Sequence[str]
    session_id: str | None = None
    agent: str | None = None
    limit: int = RELATED_CHAINS_MAX


@dataclass(frozen=True, slots=True)
class RelatedChain:
    """A chain that was found.

    ``score`` goes from 0 to 1, which is for the exact text of a thought.  ``dead_end``: its best
    thought was given up.
    """

    id: UUID
    session_id: str | None
    status: str
    thought_count: int
    score: float
    dead_end: bool
    snippet: str


@dataclass(frozen=True, slots=True)
class RelatedChains:
    """Chains, the best first, found in what was recorded up to ``position``.

    ``stale``: what was written up to the position asked for is not all in it yet.
    """

    chains: list[RelatedChain]
    position: int
    stale: bool


class ChainSearch:
    """Asks the live read models ``terms`` and ``thoughts``."""

    def __init__(self, connections: LiveConnections, entries_max: int = ENTRIES_MAX) -> None:
        """Of the terms' entries *entries_max* are gone through for all chains."""
        self._connections = connections
        self._entries_max = entries_max

    async def related(
        self, tenant: str, query: str, wanted: RelatedFilter, *, position: int
    ) -> RelatedChains:
        """Chains with thoughts like *query* as of *position*, waited for as lists do.

        Raises DatabaseUnavailableError.
        """
        seen = await self._connections.wait(position, Thoughts.name, Terms.name)
        try:
            found = await self._search(tenant, query, wanted)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return RelatedChains([], 0, stale=True)  # no worker has built it yet
        return RelatedChains(*found, stale=not seen)

    async def _search(
        self, tenant: str, query: str, wanted: RelatedFilter
    ) -> tuple[list[RelatedChain], int]:
        reader = self._connections.reader
        ((_, position, texts, terms),) = await reader.fetch(SELECT_TOTALS, {"tenant": tenant})
        # In a thread, as all that goes through texts: a long one must not hold up other callers.
        asked, digest = await asyncio.to_thread(ask, query)
        rows = await reader.fetch(SELECT_FREQUENCIES, {"tenant": tenant, "terms": asked})
        known = weigh(asked, dict(rows), texts)
        parameters = _parameters(tenant, digest, wanted, terms / max(texts, 1))
        rarest = known.rarest(self._entries_max)
        entries = sum(known.entries[term] for term in rarest)
        if entries > self._entries_max:
            # One term in more texts than are gone through is looked for in the latest.
            parameters["first_block"] = position - self._entries_max >> BLOCK_BITS
        found = await self._find(known, rarest, parameters)
        is_all = entries == sum(known.entries.values()) <= self._entries_max
        if len(found) < wanted.limit and not is_all:
            found += await self._find_latest(known, found, parameters)
        return sorted(found, key=lambda chain: chain.score, reverse=True), position

    async def _find_latest(
        self, terms: AskedTerms, found: Sequence[RelatedChain], parameters: Mapping[str, Any]
    ) -> list[RelatedChain]:
        """Further chains, by all terms, in their latest texts."""
        further = {
            **parameters,
            "first_block": 0,
            "known": [chain.id for chain in found],
            "limit": parameters["limit"] - len(found),
        }
        rows = await self._connections.reader.fetch(SELECT_BLOCKS, further, prepare=False)
        further["blocks"] = [block for (block,) in rows]
        return await self._find(terms, list(terms.entries), further)

    async def _find(
        self, terms: AskedTerms, some: Sequence[str], parameters: Mapping[str, Any]
    ) -> list[RelatedChain]:
        weights = [terms.weights[term] for term in some]
        said = {**parameters, "terms": some, "weights": weights}
        rows = await self._connections.reader.fetch(SELECT_RELATED, said, prepare=False)
        return await asyncio.to_thread(_chains, rows, terms.weights)


def _parameters(
    tenant: str, digest: int | None, wanted: RelatedFilter, mean_length: float
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "limit": wanted.limit,
        "known": [],
        "first_block": 0,
        "blocks": None,
        "blocks_max": BLOCKS_MAX,
        "statuses": [str(status) for status in wanted.statuses],
        "session_id": wanted.session_id,
        "agent": wanted.agent,
        "digest": digest,
        "fixed": SATURATION * (1 - LENGTH_WEIGHT),
        "per_term": SATURATION * LENGTH_WEIGHT / max(mean_length, 1),
        "block_bits": BLOCK_BITS,
        "place_shift": PLACE_SHIFT,
        "times_shift": TIMES_SHIFT,
        "times_max": TIMES_MAX,
        "leading_chains_max": LEADING_CHAINS_MAX,
        "leading_texts_max": LEADING_TEXTS_MAX,
        "dead_end_weight": DEAD_END_WEIGHT,
        "title_weight": TITLE_WEIGHT,
        "score_digits": SCORE_DIGITS,
        "characters_max": TEXT_CHARACTERS_MAX,
    }


def _chains(rows: Sequence[Sequence[Any]], weights: Mapping[str, float]) -> list[RelatedChain]:
    return [RelatedChain(*fields, snippet=snippet_of(text, weights)) for *fields, text in rows]
