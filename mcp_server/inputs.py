"""Tool arguments as clients really send them, read into what the ledger takes.

Integers follow JavaScript's ``Number()``, as the server this one replaces is written in it.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast
from uuid import UUID

from ledger.display import shortened
from ledger.limits import ID_CHARACTERS_MAX, INTEGER_MAX, THOUGHT_BYTES_MAX, recordable
from ledger.thought import Thought

ECHO_CHARACTERS_MAX = 40
UNREAD_NAMED_MAX = 5

# White space and line ends of ECMAScript, which is not quite what str.strip() takes away.
JS_SPACES = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
JS_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
JS_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")
UUID_FORM = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)

ALIASES = {
    "nextThoughtNeeded": "next_thought_needed",
    "thoughtNumber": "thought_number",
    "totalThoughts": "total_thoughts",
    "isRevision": "is_revision",
    "revisesThought": "revises_thought",
    "branchFromThought": "branch_from_thought",
    "branchId": "branch_id",
    "needsMoreThoughts": "needs_more_thoughts",
    "chain_id": "chainId",
    "requestId": "request_id",
    "session_id": "sessionId",
    "parent_chain_id": "parentChainId",
    "counterArgument": "counter_argument",
    "nextStepRationale": "next_step_rationale",
    "expectedVersion": "expected_version",
    "thought_number": "thoughtNumber",
    "thought_id": "thoughtId",
    "from_thought_number": "fromThoughtNumber",
    "revised_thought": "revisedThought",
    "branch_id": "branchId",
    "at_version": "atVersion",
    "structure_only": "structureOnly",
}

Parsed = TypeVar("Parsed")


class InputError(Exception):
    """Arguments that cannot be understood: all problems at once, so that one retry mends all."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{field} {problem}" for field, problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ThoughtInput:
    """One call of ``sequentialthinking``, as it is to be recorded."""

    thought: str
    next_thought_needed: bool
    thought_number: int
    total_thoughts: int
    is_revision: bool
    revises_thought: int | None
    branch_from_thought: int | None
    branch_id: str | None
    needs_more_thoughts: bool | None
    chain_id: UUID | None
    request_id: str | None


def parse_sequentialthinking(arguments: Mapping[str, object]) -> ThoughtInput:
    """Read a call's arguments.

    Raises InputError naming everything that is wrong with them.
    """
    given = Arguments(arguments)
    said = read_thought(given)
    given.refuse_problems()
    return said


def read_thought(given: "Arguments") -> ThoughtInput:
    """The thought among the arguments; not to be used when there are problems with them."""
    thought = given.require("thought", to_thought, placeholder="")
    next_thought_needed = given.require("nextThoughtNeeded", to_boolean, placeholder=False)
    thought_number = given.require("thoughtNumber", to_integer, placeholder=1)
    total_thoughts = given.require("totalThoughts", to_integer, placeholder=1)
    is_revision = given.allow("isRevision", to_boolean)
    revises_thought = given.allow("revisesThought", to_integer)
    branch_from_thought = given.allow("branchFromThought", to_integer)
    branch_id = given.allow("branchId", to_identifier)
    needs_more_thoughts = given.allow("needsMoreThoughts", to_boolean)
    chain_id = given.allow("chain_id", to_uuid)
    request_id = given.allow("requestId", to_identifier)
    on_branch = branch_id is not None and branch_from_thought is not None
    return ThoughtInput(
        thought=thought,
        next_thought_needed=next_thought_needed,
        thought_number=thought_number,
        total_thoughts=max(total_thoughts, thought_number),
        is_revision=bool(is_revision) or revises_thought is not None,
        revises_thought=revises_thought,
        branch_from_thought=branch_from_thought if on_branch else None,
        branch_id=branch_id if on_branch else None,
        needs_more_thoughts=needs_more_thoughts,
        chain_id=chain_id,
        request_id=request_id,
    )


def thought_of(said: ThoughtInput) -> Thought:
    """What was said, as the ledger takes it."""
    return Thought(
        text=said.thought,
        thought_number=said.thought_number,
        total_thoughts=said.total_thoughts,
        next_thought_needed=said.next_thought_needed,
        needs_more_thoughts=said.needs_more_thoughts,
        branch_id=said.branch_id,
        branch_from_thought_number=said.branch_from_thought,
        is_revision=said.is_revision,
        revises_thought_number=said.revises_thought,
    )


