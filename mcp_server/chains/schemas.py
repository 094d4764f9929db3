"""What a client is told about the toolset ``chains``: definitions as short as they can be.

All tools of a server are read by the model before it reads anything else.  The rules for schemas
are those of ``schemas``.
"""

from mcp_types import Tool

from mcp_server.definitions import Schema
from mcp_server.definitions import flag as _flag
from mcp_server.definitions import number as _number
from mcp_server.definitions import text as _text
from mcp_server.definitions import tool as _tool
from mcp_server.schemas import SEQUENTIALTHINKING_SCHEMA

CHAIN_ID = _text("UUID")
REQUEST_ID = _text("For retries")
THOUGHT_ID = _text("Or UUID")
REASON = _text("Why")
SESSION_ID = _text("Session")
AGENT = _text("Who started it")
# Said once, by the drop-in tool or by add_thought's own words.
SHORTER = {
    "thought": "This step",
    "nextThoughtNeeded": "False concludes",
    "thoughtNumber": "From 1",
    "totalThoughts": "Estimate",
    "isRevision": "A revision",
    "revisesThought": "Which",
    "branchFromThought": "Branch point",
    "branchId": "Branch",
    "needsMoreThoughts": "More to come",
    "chain_id": "Default: current",
    "requestId": REQUEST_ID["description"],
}
THOUGHT: Schema = {
    name: {"type": field["type"], "description": SHORTER[name]}
    for name, field in SEQUENTIALTHINKING_SCHEMA["properties"].items()
}

STRINGS: Schema = {"type": "array", "items": {"type": "string"}}
CHOICES: Schema = {"type": "string", "enum": ["abandoned", "paused"]}


ADD_THOUGHT = _tool(
    "add_thought",
    "Add Thought",
    "Record a thought; what it refers to must exist.",
    {
        **THOUGHT,
        "session_id": SESSION_ID,
        "confidence": {"type": "number", "description": "0 to 1"},
        "assumptions": {**STRINGS, "description": "Premises"},
        "critique": _text("Weak points"),
        "counterArgument": _text("Case against"),
        "nextStepRationale": _text("Why go on so"),
        "expectedVersion": _number("Refuse at another"),
    },
    required=tuple(SEQUENTIALTHINKING_SCHEMA["required"]),
)
START = _tool(
    "start_thought_chain",
    "Start Chain",
    "Start a chain and make it current.",
    {
        "session_id": SESSION_ID,
        "parent_chain_id": _text("Parent"),
        "title": _text("Topic"),
        "requestId": REQUEST_ID,
    },
)
GET = _tool(
    "get_thought_chain",
    "Read Chain",
    "Read a chain in pages; next is the next from; parent, revises, revised_by are sequences.",
    {
        "chain_id": CHAIN_ID,
        "branch_id": _text("Only this branch"),
        "last": _number("Last so many"),
        "from": _number("First sequence"),
        "limit": _number("Per page"),
        "at_version": _number("As it was then"),
        "structure_only": _flag("No texts"),
    },
    required=("chain_id",),
    read_only=True,
)
LIST = _tool(
    "list_thought_chains",
    "List Chains",
    "List chains, latest first; next is the next cursor.",
    {
        "session_id": SESSION_ID,
        "status": _text("Only such", "active", "paused", "completed", "abandoned"),
        "parent_chain_id": _text("Parent"),
        "agent": AGENT,
        "limit": _number("Default: 20"),
        "cursor": _text("Earlier next"),
    },
    read_only=True,
)
RELATED = _tool(
    "get_related_chains",
    "Find Chains",
    "Find chains by their thoughts, best first.",
    {
        "query": _text("Words or a thought"),
        "limit": _number("Default: 10"),
        "session_id": SESSION_ID,
        "agent": AGENT,
        "include": {"type": "array", "items": CHOICES, "description": "Such as well"},
    },
    required=("query",),
    read_only=True,
)
REVISE = _tool(
    "revise_thought",
    "Revise Thought",
    "Reconsider a thought; both are kept.",
    {
        "chain_id": CHAIN_ID,
        "thought_number": _number("Latest live"),
        "thought_id": THOUGHT_ID,
        "revised_thought": _text("New thought"),
        "reason": REASON,
        "requestId": REQUEST_ID,
    },
    required=("chain_id", "revised_thought"),
)
BRANCH = _tool(
    "branch_thought",
    "Branch",
    "Open or continue a branch.",
    {
        "chain_id": CHAIN_ID,
        "from_thought_number": _number("Branch point"),
        "thought_id": THOUGHT_ID,
        "branch_id": _text("Branch"),
        "thought": _text("Thought"),
        "thoughtNumber": _number("Default: next"),
        "totalThoughts": _number("Estimate"),
        "nextThoughtNeeded": _flag("Default: true"),
        "requestId": REQUEST_ID,
    },
    required=("chain_id", "branch_id", "thought"),
)
CLOSE_BRANCH = _tool(
    "close_branch",
    "Close Branch",
    "End a branch for good.",
    {
        "chain_id": CHAIN_ID,
        "branch_id": _text("Branch"),
        "outcome": _text("How it ended", "kept", "merged", "abandoned"),
        "conclusion": _text("Result"),
        "requestId": REQUEST_ID,
    },
    required=("chain_id", "branch_id", "outcome"),
)


def _move(verb: str, description: str, **extra: Schema) -> Tool:
    return _tool(
        f"{verb}_thought_chain",
        f"{verb.title()} Chain",
        description,
        {"chain_id": CHAIN_ID, "reason": REASON, **extra, "requestId": REQUEST_ID},
        required=("chain_id",),
    )


PAUSE = _move("pause", "Set a chain aside.")
RESUME = _move("resume", "Reopen a chain.")
COMPLETE = _move("complete", "End a chain.", conclusion=_text("Result"))
ABANDON = _move(
    "abandon",
    "Give up a chain, or a thought as a dead end.",
    thought_number=_number("And all under it"),
    thought_id=THOUGHT_ID,
)
CHAINS_TOOLS = (
    ADD_THOUGHT,
    START,
    GET,
    LIST,
    RELATED,
    REVISE,
    BRANCH,
    CLOSE_BRANCH,
    PAUSE,
    RESUME,
    COMPLETE,
    ABANDON,
)
