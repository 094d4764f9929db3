"""What ``scripts/fuzz`` puts where a good value should be, and how it is written as bytes."""

import json
import random
from dataclasses import dataclass
from typing import Any, cast

DEPTH = 10_000
MIB = 2**20


@dataclass(frozen=True)
class Raw:
    """Bytes that stand in a message as they are, JSON or not."""

    content: bytes


TEXTS = (
    "",
    " ",
    "null",
    "true",
    "1",
    " 2 ",
    "0x10",
    "1e999",
    "NaN",
    "\0",
    "a\0b",
    "\ud800",
    "x\udfff\ud800",
    "\ufeff",
    "\u202e\u2028\u0085",
    "\U0001f9e0",
    "constructor",
    "__proto__",
    "'; DROP TABLE ledger.events; --",
    "%s %(tenant)s {schema}",
    "../../../../etc/passwd",
    '{"thought": ["nested"]}',
    "x" * 256,
    "\\",
    "\n\r\t",
    "\x1b[31m",
)
NUMBERS = (
    0,
    -1,
    1,
    3,
    1.0,
    1.5,
    -0.0,
    1e308,
    5e-324,
    2**31,
    2**53 - 1,
    2**53,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
)
RAW = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e400",
    b"01",
    b"0x1",
    b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b'"\\ud800"',
    b'"\\u0000"',
    b'"\\x"',
    b"'x'",
    b"undefined",
    b"[1,]",
    b'{"a":1,"a":2}',
    b"[" * 250 + b"]" * 250,
    b"[" * DEPTH + b"]" * DEPTH,
    b'{"a":' * DEPTH + b"1" + b"}" * DEPTH,
)
METHODS = (
    "ping",
    "tools/list",
    "tools/call ",
    "TOOLS/CALL",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "initialize",
    "",
    "notifications/none",
    "rpc.discover",
    "x" * 10_000,
    "\0",
)
NOTIFICATIONS = ("initialized", "progress", "roots/list_changed", "none")
BRANCHES = ("a", "b", "constructor", "\U0001f9e0")


def encode(value: Any, chance: random.Random) -> bytes:
    """The value as JSON, but for what is raw; texts are escaped or not, by *chance*."""
    match value:
        case Raw():
            return value.content
        case dict():
            pairs = cast("dict[str, Any]", value)
            members = (_text(k, escaped=True) + b": " + encode(v, chance) for k, v in pairs.items())
            return b"{" + b", ".join(members) + b"}"
        case list():
            elements = cast("list[Any]", value)
            return b"[" + b", ".join(encode(one, chance) for one in elements) + b"]"
        case str():
            return _text(value, escaped=chance.random() < 0.7)
        case _:
            return json.dumps(value).encode()


def _text(text: str, *, escaped: bool) -> bytes:
    # Unescaped, a lone surrogate becomes three bytes that are no UTF-8.
    return json.dumps(text, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


def is_json(content: bytes) -> bool:
    """Whether any reader would take it for JSON."""
    try:
        text = content.decode()
        json.loads(text, parse_constant=_refuse, parse_int=_bounded, parse_float=_finite)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(_: str) -> None:
    raise ValueError


def _bounded(digits: str) -> int:
    if len(digits) > 300:
        raise ValueError
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number
