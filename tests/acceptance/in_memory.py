"""The product's server object and the SDK's client in this process, on a real database."""

import asyncio
import warnings
from contextlib import asynccontextmanager

from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning

from ledger.settings import Settings
from mcp_server.choice import Choice
from mcp_server.server import build_server
from mcp_server.source import LedgerSource
from mcp_server.toolsets import connected as clients_of_a_connection
from mcp_server.toolsets import offer_of
from tests.acceptance.client import thought

MODERN, LEGACY = "auto", "legacy"
ERAS = [MODERN, LEGACY]
SECONDS_MAX = 30
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
NOWHERE = Settings(database_url="postgresql://nobody@127.0.0.1:1/nothing")


@asynccontextmanager
async def connected(
    settings, era=MODERN, toolsets=("compat", "chains"), tools=None, on_message=None, resources=()
):
    """A client of a server of its own, with more *resources*; there is no worker."""
    source = LedgerSource(settings)
    source.start()
    try:
        clients = clients_of_a_connection(None, source.lists, None)
        offer = offer_of(Choice(tuple(toolsets), tools), clients)
        server = build_server(source, offer.tools, [*offer.resources, *resources])
        async with Client(server, mode=era, message_handler=on_message) as client:
            yield client
    finally:
        await source.close()


def talk(where, conversation, **how):
    """What ``conversation(client)`` returns; *where* is a data directory or settings."""
    settings = where if isinstance(where, Settings) else Settings(data_dir=where)

    async def run():
        async with asyncio.timeout(SECONDS_MAX), connected(settings, **how) as client:
            return await conversation(client)

    with warnings.catch_warnings():
        # What only the older protocol has is marked so in the SDK, and served nevertheless.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        return asyncio.run(run())


def refusal_of(where, conversation, **how):
    """The protocol error that a conversation ends with."""

    async def converse(client):
        try:
            answer = await conversation(client)
        except MCPError as error:
            return error.error
        raise AssertionError(f"nothing was refused: {answer}")

    return talk(where, converse, **how)


async def call(client, tool, **arguments):
    """The structured answer of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def add(client, text="t", number=1, **others):
    return await call(client, "add_thought", **thought(text, number, **others))


async def a_chain(client, *texts):
    """The id of a chain with these thoughts."""
    chain_id = (await call(client, "start_thought_chain", title="which index?"))["chain_id"]
    for number, text in enumerate(texts, start=1):
        await add(client, text, number, chain_id=chain_id)
    return chain_id


async def text_of(client, uri):
    """The text of a resource."""
    (contents,) = (await client.read_resource(uri)).contents
    assert contents.uri == uri
    return contents.text
