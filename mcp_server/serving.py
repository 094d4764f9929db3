"""``thought-ledger serve``: the server, its ledger and its worker, from start to clean end."""

import asyncio
import gc
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.settings import Settings
from mcp_server.conversation import Conversation
from mcp_server.server import build_server
from mcp_server.source import LedgerSource
from mcp_server.stdio import Wire, serve_stdio
from mcp_server.tools.compat import SequentialThinking
from mcp_server.tools.echo import echo_thought
from mcp_server.tools.tool import LedgerTool
from mcp_server.worker_process import WorkerProcess


@dataclass(frozen=True)
class ServeOptions:
    """What ``serve`` was asked for."""

    session_name: str | None = None
    worker: bool = True
    echo_thoughts: bool = False


async def serve(settings: Settings, options: ServeOptions, wire: Wire) -> int:
    """Serve one client until it leaves; the exit code: 2 when the database never could be used."""
    worker = WorkerProcess(settings)
    source = LedgerSource(settings, on_open=worker.start if options.worker else _nothing)
    server = build_server(source, _tools(options), actor=settings.actor)
    source.start()
    # What is here now stays for the life of the process: the collector need not look at it again.
    gc.freeze()
    try:
        await serve_stdio(server, wire)
    finally:
        await worker.stop()
        await source.close()
    return 0 if source.error is None else 2


def run(settings: Settings, options: ServeOptions, wire: Wire) -> int:
    """``serve`` on an event loop of its own."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(name)s: %(message)s")
    return asyncio.run(serve(settings, options, wire))


def _tools(options: ServeOptions) -> Sequence[LedgerTool]:
    conversation = Conversation(options.session_name)
    return [SequentialThinking(conversation, echo_thought if options.echo_thoughts else None)]


def _nothing() -> None: ...
