"""What a tool is to the server: a definition for the client, a parser, and a use case."""

from typing import Any, ClassVar, Protocol

from mcp_types import Tool

from ledger.application import Ledger
from ledger.header import Context


class LedgerTool(Protocol):
    """One tool.  ``parse`` needs no database, so bad arguments are refused without one."""

    definition: ClassVar[Tool]

    def parse(self, arguments: dict[str, Any]) -> Any:
        """What the tool is asked, with an attribute ``request_id``.  Raises InputError."""
        ...

    async def run(self, ledger: Ledger, context: Context, said: Any) -> dict[str, Any]:
        """The answer, as plain JSON.  Raises LedgerError when the ledger refuses."""
        ...
