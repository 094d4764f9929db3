"""What a client is told about ``sequential_thinking``."""

from typing import Any

from mcp_server.schemas import NEEDS_MORE_THOUGHTS, TOTAL_THOUGHTS

DESCRIPTION = """\
Think a problem through one recorded step at a time, in sessions that do not see each other.

- Send one thought a call. Count thought_number up from 1; total_thoughts is an estimate, change \
it whenever you know better.
- Wrong turn? Send a new thought with is_revision and revises_thought.
- Two ways forward? Give each a branch_id with branch_from_thought, both with every thought of it.
- Set next_thought_needed to false only with the conclusion. thought_number 1 then starts a new \
chain in the session.
- The answer names the session_id: send it to go on with that session, now, after a pause of any \
length, or from another client. Sessions are never deleted.
- thought_history_length and branches speak of the whole session."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {"type": "string", "description": "The current step, at most 1 MiB"},
        "thought_number": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of this thought; may exceed total_thoughts",
        },
        "total_thoughts": TOTAL_THOUGHTS,
        "next_thought_needed": {
            "type": "boolean",
            "description": "Whether another thought follows; false concludes the chain",
        },
        "is_revision": {
            "type": "boolean",
            "description": "Whether this thought replaces an earlier one",
        },
        "revises_thought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought it replaces",
        },
        "branch_from_thought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought the branch leaves from; needs branch_id",
        },
        "branch_id": {
            "type": "string",
            "description": "Name of the branch, 255 characters at most; needs branch_from_thought",
        },
        "needs_more_thoughts": NEEDS_MORE_THOUGHTS,
        "session_id": {
            "type": "string",
            "description": "Name of the session, 255 characters at most: from an earlier answer, "
            "or one of your own; by default the connection's",
        },
    },
    "required": ["thought", "thought_number", "total_thoughts", "next_thought_needed"],
}

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string", "description": "The session it was recorded in"},
        "thought_number": {"type": "integer", "description": "Number of the recorded thought"},
        "total_thoughts": {
            "type": "integer",
            "description": "The estimate, raised to thought_number when that is larger",
        },
        "next_thought_needed": {"type": "boolean", "description": "As given"},
        "is_revision": {"type": "boolean", "description": "True for a revision, else left out"},
        "revises_thought": {"type": "integer", "description": "As given, else left out"},
        "branch_from_thought": {"type": "integer", "description": "As given, else left out"},
        "branch_id": {"type": "string", "description": "As given, else left out"},
        "branches": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Branch ids of the session, by first appearance",
        },
        "thought_history_length": {
            "type": "integer",
            "description": "How many thoughts the session has",
        },
        "chain_id": {"type": "string", "description": "UUID of the chain it was recorded in"},
    },
    "required": [
        "session_id",
        "thought_number",
        "total_thoughts",
        "next_thought_needed",
        "branches",
        "thought_history_length",
        "chain_id",
    ],
}
