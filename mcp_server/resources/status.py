"""The resource ``thought-ledger://status``: how the ledger is, as JSON."""

from collections.abc import Mapping
from typing import Any

import orjson
from mcp_types import Resource

from ledger.application import Ledger
from ledger.chain_state import Status
from ledger.header import Context
from mcp_server.resources.resource import STATUS_URI, LedgerResource
from mcp_server.version import NAME, package_version
from projections.embeddings.status import EmbeddingStatus
from projections.lists import ChainLists, Lag


class LedgerStatus(LedgerResource):
    """Tells how far the log is, and how far behind it each read model."""

    definition = Resource(
        name="thought_ledger_status",
        title="Status of the ledger",
        uri=STATUS_URI,
        description="The version of the product, the position of the log, the chains by status, "
        "and whether the read models, which lists and search ask, are behind",
        mime_type="application/json",
    )

    def __init__(self, lists: ChainLists) -> None:
        self._lists = lists

    async def read(self, ledger: Ledger, context: Context) -> str:
        position = await ledger.position()
        lags = await self._lists.lags()
        counts = await self._lists.counts(context.tenant)
        told = {
            "product": NAME,
            "version": package_version(),
            "position": position,
            "chains": None if counts is None else _by_status(counts),
            "stale": any(lag.events for lag in lags.values()),
            "embeddings": _embeddings(await self._lists.embeddings()),
            "read_models": {name: _read_model(lag) for name, lag in lags.items()},
        }
        return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n"


def _by_status(counts: Mapping[str, int]) -> dict[str, int]:
    return {status.value: counts.get(status, 0) for status in Status}


def _embeddings(status: EmbeddingStatus) -> dict[str, Any]:
    return {
        "state": status.state,
        "reason": status.reason,
        "model": status.model,
        "space": status.space,
        "behind": status.behind,
        "embedded": status.embedded,
        "left_out": status.left_out,
    }


def _read_model(lag: Lag) -> dict[str, Any]:
    return {
        "position": lag.position,
        "stale": lag.events > 0,
        "lag_events": lag.events,
        "lag_seconds": round(lag.seconds, 3),
    }
