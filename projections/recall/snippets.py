"""The part of a text that says most of what was asked for."""

import re
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from projections.normal import nfkc
from projections.text import shown
from projections.tokens import TEXT_CHARACTERS_MAX, places_of

SNIPPET_CHARACTERS_MAX = 240
# So many characters before the first hit are shown with it.
LEAD_CHARACTERS = 30
# A longer word is cut through rather than left out.
WORD_CHARACTERS_MAX = 20
# A long text is looked at in pieces, and so many of them are taken apart.
PIECE_CHARACTERS = 256
PIECES_MAX = 8
# Of so many terms, those of the most weight, it is also seen whether they are in a longer word.
SOUGHT_TERMS_MAX = 8
# A sign may become 18 letters, and what comes after so many is not found.  The pieces overlap.
SIGNS_MAX = 2 * TEXT_CHARACTERS_MAX
# Floats that were added and taken away again are not quite what they were.
ROUNDING = 1e-9

# Where a token starts and ends, and which of its terms are asked for.
Hit = tuple[int, int, list[str]]

_WORD = re.compile(r"[^\W_]+")


class _Piece(NamedTuple):
    """``likely`` is the weight of its words, ``possible`` also of what is only in their midst."""

    likely: float
    possible: float
    start: int
    text: str


def snippet_of(text: str, weights: Mapping[str, float]) -> str:
    """At most SNIPPET_CHARACTERS_MAX characters of *text*, on one line.

    They are those with the greatest sum of *weights*, each term counted once, as far as the
    PIECES_MAX most promising pieces tell; of several as a rule the first.  An ellipsis stands
    where something is left out.
    """
    text = " ".join(shown(text[:TEXT_CHARACTERS_MAX]).split())
    if len(text) <= SNIPPET_CHARACTERS_MAX:
        return text
    start = _best_start(text, weights)
    if start <= LEAD_CHARACTERS:
        return _cut(text, SNIPPET_CHARACTERS_MAX)
    start = min(start - LEAD_CHARACTERS, len(text) - SNIPPET_CHARACTERS_MAX + 1)
    return "…" + _cut(text[_next_word(text, start) :], SNIPPET_CHARACTERS_MAX - 1)


def _best_start(text: str, weights: Mapping[str, float]) -> int:
    """Where the best window of the text begins.

    To find terms as they were stored takes long.  So first a plain search tells of each piece
    what it may have, and the most promising are looked into.
    """
    pieces = sorted(_pieces(text, weights), key=lambda piece: (-piece.likely, -piece.possible))
    best, best_start = 0.0, 0
    for piece in pieces[:PIECES_MAX]:
        if piece.possible > best + ROUNDING:
            weight, start = _best_window(_hits(piece.text, weights), weights)
            if weight > best + ROUNDING:
                best, best_start = weight, piece.start + start
    return best_start


def _pieces(text: str, weights: Mapping[str, float]) -> Iterator[_Piece]:
    """The text in pieces that overlap by a snippet, and start with a word if there are words."""
    foremost = nlargest(SOUGHT_TERMS_MAX, weights, key=weights.__getitem__)
    start, left = 0, SIGNS_MAX
    while start < len(text) and left > 0:
        piece = text[start : start + PIECE_CHARACTERS + SNIPPET_CHARACTERS_MAX]
        signs = nfkc(piece).casefold()
        words = weights.keys() & _WORD.findall(signs)
        likely = sum(map(weights.__getitem__, words))
        hidden = (weights[term] for term in foremost if term not in words and term in signs)
        yield _Piece(likely, likely + sum(hidden), start, piece)
        left -= len(signs)
        start = _next_word(text, start + PIECE_CHARACTERS)


def _hits(piece: str, weights: Mapping[str, float]) -> list[Hit]:
    found = (
        (start, end, [term for term in terms if term in weights])
        for start, end, terms in places_of(piece)
    )
    return [hit for hit in found if hit[2]]


def _best_window(hits: Sequence[Hit], weights: Mapping[str, float]) -> tuple[float, int]:
    """The most weight that a hit has in reach after it, and where that hit begins."""
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
        if weight > best + ROUNDING:
            best, best_start = weight, start
        for term in terms:
            inside[term] -= 1
            if not inside[term]:
                weight -= weights[term]
    return best, best_start


def _next_word(text: str, start: int) -> int:
    blank = text.find(" ", start, start + WORD_CHARACTERS_MAX)
    return start if blank < 0 else blank + 1


def _cut(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    end = characters_max - 1
    blank = text.rfind(" ", end - WORD_CHARACTERS_MAX, end + 1)
    return text[: end if blank < 0 else blank] + "…"
