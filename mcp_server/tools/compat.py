"""The toolset ``compat``: the drop-in for ``@modelcontextprotocol/server-sequential-thinking``."""

from collections.abc import Callable
from typing import Any

from mcp_types import Tool, ToolAnnotations

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.inputs import ThoughtInput, parse_sequentialthinking
from mcp_server.schemas import (
    SEQUENTIALTHINKING_DESCRIPTION,
    SEQUENTIALTHINKING_OUTPUT_SCHEMA,
    SEQUENTIALTHINKING_SCHEMA,
)
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool

SEQUENTIALTHINKING = Tool(
    name="sequentialthinking",
    title="Sequential Thinking",
    description=SEQUENTIALTHINKING_DESCRIPTION,
    input_schema=SEQUENTIALTHINKING_SCHEMA,
    output_schema=SEQUENTIALTHINKING_OUTPUT_SCHEMA,
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
)


class SequentialThinking(LedgerTool):
    """Records one thought."""

    definition = SEQUENTIALTHINKING

    def __init__(
        self, thinking: Thinking, on_thought: Callable[[ThoughtInput], None] | None
    ) -> None:
        """*on_thought* is told of each thought that was recorded."""
        self._thinking = thinking
        self._on_thought = on_thought

    def parse(self, arguments: dict[str, Any]) -> ThoughtInput:
        return parse_sequentialthinking(arguments)

    async def run(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        answer = await self._thinking.think(ledger, context, said)
        if self._on_thought is not None:
            self._on_thought(said)
        return answer
