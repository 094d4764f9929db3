"""What a client is told about ``search_memories``.  The rules for schemas are in ``schemas``."""

from typing import Any

from mcp_types import Tool, ToolAnnotations

from projections.recall.ranking import Strategy

PROPERTIES: dict[str, Any] = {
    "query": {"type": "string", "description": "A question, words, a name, or a thought's text"},
    "limit": {"type": "integer", "description": "Rows, at most 50. Default: 10"},
    "strategy": {
        "type": "string",
        "enum": [*map(str, Strategy)],
        "description": "By words and likeness (hybrid, the default), likeness alone (vector), "
        "words alone (text), or words only where nothing is much alike (tiered)",
    },
    "session_id": {"type": "string", "description": "Only this session"},
    "agent": {"type": "string", "description": "Only chains this agent started"},
    "include": {
        "type": "array",
        "items": {"type": "string", "enum": ["abandoned", "paused"]},
        "description": "Chains to search besides active and completed ones",
    },
    "since": {"type": "string", "description": "Only chains moved since: 2026-05-01, or a moment"},
    "until": {"type": "string", "description": "Only chains begun before"},
    "min_trust": {
        "type": "number",
        "description": "Only thoughts trusted so far, 0 to 1. 0 includes archived ones",
    },
    "at_least": {
        "type": "integer",
        "description": "Wait a second at most until this position of the log is searched",
    },
    "explain": {"type": "boolean", "description": "Say which events made each score of trust"},
}

SEARCH_MEMORIES = Tool(
    name="search_memories",
    title="Search Memories",
    description=(
        "Find single thoughts, best first, with how far each is trusted. Ask before planning: "
        "how was a like problem solved, and what was tried in vain (include abandoned)?"
    ),
    input_schema={"type": "object", "properties": PROPERTIES, "required": ["query"]},
    annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False),
)
