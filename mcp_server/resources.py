"""What a resource is to the server, and the answers to a client that lists and reads them."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from mcp import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ReadResourceResult,
    Resource,
    TextResourceContents,
)

from ledger.application import Ledger
from ledger.display import shortened
from ledger.header import Context


class LedgerResource(Protocol):
    """One resource with a fixed address."""

    definition: ClassVar[Resource]

    async def read(self, ledger: Ledger, context: Context) -> str:
        """Its text.  Raises LedgerError."""
        ...


def find_resource(resources: Sequence[LedgerResource], uri: str) -> LedgerResource:
    """The resource of that address.  Raises MCPError."""
    for resource in resources:
        if resource.definition.uri == uri:
            return resource
    known = ", ".join(resource.definition.uri for resource in resources)
    sentence = f"there is no resource {shortened(uri)}; the resources: {known}"
    raise MCPError(INVALID_PARAMS, sentence, {"uri": uri})


def contents_of(resource: LedgerResource, text: str) -> ReadResourceResult:
    """The answer to a client that reads it."""
    uri, mime_type = resource.definition.uri, resource.definition.mime_type
    return ReadResourceResult(
        contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)]
    )
