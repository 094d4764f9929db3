"""What a client is told about the toolset ``memory``."""

from mcp_server.definitions import number, text, tool

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
MEMORY_TOOLS = (FEEDBACK,)
