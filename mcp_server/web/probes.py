"""The routes beside MCP: whether the process lives, whether the database answers, the numbers."""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ledger.database import DriverError
from ledger.errors import LedgerError
from mcp_server.source import LedgerSource
from mcp_server.web.metrics import CONTENT_TYPE, Metrics
from mcp_server.web.options import HEALTHZ, METRICS, READYZ
from mcp_server.web.strangers import for_strangers

PROBE_SECONDS_MAX = 2.0


class Probes:
    """Asks the database for its last position, one question at a time, and never waits long."""

    def __init__(self, source: LedgerSource, metrics: Metrics) -> None:
        self._source = source
        self._metrics = metrics
        self._asking: asyncio.Task[int] | None = None

    def routes(self) -> list[Route]:
        return [
            Route(HEALTHZ, self._healthz, methods=["GET"]),
            Route(READYZ, self._readyz, methods=["GET"]),
            Route(METRICS, self._render, methods=["GET"]),
        ]

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("it lives\n")

    async def _readyz(self, _: Request) -> Response:
        try:
            await self._position()
        except TimeoutError:
            return PlainTextResponse(
                f"the database has not answered within {PROBE_SECONDS_MAX:g} seconds\n", 503
            )
        except LedgerError as error:
            return PlainTextResponse(f"{for_strangers(error)}\n", 503)
        except DriverError as error:
            reason = str(error).strip().partition("\n")[0]
            return PlainTextResponse(f"the database failed ({reason})\n", 503)
        return PlainTextResponse("the database answers\n")

    async def _render(self, _: Request) -> Response:
        try:
            position, appends = await self._position(), (await self._source.get()).appends
        except (TimeoutError, LedgerError, DriverError):
            position = appends = None
        text = self._metrics.render(appends=appends, position=position)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def _position(self) -> int:
        # A database that hangs is asked once, however often somebody asks here.
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            return await asyncio.shield(self._asking)

    async def _ask(self) -> int:
        return await (await self._source.get()).position()
