"""Values that only the tools for chains are given: confidences, lists, choices and cursors."""

import base64
import binascii
import json
import math
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import cast
from uuid import UUID

from ledger.confidence import MILLION
from ledger.limits import TEXT_BYTES_MAX
from mcp_server.inputs import InputError, describe, to_identifier, to_text
from projections.lists import After

ASSUMPTIONS_MAX = 100

to_note = partial(to_text, bytes_max=TEXT_BYTES_MAX)


def to_millionths(field: str, value: object) -> int:
    """A confidence from 0 to 1, as whole millionths."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) <= 1 else math.nan
    elif isinstance(value, str):
        with suppress(ValueError):
            number = float(value)
    if not 0 <= number <= 1:
        raise InputError((field, f"must be a number from 0 to 1, got {describe(value)}"))
    return round(number * MILLION)


def to_notes(field: str, value: object) -> tuple[str, ...]:
    """A list of texts; one text alone, or a list written as JSON, is taken for it too."""
    if isinstance(value, str):
        value = list_of_text(value)
    if not isinstance(value, list):
        raise InputError((field, f"must be a list of strings, got {describe(value)}"))
    notes = cast("list[object]", value)
    if len(notes) > ASSUMPTIONS_MAX:
        raise InputError((field, f"has {len(notes)} items, the limit is {ASSUMPTIONS_MAX}"))
    return tuple(to_note(field, note) for note in notes)


def list_of_text(text: str) -> object:
    """What a list written as JSON holds; of any other text a list of it alone."""
    if text.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return [text]


def to_choice(field: str, value: object, choices: list[str]) -> str:
    """One of *choices*, in any case and between blanks."""
    if isinstance(value, str) and value.strip().lower() in choices:
        return value.strip().lower()
    raise InputError((field, f"must be one of {', '.join(choices)}, got {describe(value)}"))


def cursor_of(after: After) -> str:
    """Where a list ended, for ``to_after`` to read."""
    words = json.dumps([after.updated_at.isoformat(), str(after.chain_id)])
    return base64.urlsafe_b64encode(words.encode()).decode()


def to_after(field: str, value: object) -> After:
    """Where an earlier list ended."""
    problem = InputError((field, "is none of ours; leave it out, or send the `next` of an answer"))
    if not isinstance(value, str):
        raise problem
    try:
        updated_at, chain_id = json.loads(base64.b64decode(value, altchars=b"-_", validate=True))
        moment = datetime.fromisoformat(updated_at)
        after = After(moment, UUID(chain_id))
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        raise problem from None
    if moment.tzinfo is None:
        raise problem
    return after


def to_name(field: str, value: object) -> str:
    """An id that is not empty."""
    name = to_identifier(field, value)
    if not name:
        raise InputError((field, "must not be empty"))
    return name
