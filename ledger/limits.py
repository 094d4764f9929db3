"""What the ledger records at most, and the one place that makes text recordable."""

import re

from ledger.errors import LimitExceededError

THOUGHT_BYTES_MAX = 2**20
ID_CHARACTERS_MAX = 255
TEXT_BYTES_MAX = 64 * 2**10
METADATA_BYTES_MAX = 2**20
BATCH_EVENTS_MAX = 500
PAGE_THOUGHTS_MAX = 100
# Larger ones are no longer exact where JSON's numbers are read as floats.
INTEGER_MAX = 2**53 - 1

_SURROGATES = re.compile("[\ud800-\udfff]")


def recordable(text: str) -> str:
    """The text with every lone surrogate, which no UTF-8 can hold, as U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def recordable_name(text: str) -> str:
    """A name for a text column: without lone surrogates and U+0000, cut to 255 characters."""
    return recordable(text[:ID_CHARACTERS_MAX]).replace("\0", "\ufffd")


def check_bytes(what: str, text: str | None, limit: int) -> None:
    """Raise LimitExceededError when *text* is over *limit* bytes of UTF-8."""
    # No character takes more than four bytes, so most texts need no encoding to be judged.
    if text is None or len(text) * 4 <= limit:
        return
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise LimitExceededError(what, size, limit, "bytes")


def check_id(what: str, text: str | None) -> None:
    """Raise LimitExceededError when an id is over 255 characters."""
    if text is not None and len(text) > ID_CHARACTERS_MAX:
        raise LimitExceededError(what, len(text), ID_CHARACTERS_MAX, "characters")
