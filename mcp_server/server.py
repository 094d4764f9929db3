"""The MCP server: tools, resources and prompts over the ledger, on the SDK's low-level server.

The low-level server, because the wire contract is ours to the letter: the SDK's decorators would
derive schemas, coerce arguments and word errors themselves.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    ServerCapabilities,
    TextContent,
)

from ledger.display import shortened
from ledger.errors import LedgerError
from ledger.said import Said
from mcp_server.completions import Completions
from mcp_server.door import READ, WRITE, Caller, Door, OpenDoor
from mcp_server.inputs import InputError
from mcp_server.prompts.advice import Advice
from mcp_server.prompts.book import PromptBook
from mcp_server.pushes import Pushes
from mcp_server.requests import Requests, context_of
from mcp_server.resources.catalog import Catalog
from mcp_server.resources.resource import LedgerResource
from mcp_server.source import LedgerSource
from mcp_server.tools.tool import LedgerTool, Narrated, records_nothing
from mcp_server.version import NAME, package_version

# What is the same for everybody as long as a server runs, and what depends on the data.
FIXED = CacheHint(ttl_ms=300_000, scope="public")
MOVING = CacheHint(ttl_ms=0, scope="private")
CACHED: dict[CacheableMethod, CacheHint] = {
    "server/discover": FIXED,
    "tools/list": FIXED,
    "prompts/list": FIXED,
    "resources/templates/list": FIXED,
    "resources/list": MOVING,
    "resources/read": MOVING,
}

KEPT = "A chain can be read as thought-chain://CHAIN_ID."
INSTRUCTIONS = f"""\
A durable ledger of reasoning. Record each step with a tool for thinking; every thought, revision \
and branch is kept for ever and can be replayed. Where an answer names a chain_id or session_id, \
pass it to go on there later. {KEPT}"""
INSTRUCTIONS_TO_READ = f"""\
A durable ledger of reasoning, here to be read only: every thought, revision and branch that \
agents have recorded. {KEPT}"""

logger = logging.getLogger(__name__)


def build_server(
    source: LedgerSource,
    tools: Sequence[LedgerTool],
    resources: Sequence[LedgerResource] = (),
    *,
    actor: str | None = None,
    door: Door | None = None,
) -> Server[Any]:
    """The server of one process.

    *actor* is who records where the door knows no name; by default the client's.
    """
    by_name = {tool.definition.name: tool for tool in tools}
    door = door or OpenDoor()

    async def list_tools(
        _: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[tool.definition for tool in tools])

    async def call_tool(
        request: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            names = ", ".join(by_name)
            raise MCPError(
                INVALID_PARAMS, f"there is no tool {shortened(params.name)}; the tools: {names}"
            )
        began = time.perf_counter()
        outcome, result = await _call(tool, request, params, door.caller(request.request))
        door.took(params.name, outcome, time.perf_counter() - began)
        return result

    async def _call(
        tool: LedgerTool,
        request: ServerRequestContext[Any],
        params: CallToolRequestParams,
        caller: Caller,
    ) -> tuple[str, CallToolResult]:
        if not caller.may(scope := READ if records_nothing(tool.definition) else WRITE):
            return "refused", _refusal(
                f"the token {caller.name} may not call {params.name}, which needs the scope "
                f"{scope}; use a token that has it"
            )
        try:
            said = tool.parse(params.arguments or {})
            context = context_of(request, caller, actor, said.request_id)
            return "answered", _result(await tool.run(await source.get(), context, said))
        except InputError as refusal:
            return "refused", _refusal(tool.refusal(refusal))
        except LedgerError as refusal:
            return "refused", _refusal(tool.refusal(door.told(refusal)))
        # The last door before the client: the SDK would send it whatever the exception says.
        except Exception:
            error_id = uuid4().hex[:8]
            logger.exception(
                Said(
                    f"error {error_id} in {params.name}",
                    event="call_failed",
                    error_id=error_id,
                    tool=params.name,
                )
            )
            return "failed", _refusal(
                f"this server failed (error {error_id}, see its stderr); it is not known whether "
                "this was recorded, read the chain before you send it again"
            )

    def input_schema(name: str) -> Mapping[str, Any] | None:
        tool = by_name.get(name)
        return tool.definition.input_schema if tool else None

    requests = Requests(source, door, actor)
    advice = Advice(by_name)
    catalog = Catalog(requests, resources, advice.how_to_recall())
    prompts = PromptBook(requests, advice)
    completions = Completions(requests, prompts.definitions, catalog.templates)
    pushes = Pushes(requests, catalog.is_told)

    return LedgerServer(
        NAME,
        version=package_version(),
        title="Thought Ledger",
        instructions=_instructions(tools),
        cache_hints=CACHED,
        lifespan=pushes.lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=catalog.list,
        on_list_resource_templates=catalog.list_templates,
        on_read_resource=catalog.read,
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
        on_completion=completions.complete,
        on_subscriptions_listen=pushes.listen,
        # Of the older protocol, where what is pushed needs a connection to be pushed over.
        on_subscribe_resource=pushes.subscribe if door.keeps_connections else None,
        on_unsubscribe_resource=pushes.unsubscribe if door.keeps_connections else None,
        # Or the SDK would list all tools at every call over HTTP, to compare headers with a schema.
        get_tool_input_schema=input_schema,
    )


class LedgerServer(Server[Any]):
    """The SDK's server, which would announce changes of lists wherever it can push anything."""

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> ServerCapabilities:
        """What this server can do: no list that changes while it runs is announced to anybody."""
        said = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        for capability in (said.tools, said.prompts, said.resources):
            if capability is not None:
                capability.list_changed = False
        return said


def _instructions(tools: Sequence[LedgerTool]) -> str:
    only_read = all(records_nothing(tool.definition) for tool in tools)
    return INSTRUCTIONS_TO_READ if only_read else INSTRUCTIONS


def _refusal(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def _result(answer: dict[str, Any] | Narrated) -> CallToolResult:
    if isinstance(answer, Narrated):
        structured, text = answer.structured, answer.text
    else:
        structured, text = answer, orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    told = TextContent(type="text", text=text)
    return CallToolResult(content=[told], structured_content=structured)
