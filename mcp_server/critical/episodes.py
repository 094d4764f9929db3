"""The episodes of one connection: which chain a critical thought goes to, and the answer to it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.confidence import confidences
from ledger.episodes import Episode
from ledger.header import Context
from mcp_server.conversation import CRITICAL_SOURCE
from mcp_server.critical.inputs import DEFAULT_EPISODE, CriticalInput
from mcp_server.critical.transcript import narrate
from mcp_server.tools.tool import Narrated


class Episodes:
    """Critical thoughts, taken one after the other; each episode of the session is one chain.

    Nothing is kept here: an episode's chain is found by its names and its means are those of the
    log, so there may be any number of episodes, and a later process of the session goes on.
    """

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._turn = asyncio.Lock()
        self._current = DEFAULT_EPISODE

    async def think(self, ledger: Ledger, context: Context, heard: CriticalInput) -> Narrated:
        """Record a thought in its episode.

        Cancelled while it waits for its turn it records nothing; afterwards it is finished.
        Raises what ``Ledger.think_in_episode`` raises.
        """

        def answer(chain: ThoughtChain) -> Mapping[str, Any]:
            return _answer(heard, chain)

        async with self._turn:
            told: list[Narrated] = []
            with anyio.CancelScope(shield=True):
                episode = self.episode(context.tenant, heard.episode)
                receipt = await ledger.think_in_episode(context, episode, heard.thought, answer)
                self._current = heard.episode
                told.append(Narrated(receipt.answer["structured"], narrate(heard, receipt.answer)))
            return told[0]

    def episode(self, tenant: str, name: str | None = None) -> Episode:
        """The episode of that name; by default the one thought in last."""
        return Episode(tenant, self._session_id, CRITICAL_SOURCE, name or self._current)


def _answer(heard: CriticalInput, chain: ThoughtChain) -> dict[str, Any]:
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
        "episodeId": heard.episode,
    }
    return {
        "structured": structured,
        "trunk_count": trunk.count,
        "branch_count": lines[thought.branch_id].count if thought.branch_id is not None else 0,
        "opens_branch": chain.steps.recorded[-1].head_before is None,
    }


def _branch(item: tuple[str | None, object]) -> str:
    return item[0] or ""
