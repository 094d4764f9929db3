"""``thought-ledger serve``: the server, its ledger and its worker, from start to clean end."""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ledger.database import Role
from ledger.settings import Settings
from mcp_server.choice import Choice
from mcp_server.server import build_server
from mcp_server.source import LedgerSource
from mcp_server.stdio import Wire, serve_stdio
from mcp_server.tools.echo import Echo
from mcp_server.toolsets import Clients, Offer, connected, offer_of
from mcp_server.worker_process import WorkerProcess
from projections.lists import ChainLists


@dataclass(frozen=True)
class ServeOptions:
    """What ``serve`` was asked for."""

    session_name: str | None = None
    worker: bool = True
    echo_thoughts: bool = False
    choice: Choice = field(default_factory=Choice)


# Makes what the tools know of those who call.
ClientsOf = Callable[[ChainLists, Echo | None], Clients]


async def serve(settings: Settings, options: ServeOptions, wire: Wire) -> int:
    """Serve one client until it leaves; the exit code: 2 when the database never could be used."""
    clients_of = partial(connected, options.session_name)
    async with opened(settings, options, clients_of) as (source, offer):
        server = build_server(source, offer.tools, offer.resources, actor=settings.actor)
        await serve_stdio(server, wire)
    return exit_code(source)


@asynccontextmanager
async def opened(
    settings: Settings, options: ServeOptions, clients_of: ClientsOf
) -> AsyncGenerator[tuple[LedgerSource, Offer]]:
    """What serves over any transport: the ledger, being opened, with its worker; and the offer.

    Raises ChoiceError, before anything is started.
    """
    worker = WorkerProcess(settings)
    source = LedgerSource(
        settings,
        on_open=worker.start if options.worker else _nothing,
        role=Role.READER if options.choice.read_only else Role.WRITER,
    )
    echo = Echo(sys.stderr) if options.echo_thoughts else None
    offer = offer_of(options.choice, clients_of(source.lists, echo))
    source.start()
    # What is here now stays for the life of the process: the collector need not look at it again.
    gc.freeze()
    try:
        yield source, offer
    finally:
        await worker.stop()
        await source.close()
        if echo is not None:
            echo.close()


def exit_code(source: LedgerSource) -> int:
    """2 when the last attempt to open the database failed, else 0."""
    return 0 if source.error is None else 2


def run(settings: Settings, options: ServeOptions, wire: Wire) -> int:
    """``serve`` on an event loop of its own."""
    return run_loop(serve(settings, options, wire))


def run_loop(serving: Coroutine[Any, Any, int]) -> int:
    """Serve on an event loop of its own."""
    return asyncio.run(serving)


def _nothing() -> None: ...
