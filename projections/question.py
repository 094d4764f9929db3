"""What a question asks for: its terms, and what each of them is worth."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from projections.tokens import terms_of

QUERY_TERMS_MAX = 64


@dataclass(frozen=True, slots=True)
class AskedTerms:
    """The terms of a question, the rarest first: their weights and how many entries they have."""

    weights: Mapping[str, float]
    entries: Mapping[str, int]

    def rarest(self, entries_max: int) -> list[str]:
        """Those that have *entries_max* entries together, but one at least."""
        totals = zip(self.entries, accumulate(self.entries.values()), strict=True)
        return [term for n, (term, total) in enumerate(totals) if n == 0 or total <= entries_max]


def asked_terms(query: str) -> list[str]:
    """The longest QUERY_TERMS_MAX of a question's terms: as a rule they are the rarest."""
    return sorted(terms_of(query), key=len, reverse=True)[:QUERY_TERMS_MAX]


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
