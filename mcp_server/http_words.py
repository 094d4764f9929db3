"""What a client over HTTP is told instead: there is no connection that a call could go on with."""

from mcp_types import Tool

from mcp_server.schemas import SEQUENTIALTHINKING_DESCRIPTION

_CONNECTED = """Send it with every call that is to go on with that chain later or \
from elsewhere; leave it out to stay with the current one."""
_CHAIN_ID = "UUID of the chain, from the answer to its thought 1, which alone leaves it out"

DESCRIPTIONS = {
    "sequentialthinking": SEQUENTIALTHINKING_DESCRIPTION.replace(
        _CONNECTED, "Send it with every later call; only thought 1 of a new chain goes without."
    ),
    "start_thought_chain": "Start a chain.",
}
FIELDS = {
    "sequentialthinking": {"chain_id": _CHAIN_ID},
    "add_thought": {"chain_id": _CHAIN_ID},
    "criticalthinking": {
        "episodeId": "Name of the line of reasoning among those of your token, by default default; "
        "without tokens from the answer to its thought 1, which may leave it out"
    },
    "sequential_thinking": {
        "session_id": "Name of the session, 255 characters at most: from the answer to its "
        "thought 1, which may leave it out, or one of your own"
    },
}


def worded_for_http(tool: Tool) -> Tool:
    """The tool in words that are true over HTTP."""
    schema, fields = tool.input_schema, FIELDS.get(tool.name, {})
    properties = {
        name: field | {"description": fields[name]} if name in fields else field
        for name, field in schema["properties"].items()
    }
    return tool.model_copy(
        update={
            "description": DESCRIPTIONS.get(tool.name, tool.description),
            "input_schema": {**schema, "properties": properties},
        }
    )
