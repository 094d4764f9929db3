"""The part of a text that says most of what was asked for."""

from collections.abc import Mapping

from projections.text import shown
from projections.tokens import places_of

SNIPPET_CHARACTERS_MAX = 240
# So many characters before the first hit are shown with it.
LEAD_CHARACTERS = 30
# A longer word is cut through rather than left out.
WORD_CHARACTERS_MAX = 20


def snippet_of(text: str, weights: Mapping[str, float]) -> str:
    """At most SNIPPET_CHARACTERS_MAX characters of *text*, on one line.

    They are those with the greatest sum of *weights*, each term counted once; the first of
    several.  An ellipsis stands where something is left out.
    """
    text = " ".join(shown(text).split())
    if len(text) <= SNIPPET_CHARACTERS_MAX:
        return text
    hits = [
        (start, end, [term for term in terms if term in weights])
        for start, end, terms in places_of(text)
    ]
    start = _best_start([hit for hit in hits if hit[2]], weights)
    if start <= LEAD_CHARACTERS:
        return _cut(text, SNIPPET_CHARACTERS_MAX)
    start = min(start - LEAD_CHARACTERS, len(text) - SNIPPET_CHARACTERS_MAX + 1)
    return "…" + _cut(text[_next_word(text, start) :], SNIPPET_CHARACTERS_MAX - 1)


def _best_start(hits: list[tuple[int, int, list[str]]], weights: Mapping[str, float]) -> int:
    """Where the best window begins: with the hit that has the most weight in reach after it."""
    best, best_start = 0.0, 0
    reach = SNIPPET_CHARACTERS_MAX - LEAD_CHARACTERS - 2
    inside: dict[str, int] = {}
    weight, end = 0.0, 0
    for first, (start, _, terms) in enumerate(hits):
        while end < len(hits) and (hits[end][1] <= start + reach or end == first):
            weight += sum(weights[term] for term in hits[end][2] if not inside.get(term))
            for term in hits[end][2]:
                inside[term] = inside.get(term, 0) + 1
            end += 1
        # Floats that were added and taken away again are not quite what they were.
        if weight > best + 1e-9:
            best, best_start = weight, start
        for term in terms:
            inside[term] -= 1
            if not inside[term]:
                weight -= weights[term]
    return best_start


def _next_word(text: str, start: int) -> int:
    blank = text.find(" ", start, start + WORD_CHARACTERS_MAX)
    return start if blank < 0 else blank + 1


def _cut(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    end = characters_max - 1
    blank = text.rfind(" ", end - WORD_CHARACTERS_MAX, end + 1)
    return text[: end if blank < 0 else blank] + "…"
