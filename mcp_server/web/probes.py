"""The routes beside MCP: whether the process lives, whether the database answers, the numbers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ledger.database import DriverError
from ledger.errors import LedgerError, reason_of
from mcp_server.source import LedgerSource
from mcp_server.web.metrics import CONTENT_TYPE, Metrics
from mcp_server.web.options import HEALTHZ, METRICS, READYZ
from mcp_server.web.strangers import for_strangers
from projections.status import Look, look_by

PROBE_SECONDS_MAX = 2.0
_T = TypeVar("_T")


class _Question(Generic[_T]):
    """Asked once at a time, however often somebody wants to know, and never waited for long."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[_T] | None = None

    async def answer(self) -> _T:
        """Raises TimeoutError and what the question raises."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            return await asyncio.shield(self._asking)

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])


class Probes:
    """Asks the database for its last position and for the read models."""

    def __init__(self, source: LedgerSource, metrics: Metrics) -> None:
        self._source = source
        self._metrics = metrics
        self._position = _Question(self._ask_position)
        self._look = _Question(self._ask_look)

    def routes(self) -> list[Route]:
        return [
            Route(HEALTHZ, self._healthz, methods=["GET"]),
            Route(READYZ, self._readyz, methods=["GET"]),
            Route(METRICS, self._render, methods=["GET"]),
        ]

    async def close(self) -> None:
        await self._position.close()
        await self._look.close()

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("it lives\n")

    async def _readyz(self, _: Request) -> Response:
        try:
            await self._position.answer()
        except TimeoutError:
            return PlainTextResponse(
                f"the database has not answered within {PROBE_SECONDS_MAX:g} seconds\n", 503
            )
        except LedgerError as error:
            return PlainTextResponse(f"{for_strangers(error)}\n", 503)
        except DriverError as error:
            return PlainTextResponse(f"the database failed ({reason_of(error)})\n", 503)
        return PlainTextResponse("the database answers\n")

    async def _render(self, _: Request) -> Response:
        try:
            position, look = await asyncio.gather(self._position.answer(), self._look.answer())
            appends = (await self._source.get()).appends
        except (TimeoutError, LedgerError, DriverError):
            position = appends = look = None
        generations = look.generations if look else ()
        text = self._metrics.render(
            appends=appends,
            position=position,
            generations=generations,
            embeddings=look.embeddings if look else None,
        )
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    async def _ask_position(self) -> int:
        return await (await self._source.get()).position()

    async def _ask_look(self) -> Look:
        await self._source.get()
        return await asyncio.to_thread(look_by, self._source.reader())
