"""Messages as bytes: cut into lines for stdio, read as JSON-RPC, or refused."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import orjson
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from ledger.limits import recordable

LINE_BYTES_MAX = 10 * 2**20

# How much of an oversized line is kept, to find the id its sender waits for.
HEAD_BYTES = 4_096
TAIL_BYTES = 1_024

BYTE_ORDER_MARK = "\ufeff"

RepliedId: TypeAlias = int | float | str | None

# A pair of surrogate escapes is a character and stays; any other escape is stepped over, so that
# the second backslash of an escaped backslash is never taken for the start of one.
LONE_SURROGATE_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\.",
    re.DOTALL,
)

# The scan for an id knows strings (also one cut off at the end), so it is never fooled by a text
# that looks like JSON.
SCALAR = r'(-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*")'
STRING_OR_BRACKET = re.compile(r'"((?:[^"\\]|\\.)*)(?:"(\s*:)?|\\?\Z)|[{}\[\]]', re.DOTALL)
ID_VALUE = re.compile(r"\s*" + SCALAR + r"\s*[,}]", re.DOTALL)
ID_AT_END = re.compile(
    r',\s*"id"\s*:\s*' + SCALAR + r'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line longer than ``LINE_BYTES_MAX``: both its ends, the rest was not kept."""

    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Bytes that are no message, with what their sender is told."""

    request_id: RepliedId
    code: int
    reason: str

    def encode(self) -> bytes:
        error = {"code": self.code, "message": self.reason}
        return orjson.dumps({"jsonrpc": "2.0", "id": self.request_id, "error": error}) + b"\n"


class LineSplitter:
    """Cuts bytes into lines, holding at most ``LINE_BYTES_MAX`` of one."""

    def __init__(self) -> None:
        self._partial = bytearray()
        self._head: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield self._finish(end)
        self._keep(rest)

    def finish(self) -> bytes | Oversized:
        """The line the input ended in, which a file need not terminate."""
        return self._finish(b"")

    def _finish(self, end: bytes) -> bytes | Oversized:
        self._keep(end)
        line = bytes(self._partial)
        head, self._head = self._head, None
        self._partial.clear()
        return line if head is None else Oversized(head, line)

    def _keep(self, piece: bytes) -> None:
        self._partial += piece
        if self._head is None and len(self._partial) > LINE_BYTES_MAX:
            self._head = bytes(self._partial[:HEAD_BYTES])
        if self._head is not None:
            del self._partial[:-TAIL_BYTES]


def read_frame(line: bytes | Oversized) -> JSONRPCMessage | Refusal | None:
    """Read one line as its sender meant it; None for a line that asks for nothing."""
    if isinstance(line, Oversized):
        return _refuse_oversized(line)
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _read_mended(line)
    return _to_message(content)


def encode_message(message: JSONRPCMessage) -> bytes:
    """Write a message as one line."""
    if isinstance(message, JSONRPCResponse):
        # The result is plain JSON already; pydantic would walk it again.
        fields: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    else:
        fields = message.model_dump(by_alias=True, exclude_unset=True)
    try:
        return orjson.dumps(fields) + b"\n"
    except orjson.JSONEncodeError:
        # A lone surrogate, or an integer of more than 64 bits, must not cost the client its answer.
        text = json.dumps(fields, ensure_ascii=False, default=str)
        return recordable(text).encode() + b"\n"


def _read_mended(line: bytes) -> JSONRPCMessage | Refusal | None:
    """Read a line the fast parser refused: a strange character is no reason to drop it."""
    text = mended(line)
    if not text.strip():
        return None
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # Too deep, NaN, a number beyond a double: the envelope is whole and somebody waits.
        whole = text.rstrip().endswith("}")
        request_id = find_id(text[:HEAD_BYTES], text[-TAIL_BYTES:]) if whole else None
        return Refusal(request_id, PARSE_ERROR, f"this is not JSON: {error.msg}")
    return _to_message(content)


def _to_message(content: Any) -> JSONRPCMessage | Refusal | None:
    match content:
        case {"method": _}:
            return _to_call(cast("dict[str, Any]", content))
        case {"result": _} | {"error": _}:
            return _to_response(cast("dict[str, Any]", content))
        case dict():
            request_id = _repliable(cast("dict[str, Any]", content).get("id"))
            return Refusal(request_id, INVALID_REQUEST, "a message needs a method")
        case list():
            reason = "batches are not supported; send each message by itself"
            return Refusal(None, INVALID_REQUEST, reason)
        case _:
            return Refusal(None, INVALID_REQUEST, "a message is a JSON object")


def _to_call(content: dict[str, Any]) -> JSONRPCMessage | Refusal:
    request_id = content.get("id")
    method = content["method"]
    try:
        if "id" not in content or (request_id is None and _is_notification(method)):
            return JSONRPCNotification.model_validate(content)
        return JSONRPCRequest.model_validate(content)
    except ValidationError as error:
        wrong = ", ".join(sorted({str(problem["loc"][0]) for problem in error.errors()}))
        reason = f"not a JSON-RPC 2.0 message of MCP; look at: {wrong}"
        return Refusal(_repliable(request_id), INVALID_REQUEST, reason)


def _is_notification(method: object) -> bool:
    # Some serializers write every field, so a notification comes with "id": null.
    return isinstance(method, str) and method.startswith("notifications/")


def _to_response(content: dict[str, Any]) -> JSONRPCMessage | None:
    """Read an answer of the client; a malformed one is dropped, as nobody answers an answer."""
    try:
        if "error" in content:
            return JSONRPCError.model_validate(content)
        return JSONRPCResponse.model_validate(content)
    except ValidationError:
        return None


def _refuse_oversized(line: Oversized) -> Refusal:
    head, tail = (
        _replace_lone_surrogates(end.decode("utf-8", "replace")) for end in (line.head, line.tail)
    )
    reason = (
        f"this message is longer than the {LINE_BYTES_MAX // 2**20} MiB "
        f"({LINE_BYTES_MAX} bytes) one line may have; send less at once"
    )
    return Refusal(find_id(head.removeprefix(BYTE_ORDER_MARK), tail), INVALID_REQUEST, reason)


def find_id(head: str, tail: str) -> RepliedId:
    """The id of a message of which only the ends are readable, or None.

    Clients write it before ``params`` or at the very end; anywhere else it stays unknown.
    """
    depth = 0
    for token in STRING_OR_BRACKET.finditer(head):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif depth == 1 and token[1] == "id" and token[2]:
            return _decode_id(ID_VALUE.match(head, token.end()))
    return _decode_id(ID_AT_END.search(tail))


def _decode_id(found: re.Match[str] | None) -> RepliedId:
    if found is None:
        return None
    try:
        return _repliable(orjson.loads(found[1]))
    except orjson.JSONDecodeError:
        return None


def _repliable(request_id: object) -> RepliedId:
    if isinstance(request_id, int | float | str) and not isinstance(request_id, bool):
        return request_id
    return None


def mended(message: bytes) -> str:
    """The text of a message, each character that none can be as U+FFFD."""
    text = message.decode("utf-8", "replace").removeprefix(BYTE_ORDER_MARK)
    return _replace_lone_surrogates(text)


def _replace_lone_surrogates(text: str) -> str:
    return LONE_SURROGATE_ESCAPE.sub(lambda found: "\\ufffd" if found["lone"] else found[0], text)
