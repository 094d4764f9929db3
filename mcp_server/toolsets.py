"""Which tools and resources a server offers, by its choice and by what its clients come over."""

from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_server.choice import Choice, ChoiceError
from mcp_server.conversation import Conversation
from mcp_server.critical.current import CurrentThinking
from mcp_server.critical.episodes import ConnectionEpisodes, Episodes
from mcp_server.critical.stateless import StatelessEpisodes
from mcp_server.inputs import ThoughtInput
from mcp_server.kodegen.sessions import ConnectionSessions, Sessions, StatelessSessions
from mcp_server.resources.resource import LedgerResource
from mcp_server.stateless import Stateless
from mcp_server.thinking import Thinking
from mcp_server.tools.chains import chain_tools
from mcp_server.tools.compat import SequentialThinking
from mcp_server.tools.critical import CriticalThinking
from mcp_server.tools.entities import RelatedEntities
from mcp_server.tools.feedback import RecordFeedback
from mcp_server.tools.kodegen import SequentialThinkingSessions
from mcp_server.tools.memories import SearchMemories
from mcp_server.tools.patterns import ReasoningPatterns
from mcp_server.tools.tool import LedgerTool, records_nothing
from projections.entity_search import EntitySearch
from projections.lists import ChainLists
from projections.recall.search import recall_over
from projections.tiers.tiers import Tiers


@dataclass(slots=True)
class Offer:
    """What a client is offered, in the order it is listed."""

    tools: list[LedgerTool] = field(default_factory=list[LedgerTool])
    resources: list[LedgerResource] = field(default_factory=list[LedgerResource])


@dataclass(frozen=True, slots=True)
class Clients:
    """What the tools know of those who call: where a thought goes that names no chain."""

    thinking: Thinking
    episodes: Episodes
    sessions: Sessions
    lists: ChainLists
    on_thought: Callable[[ThoughtInput], None] | None


def connected(
    session_name: str | None, lists: ChainLists, on_thought: Callable[[ThoughtInput], None] | None
) -> Clients:
    """The one client of a connection, which has a current chain."""
    conversation = Conversation(session_name)
    episodes = ConnectionEpisodes(conversation.session_id)
    return Clients(conversation, episodes, ConnectionSessions(conversation), lists, on_thought)


def unconnected(lists: ChainLists, on_thought: Callable[[ThoughtInput], None] | None) -> Clients:
    """Whoever comes, and nothing is kept between two calls."""
    return Clients(Stateless(), StatelessEpisodes(lists), StatelessSessions(), lists, on_thought)


def offer_of(choice: Choice, clients: Clients) -> Offer:
    """What is offered, in the order of the toolsets, or of the tools that are named.

    Raises ChoiceError.
    """
    offer = Offer()
    for name in choice.toolsets:
        BUILDERS[name](offer, clients)
    if choice.tools is not None:
        # Resources belong to whole toolsets.
        offer = Offer(_named(offer.tools, choice.tools))
    if choice.read_only:
        offer.tools = [tool for tool in offer.tools if records_nothing(tool.definition)]
    if not offer.tools:
        raise ChoiceError("none of these tools only reads; offer others, or without --read-only")
    return offer


def _named(tools: list[LedgerTool], names: tuple[str, ...]) -> list[LedgerTool]:
    by_name = {tool.definition.name: tool for tool in tools}
    if unknown := [name for name in names if name not in by_name]:
        raise ChoiceError(f"there is no tool {unknown[0]!r}; known: {', '.join(by_name)}")
    return [by_name[name] for name in names]


def _compat(offer: Offer, clients: Clients) -> None:
    offer.tools.append(SequentialThinking(clients.thinking, clients.on_thought))


def _chains(offer: Offer, clients: Clients) -> None:
    offer.tools += chain_tools(clients.thinking, clients.lists, clients.on_thought)


def _critical(offer: Offer, clients: Clients) -> None:
    offer.tools.append(CriticalThinking(clients.episodes, clients.on_thought))
    offer.resources.append(CurrentThinking(clients.episodes))


def _kodegen(offer: Offer, clients: Clients) -> None:
    offer.tools.append(SequentialThinkingSessions(clients.sessions, clients.on_thought))


def _memory(offer: Offer, clients: Clients) -> None:
    offer.tools += [
        SearchMemories(clients.thinking, recall_over(clients.lists.connections)),
        RecordFeedback(clients.thinking),
        ReasoningPatterns(clients.thinking, Tiers(clients.lists.connections)),
        RelatedEntities(clients.thinking, EntitySearch(clients.lists.connections)),
    ]


BUILDERS: dict[str, Callable[[Offer, Clients], None]] = {
    "compat": _compat,
    "chains": _chains,
    "critical": _critical,
    "kodegen": _kodegen,
    "memory": _memory,
}
