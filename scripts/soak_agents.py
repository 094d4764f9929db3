"""The agents of ``scripts/soak``: each on a connection of its own, one call after the other."""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

MODERN, LEGACY = "2026-07-28", "2025-11-25"
CALL_SECONDS_MAX = 60
READ_SHARE = 0.1
TOOLS = ("sequentialthinking", "add_thought")
TEXT = "and what it holds true, and why, at some length. " * 6


@dataclass(frozen=True)
class Orders:
    """What a group of agents is to do; times are those of ``time.monotonic``."""

    port: int
    agents: list[int]
    chain_ids: list[str]
    seconds: float
    seed: int


@dataclass
class Report:
    """What agents were answered: of each thought its agent, its number and its chain."""

    thoughts: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    writes: list[float] = field(default_factory=list[float])
    reads: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])


def name_of(agent: int) -> str:
    return f"agent-{agent}"


def token_of(agent: int) -> str:
    return f"token-of-agent-{agent}"


def text_of(agent: str, number: int) -> str:
    return f"{agent} thinks {number}: {TEXT}"


class Client:
    """One keep-alive connection; every other agent speaks the older era of the protocol."""

    def __init__(self, port: int, agent: int) -> None:
        self._port = port
        self._era = MODERN if agent % 2 else LEGACY
        self._token = token_of(agent)
        self._asked = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a call."""
        self._asked += 1
        params: dict[str, object] = {"name": tool, "arguments": arguments}
        if self._era == MODERN:
            meta = {
                "protocolVersion": MODERN,
                "clientCapabilities": {},
                "clientInfo": {"name": "soak", "version": "1"},
            }
            named = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
            params["_meta"] = named
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "tools/call", "params": params}
        async with asyncio.timeout(CALL_SECONDS_MAX):
            answer = await self._exchange(tool, json.dumps(message).encode())
        if answer.get("id") != self._asked or "result" not in answer:
            raise RuntimeError(f"call {self._asked} of {self._token} is answered {answer}")
        return answer["result"]

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()

    async def _exchange(self, tool: str, body: bytes) -> dict[str, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        reader, writer = self._streams
        head = (
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Authorization: Bearer {self._token}\r\nMCP-Protocol-Version: {self._era}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if "transfer-encoding: chunked" in fields:
            text = await _read_chunks(reader)
        else:
            length = fields.split("content-length:")[1].split("\r\n")[0]
            text = await reader.readexactly(int(length))
        if "text/event-stream" in fields:
            text = [line for line in text.split(b"\n") if line.startswith(b"data: ")][-1][6:]
        return json.loads(text)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


def run_agents(orders: Orders) -> Report:
    """Let the agents think until their time is up."""
    return asyncio.run(_run_agents(orders))


async def _run_agents(orders: Orders) -> Report:
    report = Report()
    end = time.monotonic() + orders.seconds
    await asyncio.gather(*(_think(orders, agent, end, report) for agent in orders.agents))
    return report


async def _think(orders: Orders, agent: int, end: float, report: Report) -> None:
    chance = random.Random(orders.seed * 1_000 + agent)
    client = Client(orders.port, agent)
    name, number = name_of(agent), 0
    try:
        while time.monotonic() < end:
            chain_id = chance.choice(orders.chain_ids)
            if chance.random() < READ_SHARE:
                await _read(client, chain_id, report)
                continue
            number += 1
            thought = (name, number, chain_id)
            await _write(client, chance.choice(TOOLS), thought, report)
    finally:
        client.close()


async def _write(client: Client, tool: str, thought: tuple[str, int, str], report: Report) -> None:
    name, number, chain_id = thought
    began = time.perf_counter()
    result = await client.call(
        tool,
        thought=text_of(name, number),
        thoughtNumber=number + 1,
        totalThoughts=number + 1,
        nextThoughtNeeded=True,
        chain_id=chain_id,
    )
    report.writes.append(time.perf_counter() - began)
    answer: dict[str, Any] = result.get("structuredContent") or {}
    said = (answer.get("thoughtNumber"), answer.get("chain_id"))
    if said == (number + 1, chain_id):
        report.thoughts.append(thought)
    else:
        report.wrong.append(f"{name} {number} in {chain_id}: {result}")


async def _read(client: Client, chain_id: str, report: Report) -> None:
    began = time.perf_counter()
    result = await client.call("get_thought_chain", chain_id=chain_id, last=5)
    report.reads.append(time.perf_counter() - began)
    answer: dict[str, Any] = result.get("structuredContent") or {}
    if answer.get("chain_id") != chain_id or len(answer["thoughts"]) > 5:
        report.wrong.append(f"a read of {chain_id}: {result}")
