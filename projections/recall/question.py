"""What a question asks for: its terms, and what each of them is worth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from projections.tokens import digest_of, terms_of

QUERY_TERMS_MAX = 64
# Terms are looked for in so much of a question.  All of it may still be the exact text of one.
QUERY_CHARACTERS_MAX = 16_384


@dataclass(frozen=True, slots=True)
class AskedTerms:
    """The terms of a question, the rarest first: their weights and how many entries they have."""

    weights: Mapping[str, float]
    entries: Mapping[str, int]

    def rarest(self, entries_max: int) -> list[str]:
        """Those that have *entries_max* entries together, but one at least."""
        totals = zip(self.entries, accumulate(self.entries.values()), strict=True)
        return [term for n, (term, total) in enumerate(totals) if n == 0 or total <= entries_max]


def ask(query: str) -> tuple[list[str], int | None]:
    """What a question is looked for by: its terms, and its digest as a whole."""
    return asked_terms(query), digest_of(query)


def asked_terms(query: str) -> list[str]:
    """The longest QUERY_TERMS_MAX of a question's terms: as a rule they are the rarest."""
    return sorted(terms_of(query[:QUERY_CHARACTERS_MAX]), key=len, reverse=True)[:QUERY_TERMS_MAX]


def weigh(asked: Sequence[str], frequencies: Mapping[str, int], texts: int) -> AskedTerms:
    """What each term is worth, all that were asked for together 1."""
    worth = {
        term: math.log1p((texts - count + 0.5) / (count + 0.5))
        for term in asked
        # Between two statements there may come more texts than were counted.
        for count in (min(frequencies.get(term, 0), texts),)
    }
    total = sum(worth.values())
    known = sorted(frequencies, key=lambda term: (frequencies[term], term))
    return AskedTerms(
        weights={term: worth[term] / total for term in known},
        entries={term: frequencies[term] for term in known},
    )
