"""Unicode's form NFKC of a text, whatever stands in it."""

import re
import unicodedata
from functools import cache

# A letter keeps so many marks: the Stream-Safe Text Format of Unicode's annex 15.  No language has
# words with more.  Normalising sorts the marks of a letter in a time that grows with their square.
MARKS_MAX = 30
# Between these are all there are.
MARKS_FROM, MARKS_BELOW = 0x300, 0x20000
# It becomes 18 letters, for each of which normalising makes room anew: a text of it takes 30 times
# as long as one of what it becomes.
LIGATURE = "\ufdfa"


def nfkc(text: str) -> str:
    """The text in NFKC, without the marks of a letter that come after its first MARKS_MAX."""
    if text.isascii():
        return text
    # A run that is too long is hit, and most texts need not be gone through for it.
    if _mark().search(text[::MARKS_MAX]):
        text = _long_run().sub(r"\1", text)
    if LIGATURE in text:
        text = text.replace(LIGATURE, unicodedata.normalize("NFKC", LIGATURE))
    return unicodedata.normalize("NFKC", text)


@cache
def _mark() -> re.Pattern[str]:
    # What is taken apart may begin with a mark, and be none itself.
    marks = (
        sign
        for sign in map(chr, range(MARKS_FROM, MARKS_BELOW))
        if unicodedata.combining(unicodedata.normalize("NFKD", sign)[0])
    )
    return re.compile(f"[{''.join(marks)}]")


@cache
def _long_run() -> re.Pattern[str]:
    mark = _mark().pattern
    return re.compile(f"({mark}{{{MARKS_MAX}}}){mark}+")
