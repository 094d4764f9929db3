"""The resource ``thought-ledger://status``: how the ledger is, as JSON."""

from typing import Any

import orjson
from mcp_types import Resource

from ledger.aggregate import Status
from ledger.application import Ledger
from ledger.header import Context
from mcp_server.resources.resource import STATUS_URI, LedgerResource
from mcp_server.version import NAME, package_version
from projections.lists import ChainCounts, ChainLists


class LedgerStatus(LedgerResource):
    """Tells how far the log is, and how far behind it the read model."""

    definition = Resource(
        name="thought_ledger_status",
        title="Status of the ledger",
        uri=STATUS_URI,
        description="The version of the product, the position of the log, the chains by status, "
        "and whether the read model that lists them is behind",
        mime_type="application/json",
    )

    def __init__(self, lists: ChainLists) -> None:
        self._lists = lists

    async def read(self, ledger: Ledger, context: Context) -> str:
        position = await ledger.position()
        counts = await self._lists.counts(context.tenant)
        told = {
            "product": NAME,
            "version": package_version(),
            "position": position,
            "chains": None if counts is None else _by_status(counts),
            "read_model": _read_model(counts, position),
        }
        return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n"


def _by_status(counts: ChainCounts) -> dict[str, int]:
    return {status.value: counts.chains.get(status, 0) for status in Status}


def _read_model(counts: ChainCounts | None, position: int) -> dict[str, Any]:
    if counts is None:
        return {"position": 0, "stale": position > 0}
    return {
        "position": counts.position,
        "stale": counts.lag_events > 0,
        "lag_events": counts.lag_events,
        "lag_seconds": round(counts.lag_seconds, 3),
    }
