"""Which chain a critical thought goes to, and the answer to it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.confidence import confidences
from ledger.episodes import Episode
from ledger.header import Context
from mcp_server.conversation import CRITICAL_SOURCE
from mcp_server.critical.inputs import CriticalInput
from mcp_server.critical.transcript import narrate
from mcp_server.thinking import finished
from mcp_server.tools.tool import Narrated

DEFAULT_EPISODE = "default"


class Episodes(Protocol):
    """What takes critical thoughts; each episode is one chain.

    Nothing that the next process would need is kept: an episode's chain is found by its names and
    its means are those of the log, so there may be any number of episodes.
    """

    async def think(self, ledger: Ledger, context: Context, heard: CriticalInput) -> Narrated:
        """Record a thought in its episode.

        Raises InputError, and what ``Ledger.think_in_episode`` raises.
        """
        ...

    async def current(self, ledger: Ledger, context: Context) -> Episode | None:
        """The episode that the reader thought in last; None when nobody knows whose that is."""
        ...


class ConnectionEpisodes(Episodes):
    """The critical thoughts of one connection, taken one after the other."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._turn = asyncio.Lock()
        self._current = DEFAULT_EPISODE

    async def think(self, ledger: Ledger, context: Context, heard: CriticalInput) -> Narrated:
        """Record a thought in its episode.

        Cancelled while it waits for its turn it records nothing; afterwards it is finished.
        """
        async with self._turn:
            name = heard.episode or DEFAULT_EPISODE
            told = await record(ledger, context, self._episode(context, name), heard)
            self._current = name
            return told

    async def current(self, ledger: Ledger, context: Context) -> Episode | None:  # noqa: ARG002 - it is known here
        return self._episode(context, self._current)

    def _episode(self, context: Context, name: str) -> Episode:
        return Episode(context.tenant, self._session_id, CRITICAL_SOURCE, name)


async def record(
    ledger: Ledger, context: Context, episode: Episode, heard: CriticalInput
) -> Narrated:
    """Record a thought in an episode, to the end also when the caller is cancelled."""

    def answer(chain: ThoughtChain) -> Mapping[str, Any]:
        return _answer(heard, episode.name, chain)

    receipt = await finished(
        partial(ledger.think_in_episode, context, episode, heard.thought, answer)
    )
    return Narrated(receipt.answer["structured"], narrate(heard, receipt.answer))


def _answer(heard: CriticalInput, episode: str, chain: ThoughtChain) -> dict[str, Any]:
    """The structured answer, and the counts that its transcript tells."""
    thought = heard.thought
    lines = confidences(chain.steps)
    trunk = lines.pop(None)
    # Code points are in the order of their UTF-8 bytes, by which the original sorts.
    means = {branch: line.mean for branch, line in sorted(lines.items(), key=_branch)}
    structured = {
        "thoughtNumber": thought.thought_number,
        "totalThoughts": thought.total_thoughts,
        "nextThoughtNeeded": thought.next_thought_needed,
        "branches": sorted(chain.branches),
        "thoughtHistoryLength": chain.thought_count,
        "sessionConfidence": trunk.mean,
        **({"branchConfidences": means} if means else {}),
        "episodeId": episode,
    }
    return {
        "structured": structured,
        "trunk_count": trunk.count,
        "branch_count": lines[thought.branch_id].count if thought.branch_id is not None else 0,
        "opens_branch": chain.steps.recorded[-1].head_before is None,
    }


def _branch(item: tuple[str | None, object]) -> str:
    return item[0] or ""
