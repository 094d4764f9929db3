"""What a resource is to the server: one with a fixed address, and one of every chain."""

from typing import ClassVar, Protocol
from uuid import UUID

from mcp import MCPError
from mcp_types import INVALID_PARAMS, Resource, ResourceTemplate

from ledger.application import Ledger
from ledger.header import Context

CHAIN_SCHEME = "thought-chain://"
EVENTS_PATH = "/events"
STATUS_URI = "thought-ledger://status"
MEMORY_URI = "thought-ledger://memory"


class LedgerResource(Protocol):
    """One resource with a fixed address."""

    definition: ClassVar[Resource]

    async def read(self, ledger: Ledger, context: Context) -> str:
        """Its text.  Raises LedgerError."""
        ...


class ChainResource(Protocol):
    """A resource that every chain has; ``path`` is what follows the chain's id in its address."""

    template: ClassVar[ResourceTemplate]
    path: ClassVar[str]

    async def read(self, ledger: Ledger, chain_id: UUID) -> str:
        """Its text.  Raises ChainNotFoundError and other LedgerErrors."""
        ...


class ResourceNotFoundError(MCPError):
    """There is nothing at an address, as the protocol says it."""

    def __init__(self, uri: str, sentence: str) -> None:
        super().__init__(INVALID_PARAMS, sentence, {"uri": uri})


def uri_of(chain_id: UUID, path: str = "") -> str:
    """The address of a resource of a chain."""
    return f"{CHAIN_SCHEME}{chain_id}{path}"


def chain_of(uri: str) -> tuple[UUID, str] | None:
    """The chain an address speaks of and the path in it; None when it is no chain's."""
    if not uri.startswith(CHAIN_SCHEME):
        return None
    name, slash, path = uri.removeprefix(CHAIN_SCHEME).partition("/")
    try:
        chain_id = UUID(name)
    except ValueError:
        return None
    # UUID() also takes braces, no hyphens and more, and one chain has one address.
    return (chain_id, slash + path) if str(chain_id) == name.lower() else None
