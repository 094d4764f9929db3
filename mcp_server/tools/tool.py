"""What a tool is to the server: a definition for the client, a parser, and a use case."""

from dataclasses import dataclass
from typing import Any, Protocol

from mcp_types import Tool

from ledger.application import Ledger
from ledger.errors import LedgerError
from ledger.header import Context
from mcp_server.inputs import InputError


@dataclass(frozen=True)
class Narrated:
    """An answer whose text is not its JSON but a text of its own."""

    structured: dict[str, Any]
    text: str


class LedgerTool(Protocol):
    """One tool.  ``parse`` needs no database, so bad arguments are refused without one."""

    definition: Tool

    def parse(self, arguments: dict[str, Any]) -> Any:
        """What the tool is asked, with an attribute ``request_id``.  Raises InputError."""
        ...

    async def run(self, ledger: Ledger, context: Context, said: Any) -> dict[str, Any] | Narrated:
        """The answer, as plain JSON.  Raises LedgerError when the ledger refuses."""
        ...

    def refusal(self, error: InputError | LedgerError) -> str:
        """What the client reads when the tool or the ledger refuses."""
        return str(error)


def records_nothing(tool: Tool) -> bool:
    """Whether the tool says of itself that it only reads."""
    return tool.annotations is not None and tool.annotations.read_only_hint is True
