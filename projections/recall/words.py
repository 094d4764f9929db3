"""The leg of search that goes by words: BM25 over the read model ``terms``."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from ledger.reader import Reader
from projections.recall.candidates import Candidate
from projections.recall.filters import (
    ALLOWED,
    OF_TRUST,
    Bounds,
    RecallFilter,
    parameters_of,
)
from projections.recall.question import AskedTerms, ask, weigh
from projections.terms import BLOCK_BITS, PLACE_SHIFT, TIMES_MAX, TIMES_SHIFT

# A question goes through so many entries of its terms, from the rarest term on.  If that leaves
# too few chains, all its terms are looked for in so many of the latest blocks in which allowed
# chains that were not found have texts.
ENTRIES_MAX = 100_000
BLOCKS_MAX = 64
# So many chains are looked at, so many texts of each, and so many texts in all; but one of each.
LEADING_CHAINS_MAX = 200
LEADING_TEXTS_MAX = 50
TEXTS_MAX = 1_000

# BM25's usual saturation by repetition, and its weight of a text's length.
SATURATION = 1.2
LENGTH_WEIGHT = 0.75

SELECT_TOTALS = """
    SELECT coalesce(sum(texts), 0)::int8, coalesce(sum(terms), 0)::int8
      FROM live.term_totals
     WHERE tenant = %(tenant)s
"""

SELECT_FREQUENCIES = """
    SELECT term, sum(cardinality(entries))
      FROM live.terms
     WHERE tenant = %(tenant)s AND term = ANY (%(terms)s)
     GROUP BY term
"""

SELECT_BLOCKS: LiteralString = f"""{ALLOWED}
    SELECT DISTINCT position >> %(block_bits)s AS block
      FROM live.term_texts
     WHERE (chain_id IN (SELECT id FROM allowed)) IS TRUE
     ORDER BY block DESC
     LIMIT %(blocks_max)s
"""  # noqa: S608 - of constants only

# The share of a text: what it has of the sum a text could get, which is 1 for the exact text.
# Arrays take the texts of the foremost chains along, so that no table is joined a second time.
SELECT_TEXTS: LiteralString = f"""{ALLOWED}
    , entry AS (
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
        SELECT position, least(sum(share), 1) AS share, bool_or(is_exact) AS is_exact
          FROM (SELECT position,
                       weight * times / (times + %(fixed)s + %(per_term)s * length) AS share,
                       false AS is_exact
                  FROM part
                 UNION ALL
                SELECT position, 1, true
                  FROM live.term_texts
                 WHERE digest = %(digest)s AND tenant = %(tenant)s) AS share
         GROUP BY position
    ), matched AS (
        SELECT text.chain_id AS id, text.thought_id, text.position, found.share, found.is_exact
          FROM found
          JOIN live.term_texts AS text ON text.position = found.position
         WHERE (text.chain_id IN (SELECT id FROM allowed)) IS TRUE
           AND {OF_TRUST}
           AND (%(with_titles)s OR thought_id IS NOT NULL)
    ), foremost AS (
        SELECT id,
               array_agg(position) AS positions,
               array_agg(thought_id) AS thought_ids,
               array_agg(share) AS shares,
               array_agg(is_exact) AS exact
          FROM matched
         GROUP BY id
         ORDER BY max(share) DESC, max(position) DESC
         LIMIT %(leading_chains_max)s
    ), ranked AS (
        SELECT text.position, foremost.id, text.thought_id, text.share, text.is_exact,
               row_number() OVER (
                   PARTITION BY foremost.id ORDER BY text.share DESC, text.position DESC
               ) AS rank
          FROM foremost
         CROSS JOIN LATERAL unnest(positions, thought_ids, shares, exact)
               AS text (position, thought_id, share, is_exact)
    ), best AS (
        SELECT *
          FROM ranked
         WHERE rank <= %(leading_texts_max)s
         ORDER BY rank > 1, share DESC, position DESC
         LIMIT %(texts_max)s
    )
    SELECT position, id, thought_id, share::float8, is_exact
      FROM best
     UNION
    -- What was found by other means is to have its share as well.
    SELECT position, id, thought_id, share::float8, is_exact
      FROM matched
     WHERE position = ANY (%(also)s)
