"""Two MCP servers on one database and clients of them, in memory; every call waits for its end."""

import asyncio
from contextlib import ExitStack, contextmanager

from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp_types import Implementation

from ledger.settings import Settings
from mcp_server.choice import Choice
from mcp_server.server import build_server
from mcp_server.source import LedgerSource
from mcp_server.toolsets import connected, offer_of
from projections.lists import ChainLists

ANSWER_SECONDS_MAX = 30
CLIENT = Implementation(name="machine", version="1")
# One connection of each era of the protocol.
ERAS = ("auto", "legacy")


class Desk:
    """Two ledgers, as two processes have them; ``connections`` are fresh ones, one to each."""

    def __init__(self, portal, database_url):
        self._portal = portal
        settings = Settings(database_url=database_url)
        self.sources = [LedgerSource(settings) for _ in ERAS]
        self._lists = [ChainLists(source.reader) for source in self.sources]

    @contextmanager
    def connections(self):
        with ExitStack() as stack:
            yield [
                stack.enter_context(self._portal.wrap_async_context_manager(client))
                for client in map(self._client, self.sources, self._lists, ERAS)
            ]

    def call(self, client, tool, arguments):
        (answer,) = self.call_at_once([(client, tool, arguments)])
        return answer

    def call_at_once(self, calls):
        """The results of calls that are made at the same time."""
        return self._portal.call(self._gather, calls)

    async def close(self):
        for lists in self._lists:
            await lists.close()
        for source in self.sources:
            await source.close()

    async def _gather(self, calls):
        waiting = [client.call_tool(tool, arguments) for client, tool, arguments in calls]
        return await asyncio.wait_for(asyncio.gather(*waiting), ANSWER_SECONDS_MAX)

    def _client(self, source, lists, era):
        offer = offer_of(Choice(), connected(None, lists, None))
        return Client(build_server(source, offer.tools), mode=era, client_info=CLIENT)


@contextmanager
def open_desk(database_url):
    with start_blocking_portal() as portal:
        desk = Desk(portal, database_url)
        for source in desk.sources:
            portal.call(source.get)
        try:
            yield desk
        finally:
            portal.call(desk.close)
