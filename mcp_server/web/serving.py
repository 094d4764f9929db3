"""``serve --transport http``: the application, from its socket to its clean end."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ledger.errors import LedgerError
from ledger.said import Said
from ledger.settings import Settings
from mcp_server.door import READ, Caller, Door
from mcp_server.http_words import worded_for_http
from mcp_server.server import build_server
from mcp_server.serving import ServeOptions, exit_code, opened, run_loop
from mcp_server.source import LedgerSource
from mcp_server.stdio import STUCK_SECONDS_MAX, end_stuck_process
from mcp_server.toolsets import unconnected
from mcp_server.web.bodies import Bodies, Room
from mcp_server.web.connections import Limits, Places, protocol_with
from mcp_server.web.descriptors import ACCEPTS_MAX, Exhaustion, raise_limit
from mcp_server.web.guards import NamesGuard, TokensGuard, caller_of
from mcp_server.web.listening import BACKLOG, listen, names_of, url_of
from mcp_server.web.metrics import Metrics
from mcp_server.web.options import HEALTHZ, METRICS, READYZ, HttpOptions
from mcp_server.web.probes import Probes
from mcp_server.web.strangers import for_strangers

logger = logging.getLogger("thought-ledger")

BODY_BYTES_MAX = 4 * 2**20
# How long answers may take after a signal; streams that never end are cut then.
GRACE_SECONDS = 1
# Longer than clients and proxies keep a connection they do not use: theirs to close first.
KEEP_ALIVE_SECONDS = 75
# What uvicorn says of each such request, as it begins.
STRANGERS_ERRORS = ("Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket")


class HttpDoor(Door):
    """Knows callers by their tokens, and counts."""

    keeps_connections = False

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def caller(self, request: Any) -> Caller:
        return caller_of(request.scope)

    def took(self, tool: str, outcome: str, seconds: float) -> None:
        self._metrics.took(tool, outcome, seconds)

    def told(self, error: LedgerError) -> LedgerError:
        return for_strangers(error)


class HttpServer(uvicorn.Server):
    """uvicorn, which leaves the signals to us and says when it listens."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # asyncio takes its number of accepts in a turn for the length of the socket's queue too.
        for listening in sockets or ():
            listening.listen(BACKLOG)
        self._on_listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Nothing: uvicorn would raise each signal again at the end, which ends us by it."""
        yield

    def end(self) -> None:
        """Take no more requests, answer those that are here, and return from ``serve``."""
        # The second time somebody has lost patience.
        self.force_exit = self.should_exit
        self.should_exit = True


def run(settings: Settings, options: ServeOptions, http: HttpOptions) -> int:
    """``serve --transport http`` on an event loop of its own; the exit code is that of stdio.

    Raises ListenError and UnguardedError, before anything is started.
    """
    with listen(http.host, http.port, http.tokens) as listening:
        raise_limit()
        return run_loop(serve(settings, options, http, listening))


async def serve(
    settings: Settings, options: ServeOptions, http: HttpOptions, listening: socket.socket
) -> int:
    """Serve whoever comes until a signal ends it."""
    metrics = Metrics()
    async with opened(settings, options, unconnected) as (source, offer):
        for tool in offer.tools:
            tool.definition = worded_for_http(tool.definition)
        server = build_server(
            source, offer.tools, offer.resources, actor=settings.actor, door=HttpDoor(metrics)
        )
        await serve_http(server, source, metrics, http, listening)
    return exit_code(source)


async def serve_http(
    server: Server[Any],
    source: LedgerSource,
    metrics: Metrics,
    options: HttpOptions,
    listening: socket.socket,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; what is being recorded then is finished first."""
    probes = Probes(source, metrics)
    names = names_of(listening, options.allowed_hosts)
    config = uvicorn.Config(
        build_app(server, probes, metrics, options, names),
        log_config=None,
        access_log=False,
        http=protocol_with(Limits(Places())),
        ws="none",
        backlog=ACCEPTS_MAX,
        lifespan="on",
        # Nobody is believed who says that he speaks for others.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    url = url_of(listening, options.path)
    listens = Said(f"listening on {url}", event="listening", url=url)
    http = HttpServer(config, lambda: logger.info(listens))
    asyncio.get_running_loop().set_exception_handler(Exhaustion().handle)
    with _signals_ending(http):
        try:
            await http.serve([listening])
        finally:
            await probes.close()


def build_app(
    server: Server[Any], probes: Probes, metrics: Metrics, options: HttpOptions, names: list[str]
) -> ASGIApp:
    """MCP and the probes, behind the guards."""
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=options.path,
        # Stateless: a client goes on when this process was replaced by another.
        stateless_http=not options.sessions,
        max_request_body_size=BODY_BYTES_MAX,
        # The guard before it looks at every route, the SDK's at one.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        custom_starlette_routes=probes.routes(),
    )
    app = Bodies(app, options.path, BODY_BYTES_MAX, Room())
    if not options.sessions:
        app = _PostOnly(app, options.path)
    app = TokensGuard(
        app,
        options.tokens,
        open_paths=[HEALTHZ],
        needed={READYZ: (READ,), METRICS: (READ,)},
        on_refused=metrics.refused,
    )
    return NamesGuard(app, names, on_refused=metrics.refused)


class _PostOnly:
    """Answers 405 to what is not POST on MCP's path.

    Without sessions a GET would open a stream on which nothing can ever come.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == self._path and scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@contextlib.contextmanager
def _signals_ending(http: HttpServer) -> Generator[None]:
    loop = asyncio.get_running_loop()
    caught = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks us to stay
        caught.append(signal.SIGHUP)

    def end() -> None:
        if not http.should_exit:
            loop.call_later(STUCK_SECONDS_MAX, end_stuck_process)
        http.end()

    for number in caught:
        loop.add_signal_handler(number, end)
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Not that a stream was cut at the end, with a traceback: that is what the end is for.

    Nor what a stranger got wrong, who could say it as often as he likes.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not (
        isinstance(error, asyncio.CancelledError)
        or record.getMessage().startswith(STRANGERS_ERRORS)
        or "timeout graceful shutdown exceeded" in record.getMessage()
    )
