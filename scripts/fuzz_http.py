"""The way to a server over HTTP for ``scripts/fuzz``, which it does not always use as it should."""

import asyncio
import json
import random
import re
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from typing import Any

from fuzz_calls import MODERN, Maker, Shot
from fuzz_judge import Recorded, ViolationError, Volley, shown
from fuzz_values import MIB
from fuzz_wire import ANSWER_SECONDS_MAX, LEGACY, LINE_BYTES_MAX, ServerProcess

HTTP_BODY_BYTES_MAX = 4 * MIB
HTTP_CONNECTIONS = 8


class HttpTarget(ServerProcess):
    """A server on a port of this machine."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    async def start(self, command: list[str]) -> None:
        self.started(
            await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
            )
        )
        await asyncio.wait_for(self.listening, ANSWER_SECONDS_MAX)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        shot = self.good(method, params)
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            status, messages = await self._exchange(_request(shot, _headers(shot)))
        answers = [message for message in messages if message.get("id") == shot.request_id]
        if status != 200 or len(answers) != 1 or "result" not in answers[0]:
            raise ViolationError(f"no answer to a good call: {status} {shown(messages)}")
        return answers[0]["result"]

    async def fire(
        self, shots: list[Shot], maker: Maker, recorded: Recorded, *, fair: bool = False
    ) -> None:
        free = asyncio.Semaphore(HTTP_CONNECTIONS)

        async def one(shot: Shot) -> None:
            async with free:
                await self._fire_one(shot, maker, recorded, fair=fair)

        await asyncio.gather(*map(one, shots))

    async def end(self) -> int:
        self.process.terminate()
        return await self.ended()

    async def _fire_one(self, shot: Shot, maker: Maker, recorded: Recorded, *, fair: bool) -> None:
        if not fair and self._random.random() < 0.03:
            recorded.perhaps += bool(shot.call) or shot.kind == "mutated"
            await self._hang_up(shot)
            return
        # A server that turns a body away for its size may close before it has come.
        headers, good = _headers(shot), len(shot.content) <= HTTP_BODY_BYTES_MAX
        if not fair and self._random.random() < 0.15:
            headers, good = self._spoiled(headers), False
        # Waits for an answer to a request, not for one to bytes that are none.
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                status, messages = await self._exchange(_request(shot, headers), strict=good)
        except TimeoutError:
            raise ViolationError(f"no answer to {shown(shot)}") from None
        if status >= 500:
            raise ViolationError(f"status {status} {shown(messages)} to {shown(shot)}")
        self._judge(shot, status, messages, good=good)
        for message in messages:
            maker.learn(recorded.take(shot, message))

    def _judge(self, shot: Shot, status: int, messages: list[Any], *, good: bool) -> None:
        volley = Volley([shot])
        for message in messages:
            # Over HTTP also what asks for nothing is answered, if only that it is no message.
            if message.get("id") is not None or (good and shot.answers != "none"):
                volley.take(message)
        if good and shot.answers == "one" and volley.waiting:
            raise ViolationError(f"status {status} {shown(messages)} to {shown(shot)}")

    async def _exchange(self, request: bytes, *, strict: bool = True) -> tuple[int, list[Any]]:
        reader, writer = await self._connect()
        try:
            writer.write(request)
            status, kind, body = await _read_response(reader)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            if strict:
                raise ViolationError(f"no response to {shown(request)}") from None
            return 0, []
        finally:
            writer.close()
        lines = body.decode().split("\n") if kind == "text/event-stream" else []
        messages = [one[6:] for one in lines if one.startswith("data: ")]
        if kind == "application/json" and body:
            messages = [body.decode()]
        try:
            return status, [json.loads(message) for message in messages]
        except ValueError:
            raise ViolationError(f"status {status} with no JSON: {shown(messages)}") from None

    async def _hang_up(self, shot: Shot) -> None:
        """Send all, or a part, and wait for nothing."""
        request = _request(shot, _headers(shot))
        _, writer = await self._connect()
        writer.write(request[: self._random.choice((len(request), len(request) // 2, 10))])
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self.listening.result()
        return await asyncio.open_connection("127.0.0.1", int(port), limit=LINE_BYTES_MAX)

    def _spoiled(self, headers: dict[str, str]) -> dict[str, str]:
        changes: list[Callable[[dict[str, str]], object]] = [
            lambda h: h.update({"Content-Type": self._random.choice(("text/plain", "", "a/b;c"))}),
            lambda h: h.update({"Accept": self._random.choice(("text/html", "", "*/*"))}),
            lambda h: h.update({"MCP-Protocol-Version": self._random.choice(("1", "", MODERN))}),
            lambda h: h.update({"Mcp-Method": "tools/none", "Mcp-Name": "none"}),
            lambda h: h.update({"Host": self._random.choice(("evil.example", "", "\xff"))}),
            lambda h: h.update({"Origin": "http://evil.example"}),
            lambda h: h.update({"Content-Length": self._random.choice(("-1", "x", "5"))}),
            lambda h: h.update({"Transfer-Encoding": "chunked, none"}),
            lambda h: h.update({"Mcp-Session-Id": "x" * 200}),
            lambda h: h.update({"X-Large": "x" * 100_000}),
            lambda h: h.update({":method": self._random.choice(("GET", "PUT", "DELETE", "\0"))}),
            lambda h: h.update({":path": self._random.choice(("/", "/mcp/x", "//", "/%00"))}),
            lambda h: h.pop("Content-Type"),
            lambda h: h.pop("Host"),
        ]
        spoiled = dict(headers)
        self._random.choice(changes)(spoiled)
        return spoiled


def _headers(shot: Shot) -> dict[str, str]:
    headers = {
        ":method": "POST",
        ":path": "/mcp",
        "Host": "localhost",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN if shot.modern else LEGACY,
        "Content-Length": str(len(shot.content)),
    }
    return {**headers, "Mcp-Method": shot.method, "Mcp-Name": shot.call} if shot.modern else headers


def _request(shot: Shot, headers: dict[str, str]) -> bytes:
    first = f"{headers[':method']} {headers[':path']} HTTP/1.1"
    rest = [f"{name}: {value}" for name, value in headers.items() if name[0] != ":"]
    return "\r\n".join([first, *rest, "Connection: close", "", ""]).encode("latin-1") + shot.content


async def _read_response(reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
    """Status, type and body of a response after which the connection is closed."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    fields = dict(re.findall(r"(?m)^([^:\r\n]+): *([^\r\n]*)", head.lower()))
    body = await reader.read()
    if "chunked" in fields.get("transfer-encoding", ""):
        body = _joined(body)
    return int(head.split()[1]), fields.get("content-type", "").split(";")[0], body


def _joined(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        body += chunks[: int(size, 16)]
        chunks = chunks[int(size, 16) + 2 :]
    return body