"""  # noqa: S608 - of constants only


@dataclass(frozen=True, slots=True)
class Said:
    """The texts that say something of what was asked, and what each of its terms is worth."""

    texts: list[Candidate]
    weights: Mapping[str, float]


class Words:
    """Asks the live read model ``terms``, and ``thoughts`` for what a chain is."""

    def __init__(self, reader: Reader, entries_max: int = ENTRIES_MAX) -> None:
        """Of the terms' entries *entries_max* are gone through for all chains."""
        self._reader = reader
        self._entries_max = entries_max

    async def find(
        self,
        tenant: str,
        query: str,
        wanted: RecallFilter,
        *,
        position: int,
        bounds: Bounds,
        also: Sequence[int] = (),
        with_titles: bool = True,
    ) -> Said:
        """The texts of the foremost chains, and those at the positions *also* that say anything.

        *position* is that of the read model.
        """
        # In a thread, as all that goes through texts: a long one must not hold up other callers.
        asked, digest = await asyncio.to_thread(ask, query)
        ((texts, terms),) = await self._reader.fetch(SELECT_TOTALS, {"tenant": tenant})
        rows = await self._reader.fetch(SELECT_FREQUENCIES, {"tenant": tenant, "terms": asked})
        known = weigh(asked, dict(rows), texts)
        parameters = parameters_of(tenant, wanted, bounds) | _of_words(
            digest, terms / max(texts, 1)
        )
        parameters |= {"also": list(also), "with_titles": with_titles}
        rarest = known.rarest(self._entries_max)
        entries = sum(known.entries[term] for term in rarest)
        if entries > self._entries_max:
            # One term in more texts than are gone through is looked for in the latest.
            parameters["first_block"] = position - self._entries_max >> BLOCK_BITS
        found = await self._find(known, rarest, parameters)
        is_all = entries == sum(known.entries.values()) <= self._entries_max
        if len({text.chain_id for text in found}) < wanted.limit and not is_all:
            found += await self._find_latest(known, found, parameters)
        return Said(found, known.weights)

    async def _find_latest(
        self, terms: AskedTerms, found: Sequence[Candidate], parameters: Mapping[str, Any]
    ) -> list[Candidate]:
        """Texts of further chains, by all terms, in their latest texts."""
        further = {
            **parameters,
            "first_block": 0,
            "known": [*parameters["known"], *{text.chain_id for text in found}],
        }
        rows = await self._reader.fetch(SELECT_BLOCKS, further, prepare=False)
        further["blocks"] = [block for (block,) in rows]
        return await self._find(terms, list(terms.entries), further)

    async def _find(
        self, terms: AskedTerms, some: Sequence[str], parameters: Mapping[str, Any]
    ) -> list[Candidate]:
        weights = [terms.weights[term] for term in some]
        said = {**parameters, "terms": some, "weights": weights}
        rows = await self._reader.fetch(SELECT_TEXTS, said, prepare=False)
        return [Candidate(*row) for row in rows]


def _of_words(digest: int | None, mean_length: float) -> dict[str, Any]:
    return {
        "first_block": 0,
        "blocks": None,
        "blocks_max": BLOCKS_MAX,
        "digest": digest,
        "fixed": SATURATION * (1 - LENGTH_WEIGHT),
        "per_term": SATURATION * LENGTH_WEIGHT / max(mean_length, 1),
        "block_bits": BLOCK_BITS,
        "place_shift": PLACE_SHIFT,
        "times_shift": TIMES_SHIFT,
        "times_max": TIMES_MAX,
        "leading_chains_max": LEADING_CHAINS_MAX,
        "leading_texts_max": LEADING_TEXTS_MAX,
        "texts_max": TEXTS_MAX,
    }
