"""What ``scripts/fuzz`` sends: calls of the server's own tools, most of them wrong in some way."""

import json
import random
import string
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from fuzz_values import (
    BRANCHES,
    DEPTH,
    METHODS,
    MIB,
    NOTIFICATIONS,
    NUMBERS,
    RAW,
    TEXTS,
    Raw,
    encode,
    is_json,
)

# One answer with its id; one with its id or with null; perhaps one; none.
Answers = Literal["one", "some", "maybe", "none"]
RequestId = str | int | None

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
}
# Of request ids: a lone surrogate is one character or three, as it is escaped or not.
PREFIXES = tuple(text for text in TEXTS if "\ud800" not in text)
REQUEST_FIELDS = ("requestId", "request_id")


@dataclass(frozen=True)
class Shot:
    """One message, and how it is to be answered.

    ``request``: the requestId of a thought, which however often it is sent is recorded once.
    ``call``: the name of the tool, if it calls one.
    """

    kind: str
    content: bytes
    answers: Answers
    request_id: RequestId = None
    request: str | None = None
    method: str = ""
    call: str = ""
    modern: bool = False


class Maker:
    """Makes shots from the tools' own schemas and from what earlier answers told of chains."""

    def __init__(self, seed: int, tools: list[dict[str, Any]], *, modern: bool) -> None:
        """*modern*: half of the calls are those of the modern era of the protocol."""
        self._random = random.Random(seed)
        self._modern = modern
        self._tools = tools
        self._count = 0
        self._sent: list[tuple[str, dict[str, Any], str]] = []
        self._known: dict[str, list[str]] = {
            "chain_id": [self._uuid()],
            "thought_id": [self._uuid()],
            "cursor": ["bm9uZQ=="],
        }

    def learn(self, answer: dict[str, Any]) -> None:
        """Take note of the ids in an answer's structured content."""
        for name, known in self._known.items():
            value = answer.get("next" if name == "cursor" else name)
            if isinstance(value, str):
                known.append(value)

    def shots(self) -> list[Shot]:
        """The next shot, or two that belong together."""
        makers = (
            (60, self._call),
            (6, self._retry),
            (6, self._mutated),
            (4, self._wrong_envelope),
            (4, self._wrong_id),
            (4, self._other_method),
            (3, self._no_message),
            (3, self._twins),
            (2, self._notification),
            (1, self._large),
        )
        weights = [weight for weight, _ in makers]
        (chosen,) = self._random.choices([make for _, make in makers], weights)
        return chosen()

    def request(self, method: str, params: Any) -> Shot:
        """A request of whatever method and parameters."""
        request_id = self._next_id()
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        content = encode(message, self._random)
        # What is no JSON, or no text, may cost the id.
        answers: Answers = "one" if is_json(content) else "some"
        return Shot(method, content, answers, request_id, method=method)

    def call(self, tool: str, arguments: Any, request: str | None = None) -> Shot:
        """A call of a tool."""
        modern = self._modern and self._random.random() < 0.5
        params = {"name": tool, "arguments": arguments, **({"_meta": META} if modern else {})}
        shot = self.request("tools/call", params)
        return replace(shot, kind=tool, request=request, call=tool, modern=modern)

    # The kinds of shots

    def _call(self) -> list[Shot]:
        tool, arguments = self._tool_and_arguments()
        request = None
        for field in REQUEST_FIELDS:
            if isinstance(arguments.get(field), str):
                request = f"{self._pick(PREFIXES)}{self._next_id()}"[-200:]
                arguments[field] = request
                self._sent.append((tool, arguments, request))
        return [self.call(tool, arguments, request)]

    def _retry(self) -> list[Shot]:
        if not self._sent:
            return self._call()
        return [self.call(*self._pick(self._sent[-200:]))]

    def _mutated(self) -> list[Shot]:
        """A call of which some bytes were lost, changed or doubled."""
        tool, arguments = self._once()
        content = bytearray(self.call(tool, arguments).content)
        for _ in range(self._random.randint(1, 4)):
            at = self._random.randrange(len(content))
            piece = self._random.randbytes(1).replace(b"\n", b" ")
            content[at : at + self._random.randint(0, 2)] = self._pick((b"", piece, piece * 2))
        if self._random.random() < 0.3:
            del content[self._random.randrange(len(content)) :]
        return [Shot("mutated", bytes(content), "maybe")]

    def _wrong_envelope(self) -> list[Shot]:
        request_id = self._next_id()
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": "tools/list"}
        field = self._pick(("jsonrpc", "method", "params", "extra"))
        value = self._hostile()
        if field in message and self._random.random() < 0.3:
            del message[field]
        else:
            message[field] = value
        content = encode(message, self._random)
        answers: Answers = "one" if is_json(content) else "some"
        return [Shot("envelope", content, answers, request_id, method="tools/list")]

    def _wrong_id(self) -> list[Shot]:
        usable = self._random.random() < 0.3
        if usable:
            request_id = self._pick(
                (f"{self._next_id()} \U0001f9e0\0", -self._count - 1, 2**52 + self._count)
            )
            self._count += 1
            message = {"jsonrpc": "2.0", "id": request_id, "method": "ping"}
            return [Shot("id", json.dumps(message).encode(), "one", request_id, method="ping")]
        hostile = self._pick((None, 1.5, [1], {"a": 1}, True, 10**400, Raw(b"NaN"), "\ud800"))
        content = encode({"jsonrpc": "2.0", "id": hostile, "method": "ping"}, self._random)
        return [Shot("id", content, "some", method="ping")]

    def _other_method(self) -> list[Shot]:
        method = self._pick(METHODS)
        params = self._pick(
            (
                {},
                self._hostile(),
                {"uri": self._pick((*TEXTS, "thinking://current", "thinking://x"))},
                {"name": self._hostile(), "arguments": self._hostile()},
                {"cursor": self._hostile()},
            )
        )
        return [self.request(method, params)]

    def _no_message(self) -> list[Shot]:
        content, answers = self._pick(
            (
                (b"", "none"),
                (b"   ", "none"),
                (b"\xef\xbb\xbf", "none"),
                (b"{", "some"),
                (b"nonsense", "some"),
                (b"[]", "some"),
                (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', "some"),
                (b"1", "some"),
                (b'"ping"', "some"),
                (b"null", "some"),
                (b"{}", "some"),
                (b'{"id":null}', "some"),
                (b'{"jsonrpc":"2.0","id":"nobody asked","result":{}}', "none"),
                (b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}', "none"),
                (b"\xff\xfe\xfd", "some"),
                (b"\x00" * 100, "some"),
                (b"[" * DEPTH, "some"),
                (b"[" * DEPTH + b"]" * DEPTH, "some"),
            )
        )
        return [Shot("no message", content, answers)]  # pyright: ignore[reportArgumentType] - a literal above

    def _twins(self) -> list[Shot]:
        """Two requests with one id, which both wait."""
        shot = self._call()[0]
        if shot.answers != "one" or shot.request is not None:
            return [shot]
        return [shot, shot]

    def _notification(self) -> list[Shot]:
        params: Any = self._hostile()
        name = self._pick(NOTIFICATIONS)
        message = {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}
        content = encode(message, self._random)
        # Of what is no message, nobody can tell that it is no request.
        answers: Answers = "none" if is_json(content) and isinstance(params, dict) else "maybe"
        return [Shot("notification", content, answers, method=f"notifications/{name}")]

    def _large(self) -> list[Shot]:
        tool, arguments = self._once()
        field = self._pick(sorted(self._properties(tool)))
        size = self._pick((MIB, MIB + 1, 2 * MIB, 11 * MIB))
        arguments[field] = self._pick(("x", "\0", "e")) * size
        shot = self.call(tool, arguments)
        answers: Answers = "one" if size < 4 * MIB else "some"
        return [replace(shot, kind="large", answers=answers)]

    # Parts of them

    def _once(self) -> tuple[str, dict[str, Any]]:
        """A tool and arguments that are not to be sent again."""
        tool, arguments = self._tool_and_arguments()
        return tool, {k: v for k, v in arguments.items() if k not in REQUEST_FIELDS}

    def _tool_and_arguments(self) -> tuple[str, dict[str, Any]]:
        tool = self._pick(self._tools)
        schema = tool["inputSchema"]
        required = set(schema.get("required", ()))
        hostility = self._pick((0.0, 0.0, 0.1, 0.5))
        arguments: dict[str, Any] = {}
        for name, field in self._properties(tool["name"]).items():
            if self._random.random() < (hostility / 5 if name in required else 0.6):
                continue
            is_hostile = self._random.random() < hostility
            arguments[name] = self._hostile() if is_hostile else self._good(name, field)
        if self._random.random() < hostility:
            arguments[self._pick(TEXTS)] = self._hostile()
        return tool["name"], arguments

    def _properties(self, tool: str) -> dict[str, Any]:
        (schema,) = (one["inputSchema"] for one in self._tools if one["name"] == tool)
        return schema["properties"]

    def _good(self, name: str, field: dict[str, Any]) -> Any:
        snake = name.replace("Id", "_id")
        if snake in self._known:
            return self._pick(self._known[snake][-50:])
        if "enum" in field:
            return self._pick(field["enum"])
        match field.get("type"):
            case "integer":
                return self._pick((1, 1, 2, 2, 3, 5, "3", 4.0))
            case "number":
                return self._pick((0, 0.5, 1))
            case "boolean":
                return self._random.random() < 0.8
            case "array":
                return ["as far as is known"]
            case _:
                return self._pick(BRANCHES) if "ranch" in name else f"a good {name}"

    def _hostile(self) -> Any:
        match self._random.randrange(8):
            case 0 | 1 | 2:
                return self._pick(TEXTS)
            case 3 | 4:
                return self._pick(NUMBERS)
            case 5:
                return self._pick((None, True, False, [], {}, [None], [[["1"]]], {"a": {"b": []}}))
            case 6:
                return Raw(self._pick(RAW))
            case _:
                letters = self._random.choices(string.printable, k=self._random.randint(1, 400))
                return "".join(letters)

    def _pick(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def _next_id(self) -> str:
        self._count += 1
        return f"shot-{self._count}-{self._random.randrange(10**9)}"

    def _uuid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))
