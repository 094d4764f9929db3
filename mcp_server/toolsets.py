"""Which tools and resources a connection is offered, by the names of their toolsets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcp_server.conversation import Conversation
from mcp_server.critical.current import CurrentThinking
from mcp_server.critical.episodes import Episodes
from mcp_server.inputs import ThoughtInput
from mcp_server.resources import LedgerResource
from mcp_server.tools.chains import chain_tools
from mcp_server.tools.compat import SequentialThinking
from mcp_server.tools.critical import CriticalThinking
from mcp_server.tools.kodegen import SequentialThinkingSessions, Sessions
from mcp_server.tools.tool import LedgerTool
from projections.lists import ChainLists


@dataclass(slots=True)
class Offer:
    """What a connection is offered, in the order it is listed."""

    tools: list[LedgerTool] = field(default_factory=list[LedgerTool])
    resources: list[LedgerResource] = field(default_factory=list[LedgerResource])


def offer_of(
    toolsets: Sequence[str],
    session_name: str | None,
    on_thought: Callable[[ThoughtInput], None] | None,
    lists: ChainLists,
) -> Offer:
    """The offer of one connection, in the order of *toolsets*, which share its session.

    Raises ValueError for the name of no toolset.
    """
    conversation = Conversation(session_name)
    offer = Offer()
    for name in dict.fromkeys(toolsets):
        match name:
            case "compat":
                offer.tools.append(SequentialThinking(conversation, on_thought))
            case "chains":
                offer.tools += chain_tools(conversation, lists, on_thought)
            case "critical":
                episodes = Episodes(conversation.session_id)
                offer.tools.append(CriticalThinking(episodes, on_thought))
                offer.resources.append(CurrentThinking(episodes))
            case "kodegen":
                sessions = Sessions(conversation)
                offer.tools.append(SequentialThinkingSessions(sessions, on_thought))
            case _:
                raise ValueError(f"there is no toolset {name}")
    return offer
