"""From what was found to what is answered: one score of words and likeness, weighed by trust.

Both legs measure from 0 to 1 by nature: a share of what was asked, and a cosine.  So they are added
as they are; ranks or deviations would make of a weak leg as much as of a strong one.  A chain has
the best of its words and the best of its likeness, be they of two of its thoughts: that is the
context of a thought (docs/decisions/0012).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from projections.recall.candidates import Candidate

# What likeness is worth beside words.
LIKENESS_WEIGHT = 0.5
# What a dead end is worth of what it would be otherwise, and what a title is: less, for the title
# of most chains is their first thought, and must not stand for it when that was given up.
DEAD_END_WEIGHT = 0.5
TITLE_WEIGHT = 0.4
# What is worth a thought that was revised: its revision says better what it says.
SUPERSEDED_WEIGHT = 0.7
# By how much a score is more with full trust than with none; at 0.5 it stays as it is.
TRUST_SPAN = 0.5
NEUTRAL_TRUST = 0.5
# The share of a text that only its words are known of: the most of it that is no exact text.
INEXACT_MAX = 0.999999
SCORE_DIGITS = 6


class Strategy(StrEnum):
    """How to search; ``how`` of an answer says how it was done."""

    HYBRID = "hybrid"
    VECTOR = "vector"
    TEXT = "text"
    # By likeness, and by words as well where nothing is much alike.
    TIERED = "tiered"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One row of an answer: a chain, or a thought, by what stands for it."""

    best: Candidate
    score: float


def rank_chains(
    candidates: Iterable[Candidate], how: Strategy, trust: Mapping[UUID, float]
) -> list[Ranked]:
    """One row a chain, the best first; *trust* is that of chains, 0 to 1."""
    by_chain: defaultdict[UUID, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_chain[candidate.chain_id].append(candidate)
    ranked = [
        _ranked(best_of(texts, how), chain_relevance(texts, how), trust.get(chain_id))
        for chain_id, texts in by_chain.items()
    ]
    return _sorted(ranked)


def rank_thoughts(candidates: Iterable[Candidate], how: Strategy) -> list[Ranked]:
    """One row a thought, the best first."""
    return _sorted(
        _ranked(candidate, relevance(candidate, how), candidate.trust)
        for candidate in candidates
        if candidate.thought_id is not None
    )


def relevance(candidate: Candidate, how: Strategy) -> float:
    """How much one text is what was asked for, from 0 to 1."""
    return _fused([candidate], how)


def chain_relevance(texts: Sequence[Candidate], how: Strategy) -> float:
    """The same of a chain, by all of its texts that were found."""
    return _fused(texts, how)


def best_of(texts: Sequence[Candidate], how: Strategy) -> Candidate:
    """The text that stands for its chain; of equals the very text, a live one, the latest."""
    return max(
        texts,
        key=lambda text: (
            relevance(text, how),
            text.is_verbatim,
            not text.dead_end,
            text.position,
        ),
    )


def _fused(texts: Sequence[Candidate], how: Strategy) -> float:
    if how is not Strategy.VECTOR and any(text.is_exact for text in texts):
        return 1.0
    share = max(text.share * _weight(text) for text in texts)
    if how is Strategy.TEXT:
        return share
    similarities = [
        max(text.similarity, 0) * _weight(text) for text in texts if text.similarity is not None
    ]
    if how is Strategy.VECTOR:
        return max(similarities, default=0.0)
    if not similarities:
        return share  # not embedded yet: what is known of it counts in full
    return (share + LIKENESS_WEIGHT * max(similarities)) / (1 + LIKENESS_WEIGHT)


def _weight(text: Candidate) -> float:
    if text.thought_id is None:
        return TITLE_WEIGHT
    if text.dead_end:
        return DEAD_END_WEIGHT
    return SUPERSEDED_WEIGHT if text.superseded_by is not None else 1.0


def _ranked(best: Candidate, relevant: float, trust: float | None) -> Ranked:
    if relevant >= 1:  # the exact text is the exact text, whatever is thought of it
        return Ranked(best, 1.0)
    weight = 1.0 if trust is None else 1 + TRUST_SPAN * (trust - NEUTRAL_TRUST)
    return Ranked(best, round(min(relevant * weight, INEXACT_MAX), SCORE_DIGITS))


def _sorted(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(
        (row for row in ranked if row.score > 0),
        key=lambda row: (
            -row.score,
            not row.best.is_verbatim,
            row.best.dead_end,
            -row.best.position,
        ),
    )
