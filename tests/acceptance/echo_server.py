"""A server with a few tools that misbehave, over the stdio transport of the product."""

# ruff: noqa: E402, ASYNC221, ASYNC240 - stdout is claimed first, and misbehaving is the purpose

from mcp_server.wire import claim_stdout

WIRE = claim_stdout()

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server import MCPServer

from mcp_server.stdio import serve_stdio

server: MCPServer[Any] = MCPServer("echo", log_level="CRITICAL")
order: list[int] = []


@server.tool()
async def empty(text: str = "", number: int = 0) -> dict[str, int]:
    return {"number": number}


@server.tool()
async def echo(text: Any) -> dict[str, Any]:
    return {"text": text}


@server.tool()
async def length(text: str) -> dict[str, int]:
    return {"length": len(text)}


@server.tool()
async def large(size: int) -> dict[str, str]:
    return {"text": "x" * size}


@server.tool()
async def ordered(number: int) -> dict[str, Any]:
    order.append(number)
    await anyio.lowlevel.checkpoint()
    return {"before": order.index(number)}


@server.tool()
async def shielded(path: str, seconds: float) -> dict[str, bool]:
    with anyio.CancelScope(shield=True):
        Path(path).write_text("started")
        await anyio.sleep(seconds)
        Path(path).write_text("finished")
    return {"finished": True}


@server.tool()
async def hang(path: str) -> dict[str, bool]:
    Path(path).write_text("started")
    try:
        await anyio.sleep_forever()
    finally:
        Path(path).write_text("cancelled")
    return {}


@server.tool()
async def pollute() -> dict[str, Any]:
    print("print")
    sys.stdout.flush()
    os.write(1, b"os.write\n")
    libc = ctypes.CDLL(None)
    libc.puts(b"libc")
    libc.fflush(None)
    subprocess.run(["echo", "child"], check=True)
    eaten = subprocess.run(["cat"], check=True, capture_output=True).stdout
    return {"eaten": len(eaten)}


@server.tool()
async def memory() -> dict[str, int]:
    peak = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
    return {"peak_kib": int(peak[0].split()[1])}


async def main() -> None:
    await serve_stdio(server._lowlevel_server, WIRE)
    alive = [
        t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()
    ]
    print("non-daemon threads:", alive, file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["--stock"]:
        os.dup2(WIRE.input_fd, 0)
        os.dup2(WIRE.output_fd, 1)
        server.run("stdio")
    else:
        asyncio.run(main())