class Arguments:
    """The arguments of one call, read field by field; problems are collected, not raised."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._arguments = arguments
        self._problems: list[tuple[str, str]] = []
        self._read: set[str] = set()

    def require(
        self, field: str, parse: Callable[[str, object], Parsed], *, placeholder: Parsed
    ) -> Parsed:
        """The field's value; the placeholder, never to be used, when there is a problem with it."""
        name = self._name(field)
        if name not in self._arguments:
            self._problems.append((field, "is missing"))
            return placeholder
        try:
            return parse(field, self._arguments[name])
        except InputError as error:
            self._problems.extend(error.problems)
            return placeholder

    def allow(self, field: str, parse: Callable[[str, object], Parsed]) -> Parsed | None:
        """The field's value; None when it was left out, or given as null, "" or "null"."""
        try:
            return to_optional(field, self._arguments.get(self._name(field)), parse)
        except InputError as error:
            self._problems.extend(error.problems)
            return None

    def refuse_problems(self) -> None:
        if self._problems:
            raise InputError(*self._problems)

    def unread(self) -> list[str]:
        """A warning when there are arguments that no field has asked for."""
        names = [shortened(name) for name in self._arguments if name not in self._read]
        if not names:
            return []
        more = " and others" if len(names) > UNREAD_NAMED_MAX else ""
        return [f"not known here and not used: {', '.join(names[:UNREAD_NAMED_MAX])}{more}"]

    def _name(self, field: str) -> str:
        alias = ALIASES.get(field)
        self._read |= {field, alias or field}
        if alias is not None and alias in self._arguments and self._arguments.get(field) is None:
            return alias
        return field


def to_optional(field: str, value: object, parse: Callable[[str, object], Parsed]) -> Parsed | None:
    """Clients that fill in every field send null, "" or "null" for one they leave out."""
    if value is None or value in ("", "null"):
        return None
    return parse(field, value)


def to_integer(field: str, value: object) -> int:
    """A positive whole number that JavaScript can hold exactly."""
    number = _to_number(value)
    if not number.is_integer() or not 1 <= number <= INTEGER_MAX:
        problem = f"must be a whole number from 1 to {INTEGER_MAX}, got {describe(value)}"
        raise InputError((field, problem))
    return int(number)


def to_boolean(field: str, value: object) -> bool:
    """True or false, also as a word in any case; nothing else is taken for one."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InputError((field, f"must be true or false, got {describe(value)}"))


def to_text(field: str, value: object, bytes_max: int) -> str:
    """A text of at most *bytes_max* bytes of UTF-8."""
    text = _to_unicode(field, value)
    size = len(text.encode())
    if size > bytes_max:
        raise InputError((field, f"is {size} bytes long, the limit is {bytes_max}; shorten it"))
    return text


def to_thought(field: str, value: object) -> str:
    """The text of a thought; it may be empty."""
    return to_text(field, value, THOUGHT_BYTES_MAX)


def to_identifier(field: str, value: object) -> str:
    """An id that is text, without U+0000, which the database cannot hold."""
    text = _to_unicode(field, value)
    if len(text) > ID_CHARACTERS_MAX:
        problem = f"is {len(text)} characters long, the limit is {ID_CHARACTERS_MAX}"
        raise InputError((field, problem))
    return text.replace("\0", "\ufffd")


def to_uuid(field: str, value: object) -> UUID:
    """A UUID, with or without hyphens."""
    if isinstance(value, str) and UUID_FORM.fullmatch(value.strip()):
        return UUID(value.strip())
    raise InputError((field, f"must be a UUID, got {describe(value)}"))


def describe(value: object) -> str:
    """A value short enough to quote in an error, and safe to."""
    match value:
        case str():
            start = recordable(value[:ECHO_CHARACTERS_MAX])
            more = "…" if len(value) > ECHO_CHARACTERS_MAX else ""
            return json.dumps(start + more, ensure_ascii=False)
        case list():
            return "an array"
        case dict():
            return "an object"
        case int() if abs(value) > INTEGER_MAX:
            return "a very large number" if value > 0 else "a negative number"
        case _:
            return json.dumps(value)


def _to_unicode(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError((field, f"must be a string, got {describe(value)}"))
    return recordable(value)


def _to_number(value: object) -> float:
    """What JavaScript's ``Number()`` makes of a JSON value; NaN when it is no number."""
    while isinstance(value, list):  # an array is the text of its elements, joined by commas
        elements = cast("list[object]", value)
        if len(elements) != 1:
            return math.nan if elements else 0.0
        value = "true" if isinstance(elements[0], bool) else elements[0]
    match value:
        case None:
            return 0.0
        case int() if abs(value) > INTEGER_MAX:
            return math.inf  # too large for us, perhaps also for a float
        case bool() | int() | float():
            return float(value)
        case str():
            return _number_of_text(value.strip(JS_SPACES))
        case _:
            return math.nan


def _number_of_text(text: str) -> float:
    if not text:
        return 0.0
    if JS_RADIX.fullmatch(text):
        return float(min(int(text, base=0), INTEGER_MAX + 1))
    return float(text) if JS_DECIMAL.fullmatch(text) else math.nan
