"""What a client is told about the toolset ``memory``."""

from mcp_server.definitions import Schema, flag, number, text, tool
from projections.entity import Kind
from projections.recall.ranking import Strategy

INCLUDE: Schema = {
    "type": "array",
    "items": {"type": "string", "enum": ["abandoned", "paused"]},
    "description": "Chains to search besides active and completed ones",
}
MIN_TRUST: Schema = {
    "type": "number",
    "description": "Only thoughts trusted so far, 0 to 1; 0 includes archived ones",
}

SEARCH = tool(
    "search_memories",
    "Search Memories",
    "Find single thoughts, best first, and how far each is trusted. Ask before planning: how was "
    "a like problem solved, and (include abandoned) what was tried in vain?",
    {
        "query": text("A question, words, a name, or the text of a thought"),
        "limit": number("Rows, at most 50. Default: 10"),
        "strategy": text(
            "By words and likeness (hybrid, the default), by one of them (text, vector), or by "
            "likeness and by words only where nothing is much alike (tiered)",
            *map(str, Strategy),
        ),
        "session_id": text("Only this session"),
        "agent": text("Only chains that this agent started"),
        "include": INCLUDE,
        "since": text("Only chains moved since a day or moment, as 2026-05-01"),
        "until": text("Only chains begun before"),
        "min_trust": MIN_TRUST,
        "at_least": number("Wait up to a second until this position of the log is searched"),
        "explain": flag("Say which events made each score of trust; 10 rows at most"),
    },
    required=("query",),
    read_only=True,
)
FEEDBACK = tool(
    "record_feedback",
    "Record Feedback",
    "Say whether reasoning proved right, when you know it: after the user said so, a test ran, or "
    "the result was used. What is confirmed is offered first later on, what is corrected sinks. "
    "Nothing is deleted. The answer has the score before and after, from 0 to 1, and why.",
    {
        "chain_id": text("UUID of the chain"),
        "signal": text("Whether its outcome was right", "confirmed", "corrected"),
        "thought_number": number(
            "The thought it is about; left out: the last one when confirmed, the chain's "
            "conclusion when corrected"
        ),
        "thought_id": text("Or its UUID"),
        "scope": text("chain: confirm all of its thoughts, once for each source", "chain"),
        "source": text("Who judged, such as a user's name or a test; default: you"),
        "note": text("What was right or wrong"),
        "requestId": text("For retries: the call sent again with the same id is recorded once"),
    },
    required=("chain_id", "signal"),
)
ENTITIES = tool(
    "related_entities",
    "Related Entities",
    "Find who reasoned about a file, a symbol, a package, a URL or a quoted name: the chains that "
    "mention it, most first, and what is mentioned together with it. Ask before touching a file. "
    "Give one of entity, query and chain_id.",
    {
        "entity": text("One name, as written: src/app.py, parse_header(), @scope/name, a URL"),
        "query": text("Or a text: whatever it names"),
        "chain_id": text("Or a chain: what it mentions, and which other chains do"),
        "kind": text("Only entities of this kind", *map(str, Kind)),
        "limit": number("Chains, at most 50. Default: 10"),
        "at_least": number("Wait up to a second until this position of the log is read"),
    },
    read_only=True,
)
PATTERNS = tool(
    "reasoning_patterns",
    "Reasoning Patterns",
    "What has proved good here, and which dead ends to avoid: extracts of chains trusted 0.8 or "
    "more, and of what was given up and read again. Ask at the start of a session.",
    {
        "session_id": text("Only patterns of this session"),
        "agent": text("Only of chains that this agent started"),
        "limit": number("Of each kind, at most 100. Default: 20"),
    },
    read_only=True,
)
MEMORY_TOOLS = (SEARCH, FEEDBACK, PATTERNS, ENTITIES)
