"""Which tools a connection is offered, by the names of their toolsets."""

from collections.abc import Callable, Sequence

from mcp_server.conversation import Conversation
from mcp_server.critical.episodes import Episodes
from mcp_server.inputs import ThoughtInput
from mcp_server.tools.compat import SequentialThinking
from mcp_server.tools.critical import CriticalThinking
from mcp_server.tools.kodegen import SequentialThinkingSessions, Sessions
from mcp_server.tools.tool import LedgerTool


def tools_of(
    toolsets: Sequence[str],
    session_name: str | None,
    on_thought: Callable[[ThoughtInput], None] | None,
) -> list[LedgerTool]:
    """The tools of one connection, in the order of *toolsets*; they share its session."""
    conversation = Conversation(session_name)
    makers: dict[str, Callable[[], LedgerTool]] = {
        "compat": lambda: SequentialThinking(conversation, on_thought),
        "critical": lambda: CriticalThinking(Episodes(conversation.session_id), on_thought),
        "kodegen": lambda: SequentialThinkingSessions(Sessions(conversation), on_thought),
    }
    return [makers[name]() for name in dict.fromkeys(toolsets)]
