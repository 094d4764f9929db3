"""The resource ``thought-ledger://memory``: what an agent should know at the start of a session."""

from mcp_types import Resource

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.resources.chains import MARKDOWN
from mcp_server.resources.resource import MEMORY_URI, LedgerResource
from projections.tiers.tiers import Tiers


class LedgerMemory(LedgerResource):
    """The first two tiers, in markdown: who this is, what has proved good, and how to ask on."""

    definition = Resource(
        name="thought_ledger_memory",
        title="Memory of the ledger",
        uri=MEMORY_URI,
        description="For the start of a session: what this ledger is about, the reasoning patterns "
        "that proved good, and the dead ends to avoid",
        mime_type=MARKDOWN,
    )

    def __init__(self, tiers: Tiers, how_to_recall: str) -> None:
        self._tiers = tiers
        self._how_to_recall = how_to_recall

    async def read(self, ledger: Ledger, context: Context) -> str:  # noqa: ARG002 - it asks no log
        return await memory_text(self._tiers, context.tenant, self._how_to_recall)


async def memory_text(tiers: Tiers, tenant: str, how_to_recall: str) -> str:
    """The first two tiers, and the tools for what is below.  Raises DatabaseUnavailableError."""
    identity = await tiers.identity(tenant)
    summary = await tiers.summary(tenant)
    parts = (identity, summary.text, how_to_recall)
    return "\n\n".join(part for part in parts if part) + "\n"
