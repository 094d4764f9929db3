"""The resource ``thinking://current``: the episode the connection thought in last, as markdown."""

from uuid import UUID

from mcp_types import Resource

from ledger.application import Ledger
from ledger.confidence import confidences
from ledger.errors import ChainNotFoundError
from ledger.events import ThoughtAdded, ThoughtBranched, ThoughtEvent, ThoughtRevised
from ledger.header import Context
from mcp_server.critical.episodes import Episodes
from mcp_server.resources.resource import LedgerResource
from mcp_server.resources.text import body_of, heading_of

# Of a longer episode the end is shown: the last thoughts, as many as have these characters.
SHOWN_THOUGHTS_MAX = 100
SHOWN_CHARACTERS_MAX = 2**18
# One event may have over 1 MiB, and a page of them is in memory at once.
PAGE_EVENTS_MAX = 10
NOBODYS = """\
# No episode

Over HTTP without tokens nobody knows which episode is yours. Go on with the episodeId of an answer.
"""


class CurrentThinking(LedgerResource):
    """Tells where the connection's reasoning stands, for instance after a lost context."""

    definition = Resource(
        name="current_thinking",
        title="Current critical thinking",
        uri="thinking://current",
        description="The episode of criticalthinking thought in last on this connection: its last "
        f"{SHOWN_THOUGHTS_MAX} thoughts with their doubts",
        mime_type="text/markdown",
    )

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes

    async def read(self, ledger: Ledger, context: Context) -> str:
        """The episode as markdown; a sentence that says so when it has no thoughts."""
        episode = await self._episodes.current(ledger, context)
        if episode is None:
            return NOBODYS
        try:
            chain = await ledger.chain(episode.chain_id)
        except ChainNotFoundError:
            return f"# Episode {episode.name}\n\nNothing was thought here yet.\n"
        trunk = confidences(chain.steps)[None]
        told = await _last_thoughts(ledger, episode.chain_id, chain.version)
        left_out = chain.thought_count - len(told)
        state = f"{chain.status}; thoughts: {chain.thought_count}"
        blocks = [
            f"# Episode {episode.name}",
            f"Chain {chain.id}, {state}; confidence of the trunk: {trunk.mean:.2f}",
            *([f"({left_out} earlier thoughts are not shown)"] if left_out else []),
            *told,
        ]
        return "\n\n".join(blocks) + "\n"


async def _last_thoughts(ledger: Ledger, chain_id: UUID, version: int) -> list[str]:
    """The last thoughts in words, in order, read from the end in small pages."""
    told: list[str] = []
    characters = 0
    while version > 0:
        after = max(version - PAGE_EVENTS_MAX, 0)
        events = await ledger.events(chain_id, after=after, limit=version - after)
        for event in reversed(events):
            if isinstance(event, ThoughtAdded | ThoughtRevised | ThoughtBranched):
                text = _told(event)
                characters += len(text)
                # The last thought is always shown.
                if told and (characters > SHOWN_CHARACTERS_MAX or len(told) == SHOWN_THOUGHTS_MAX):
                    return told[::-1]
                told.append(text)
        version = after
    return told[::-1]


def _told(event: ThoughtEvent) -> str:
    return "\n\n".join([f"## {heading_of(event)}", *body_of(event)])
