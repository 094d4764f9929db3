"""The toolset ``critical``: thoughts that must doubt themselves, in named episodes."""

from collections.abc import Callable
from typing import Any

import orjson
from mcp_types import Tool, ToolAnnotations

from ledger.application import Ledger
from ledger.errors import LedgerError
from ledger.header import Context
from mcp_server.critical.episodes import Episodes
from mcp_server.critical.inputs import HINT, CriticalInput, parse_criticalthinking
from mcp_server.critical.schemas import DESCRIPTION, OUTPUT_SCHEMA, SCHEMA
from mcp_server.critical.strict import SchemaError
from mcp_server.inputs import InputError, ThoughtInput
from mcp_server.tools.tool import LedgerTool, Narrated

CRITICALTHINKING = Tool(
    name="criticalthinking",
    title="Critical Thinking",
    description=DESCRIPTION,
    input_schema=SCHEMA,
    output_schema=OUTPUT_SCHEMA,
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
)


class CriticalThinking(LedgerTool):
    """Records one thought of an episode and tells it."""

    definition = CRITICALTHINKING

    def __init__(
        self, episodes: Episodes, on_thought: Callable[[ThoughtInput], None] | None
    ) -> None:
        """*on_thought* is told of each thought that was recorded."""
        self._episodes = episodes
        self._on_thought = on_thought

    def parse(self, arguments: dict[str, Any]) -> CriticalInput:
        return parse_criticalthinking(arguments)

    async def run(self, ledger: Ledger, context: Context, said: CriticalInput) -> Narrated:
        answer = await self._episodes.think(ledger, context, said)
        if self._on_thought is not None:
            self._on_thought(said.said)
        return answer

    def refusal(self, error: InputError | LedgerError) -> str:
        """JSON, as the original's, but for arguments of another shape than the schema's."""
        if isinstance(error, SchemaError):
            return str(error)
        refused = {"error": str(error), "status": "failed"}
        if isinstance(error, InputError):
            refused["hint"] = HINT
        return orjson.dumps(refused).decode()
