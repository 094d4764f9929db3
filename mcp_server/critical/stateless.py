"""The episodes of clients without a connection: each token has its own."""

from uuid import UUID, uuid4, uuid5

import orjson

from ledger.application import Ledger
from ledger.episodes import Episode
from ledger.errors import LedgerError
from ledger.events import ChainStarted
from ledger.header import Context
from mcp_server.conversation import CRITICAL_SOURCE
from mcp_server.critical.episodes import DEFAULT_EPISODE, Episodes, record
from mcp_server.critical.inputs import CriticalInput
from mcp_server.inputs import InputError
from mcp_server.thinking import starts_another
from mcp_server.tools.tool import Narrated
from projections.lists import ChainFilter, ChainLists

# Who adds chains of other tools to the session of a token's episodes means to; so many are passed.
CURRENT_CHAINS_MAX = 20
NAME_NAMESPACE = UUID("2d6f7c3e-0a8a-5d0f-9c39-6a2b7f0f1f55")


class EpisodeUnnamedError(InputError):
    """A thought that goes on with an episode, and nobody to know which."""

    def __init__(self) -> None:
        problem = (
            "is missing: over HTTP without tokens every thought names its episode, only a plain "
            "thought 1 (no revision, no branch) begins one; the answer to thought 1 has the "
            "episodeId"
        )
        super().__init__(("episodeId", problem))


class EpisodesBehindError(LedgerError):
    """Which episode is the latest is not known now."""

    def __init__(self) -> None:
        super().__init__(
            "the list of chains is behind the log, so it is not known which episode is the latest; "
            "try again in a moment, with a worker running"
        )


class StatelessEpisodes(Episodes):
    """Critical thoughts by whoever comes.

    Who has a token has episodes under its name, and one by default.  Where there are no tokens an
    episode's name is all there is to find it by, so one that is left out is made up.
    """

    def __init__(self, lists: ChainLists) -> None:
        self._lists = lists

    async def think(self, ledger: Ledger, context: Context, heard: CriticalInput) -> Narrated:
        """Record a thought in its episode.  Raises EpisodeUnnamedError, and as promised."""
        return await record(ledger, context, _episode_of(context, heard), heard)

    async def current(self, ledger: Ledger, context: Context) -> Episode | None:
        if context.principal is None:
            return None
        wanted = ChainFilter(session_id=_session_of(context), limit=CURRENT_CHAINS_MAX)
        page = await self._lists.chains(context.tenant, wanted, position=await ledger.position())
        for row in page.chains:
            (started,) = await ledger.events(row.id, after=0, limit=1)
            if isinstance(started, ChainStarted) and started.source == CRITICAL_SOURCE:
                return _episode(context, orjson.loads(started.metadata or "{}")["episode"])
        if page.stale:
            raise EpisodesBehindError
        return _episode(context, DEFAULT_EPISODE)


def _episode_of(context: Context, heard: CriticalInput) -> Episode:
    if heard.episode is not None:
        return _episode(context, heard.episode)
    if context.principal is not None:
        return _episode(context, DEFAULT_EPISODE)
    if not starts_another(heard.said):
        raise EpisodeUnnamedError
    return _episode(context, _new_name(context))


def _new_name(context: Context) -> str:
    """A name that nobody has, and the same one when the request is sent again."""
    if context.request_id is None:
        return str(uuid4())
    request = [context.tenant, context.actor, context.request_id]
    return str(uuid5(NAME_NAMESPACE, orjson.dumps(request).decode()))


def _episode(context: Context, name: str) -> Episode:
    return Episode(context.tenant, _session_of(context), CRITICAL_SOURCE, name)


def _session_of(context: Context) -> str:
    """The session of the caller's episodes: no token's name has a blank in it."""
    if context.principal is None:
        return CRITICAL_SOURCE
    return f"{CRITICAL_SOURCE} {context.principal}"
