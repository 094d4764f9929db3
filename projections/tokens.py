"""The terms of a text: what search compares, made alike of what is stored and of what is asked.

They know no language.  A word is a run of letters, digits and underscores, without case and in
Unicode's form NFKC.  Words joined by points, slashes, colons, hyphens or @ are found whole, by
the names between the slashes, and word by word; a word also by the parts of its snake_case or
CamelCase.  Scripts that are written without spaces are cut into single signs and pairs.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise

from projections.normal import MARKS_BELOW, MARKS_FROM, nfkc
from projections.text import shown

# What comes after so many characters of a text is not searched, nor are further terms.
TEXT_CHARACTERS_MAX = 65_536
TERMS_MAX = 2_000
# A longer term is cut, as stored and as asked.
TERM_CHARACTERS_MAX = 64
CACHED_TOKENS_MAX = 16_384

JOINERS = r"[./\\:@-]+"
# A ligature may become 18 letters; no more of a text are looked at than if it had none.
ZERO_WIDTH_JOINERS = "\u200c\u200d"

_ASCII_TOKEN = re.compile(rf"\w+(?:{JOINERS}\w+)*", re.ASCII)
_SLASHES = re.compile(r"[/\\]+")
_JOINERS = re.compile(JOINERS)
# Thai and Lao, Burmese, Khmer, kana, and all of Han.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def terms_of(text: str) -> dict[str, int]:
    """How often the text says each of its terms, in the order of their first appearance."""
    counts: dict[str, int] = {}
    for token, times in Counter(tokens_of(text)).items():
        for term in terms_of_token(token):
            known = counts.get(term)
            if known is not None:
                counts[term] = known + times
            elif len(counts) < TERMS_MAX:
                counts[term] = times
    return counts


def tokens_of(text: str) -> list[str]:
    """The words, and words joined to one, that a text consists of, as they are written."""
    text = nfkc(text[:TEXT_CHARACTERS_MAX])[:TEXT_CHARACTERS_MAX]
    return _token(text).findall(text)


def places_of(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Start and end of each token of the text as it is, and its terms."""
    text = text[:TEXT_CHARACTERS_MAX]
    for found in _token(text).finditer(text):
        yield found.start(), found.end(), terms_of_token(nfkc(found.group()))


def terms_of_token(token: str) -> tuple[str, ...]:
    """Each term of a token once: all of it first, then its parts."""
    if len(token) > TERM_CHARACTERS_MAX:
        return _terms(token)
    # Most words are plain ones, and there are more of them than a cache should hold.
    if token.islower() and token.isascii() and token.isalnum():
        return (token,)
    return _cached_terms(token)


def digest_of(text: str) -> int | None:
    """64 bits that texts share when only case, form and white space differ; None without words."""
    words = " ".join(nfkc(shown(text)).casefold().split())
    if not words:
        return None
    digest = hashlib.blake2b(words.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _terms(token: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for part in _parts(token):
        term = part.casefold()[:TERM_CHARACTERS_MAX]
        if any(map(str.isalnum, term)):
            found[term] = None
    return tuple(found)


_cached_terms = lru_cache(CACHED_TOKENS_MAX)(_terms)


def _parts(token: str) -> Iterator[str]:
    """The token, the names between its slashes, their words, and the parts of those."""
    if _UNSPACED.search(token):
        for run in _UNSPACED.split(token):
            yield from _signs_and_pairs(run) if _UNSPACED.match(run) else _parts(run)
        return
    yield token
    for name in _SLASHES.split(token):
        yield name
        for word in _JOINERS.split(name):
            yield word
            for piece in word.split("_"):
                yield piece
                yield from _humps(piece)


def _signs_and_pairs(run: str) -> Iterator[str]:
    yield from run
    yield from map("".join, pairwise(run))


def _humps(piece: str) -> Iterator[str]:
    """The parts of ``CamelCase``; in ``HTTPServer`` the last capital begins the second."""
    start = 0
    for place in range(1, len(piece)):
        before, sign = piece[place - 1], piece[place]
        following = piece[place + 1 : place + 2]
        if sign.isupper() and (not before.isupper() or following.islower()):
            yield piece[start:place]
            start = place
    if start:
        yield piece[start:]


def _token(text: str) -> re.Pattern[str]:
    return _ASCII_TOKEN if text.isascii() else _unicode_token()


@cache
def _unicode_token() -> re.Pattern[str]:
    # Python does not count the marks to a word by which many scripts write their vowels.
    marks = (
        chr(n) for n in range(MARKS_FROM, MARKS_BELOW) if unicodedata.category(chr(n))[0] == "M"
    )
    word = rf"[\w{''.join(marks)}{ZERO_WIDTH_JOINERS}]+"
    return re.compile(rf"{word}(?:{JOINERS}{word})*")
