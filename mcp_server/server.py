"""The MCP server: tools over the ledger, on the SDK's low-level server.

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
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)

from ledger.display import shortened
from ledger.errors import LedgerError
from ledger.header import Context
from ledger.limits import recordable_name
from mcp_server.door import READ, WRITE, Caller, Door, OpenDoor
from mcp_server.inputs import InputError
from mcp_server.resources import LedgerResource, contents_of, find_resource
from mcp_server.source import LedgerSource
from mcp_server.tools.tool import LedgerTool, Narrated, records_nothing
from mcp_server.version import NAME, package_version

LISTS_CACHED = CacheHint(ttl_ms=300_000, scope="public")

INSTRUCTIONS = """\
A durable ledger of reasoning. Record each step with a tool for thinking; every thought, revision \
and branch is kept for ever and can be replayed. Where an answer names a chain_id or session_id, \
pass it to go on there later."""

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
            context = _context(request, caller, actor, said.request_id)
            return "answered", _result(await tool.run(await source.get(), context, said))
        except (InputError, LedgerError) as refusal:
            return "refused", _refusal(tool.refusal(refusal))
        # The last door before the client: the SDK would send it whatever the exception says.
        except Exception:
            error_id = uuid4().hex[:8]
            logger.exception("error %s in %s", error_id, params.name)
            return "failed", _refusal(
                f"this server failed (error {error_id}, see its stderr); it is not known whether "
                "this was recorded, read the chain before you send it again"
            )

    async def list_resources(
        _: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[resource.definition for resource in resources])

    async def read_resource(
        request: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        resource = find_resource(resources, str(params.uri))
        caller = door.caller(request.request)
        if not caller.may(READ):
            raise MCPError(INVALID_PARAMS, f"the token {caller.name} may not read resources")
        try:
            context = _context(request, caller, actor, None)
            text = await resource.read(await source.get(), context)
        except LedgerError as refusal:
            raise MCPError(INTERNAL_ERROR, str(refusal)) from None
        return contents_of(resource, text)

    def input_schema(name: str) -> Mapping[str, Any] | None:
        tool = by_name.get(name)
        return tool.definition.input_schema if tool else None

    return Server(
        NAME,
        version=package_version(),
        title="Thought Ledger",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": LISTS_CACHED},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources if resources else None,
        on_read_resource=read_resource if resources else None,
        # Or the SDK would list all tools at every call over HTTP, to compare headers with a schema.
        get_tool_input_schema=input_schema,
    )


def _context(
    request: ServerRequestContext[Any], caller: Caller, actor: str | None, request_id: str | None
) -> Context:
    said = request.session.client_params
    client = recordable_name(said.client_info.name) if said else None
    client_version = recordable_name(said.client_info.version) if said else None
    return Context(
        actor=caller.name or actor or client or "agent",
        principal=caller.name,
        client=client,
        client_version=client_version,
        request_id=request_id,
    )


def _refusal(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def _result(answer: dict[str, Any] | Narrated) -> CallToolResult:
    if isinstance(answer, Narrated):
        structured, text = answer.structured, answer.text
    else:
        structured, text = answer, orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode()
    told = TextContent(type="text", text=text)
    return CallToolResult(content=[told], structured_content=structured)
