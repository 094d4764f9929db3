"""The resources of a server: listed, told by template, and read."""

from collections.abc import Sequence
from datetime import UTC

from mcp_types import (
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from ledger.display import shortened
from ledger.errors import ChainNotFoundError
from ledger.header import Context
from mcp_server.chains.values import cursor_of, to_after
from mcp_server.inputs import InputError
from mcp_server.requests import CursorError, Request, Requests, refuse_cursor
from mcp_server.resources.chains import MARKDOWN, ChainEvents, ChainText
from mcp_server.resources.memory import LedgerMemory
from mcp_server.resources.resource import (
    STATUS_URI,
    ChainResource,
    LedgerResource,
    ResourceNotFoundError,
    chain_of,
    uri_of,
)
from mcp_server.resources.status import LedgerStatus
from mcp_server.resources.text import on_one_line
from projections.lists import After, ChainFilter, ChainRow
from projections.tiers.tiers import Tiers

PAGE_CHAINS = 50


class Catalog:
    """Status, memory and chains, which every connection is offered, and what its toolsets add."""

    def __init__(
        self, requests: Requests, of_toolsets: Sequence[LedgerResource], how_to_recall: str
    ) -> None:
        self._requests = requests
        self._lists = requests.source.lists
        memory = LedgerMemory(Tiers(self._lists.connections), how_to_recall)
        fixed: list[LedgerResource] = [LedgerStatus(self._lists), memory, *of_toolsets]
        self._fixed = {resource.definition.uri: resource for resource in fixed}
        self._of_chains: list[ChainResource] = [ChainText(), ChainEvents()]

    @property
    def templates(self) -> list[ResourceTemplate]:
        return [resource.template for resource in self._of_chains]

    def is_told(self, uri: str) -> bool:
        """Whether subscribers of this address are told of updates, under this very spelling."""
        named = chain_of(uri)
        if named is None:
            return uri == STATUS_URI
        chain_id, path = named
        return any(uri == uri_of(chain_id, path) for one in self._of_chains if one.path == path)

    async def list(
        self, request: Request, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """The fixed ones, then the chains, the latest moved first."""
        cursor = params.cursor if params else None
        with self._requests.reading(request) as context:
            wanted = ChainFilter(limit=PAGE_CHAINS, after=_after(cursor))
            await self._requests.source.get()
            page = await self._lists.chains(context.tenant, wanted, position=0)
        fixed = [] if cursor else [resource.definition for resource in self._fixed.values()]
        return ListResourcesResult(
            resources=[*fixed, *map(_resource_of, page.chains)],
            next_cursor=page.following and cursor_of(page.following),
        )

    async def list_templates(
        self, _: Request, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        refuse_cursor(params)
        return ListResourceTemplatesResult(resource_templates=self.templates)

    async def read(self, request: Request, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        with self._requests.reading(request) as context:
            text, mime_type = await self._read(uri, context)
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)]
        )

    async def _read(self, uri: str, context: Context) -> tuple[str, str | None]:
        """Its text and what kind of text that is."""
        if fixed := self._fixed.get(uri):
            ledger = await self._requests.source.get()
            return await fixed.read(ledger, context), fixed.definition.mime_type
        chain_id, path = chain_of(uri) or (None, "")
        for resource in self._of_chains:
            if chain_id is not None and resource.path == path:
                ledger = await self._requests.source.get()
                try:
                    return await resource.read(ledger, chain_id), resource.template.mime_type
                except ChainNotFoundError as error:
                    raise ResourceNotFoundError(uri, str(error)) from None
        known = [*self._fixed, *(one.uri_template for one in self.templates)]
        raise ResourceNotFoundError(
            uri, f"there is no resource {shortened(uri)}; the resources: {', '.join(known)}"
        )


def _after(cursor: str | None) -> After | None:
    """Where an earlier page ended.  Raises CursorError."""
    if cursor is None:
        return None
    try:
        return to_after("cursor", cursor)
    except InputError:
        raise CursorError from None


def _resource_of(row: ChainRow) -> Resource:
    return Resource(
        name=str(row.id),
        title=on_one_line(row.title),
        uri=uri_of(row.id),
        description=f"{row.status}; thoughts: {row.thought_count}",
        mime_type=MARKDOWN,
        annotations=Annotations(last_modified=row.updated_at.astimezone(UTC).isoformat()),
    )
