"""Arguments taken exactly as the schema says: nothing is coerced, nothing unknown is let pass."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ledger.limits import recordable
from mcp_server.inputs import ECHO_CHARACTERS_MAX, InputError, describe

UNKNOWN_NAMED_MAX = 5

# What each field may be, by its JSON type.  Those that may be null read as left out.
TYPES: dict[str, tuple[str, ...]] = {
    "thought": ("string",),
    "thoughtNumber": ("integer",),
    "totalThoughts": ("integer",),
    "nextThoughtNeeded": ("null", "boolean"),
    "confidence": ("number",),
    "assumptions": ("null", "array"),
    "critique": ("string",),
    "counterArgument": ("string",),
    "nextStepRationale": ("string",),
    "isRevision": ("null", "boolean"),
    "revisesThought": ("null", "integer"),
    "branchFromThought": ("null", "integer"),
    "branchId": ("string",),
    "needsMoreThoughts": ("null", "boolean"),
    "episodeId": ("string",),
    "requestId": ("string",),
}


class SchemaError(InputError):
    """Arguments that are not of the shape the schema says."""

    def __init__(self, problem: str) -> None:
        super().__init__(('validating "arguments":', f"validating root: {problem}"))


def check_shape(arguments: Mapping[str, object], required: Sequence[str]) -> None:
    """Raise SchemaError for the first thing that is not as the schema says."""
    if unknown := [name for name in arguments if name not in TYPES]:
        named = [_shortened(name) for name in unknown[:UNKNOWN_NAMED_MAX]]
        raise SchemaError(f"unexpected additional properties {json.dumps(named)}")
    if missing := [name for name in required if name not in arguments]:
        raise SchemaError(f"required: missing properties: {json.dumps(missing)}")
    for name, value in arguments.items():
        where = f"/properties/{name}"
        _check_type(value, TYPES[name], where)
        if isinstance(value, list):
            for item in cast("list[object]", value):
                _check_type(item, ("string",), f"{where}/items")


def _check_type(value: object, wanted: Sequence[str], where: str) -> None:
    given = _type_of(value)
    if given in wanted or (given == "integer" and "number" in wanted):
        return
    want = f'"{wanted[0]}"' if len(wanted) == 1 else f'one of "{", ".join(wanted)}"'
    raise SchemaError(f'validating {where}: type: {_shown(value)} has type "{given}", want {want}')


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _shown(value: object) -> str:
    if isinstance(value, str):
        # In one line, but without quotes: the type that follows says that it is a string.
        return json.dumps(_shortened(value), ensure_ascii=False)[1:-1]
    return describe(value)


def _shortened(text: str) -> str:
    more = "…" if len(text) > ECHO_CHARACTERS_MAX else ""
    return recordable(text[:ECHO_CHARACTERS_MAX]) + more
