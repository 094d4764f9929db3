"""What the tiers are made of, asked of the live read models: ``thoughts`` and ``trust``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from projections.live import LiveConnections
from projections.recall.standing import UNKNOWN
from projections.thoughts import Thoughts
from projections.tiers.queries import (
    SELECT_AGENTS,
    SELECT_AVOIDED,
    SELECT_COUNTS,
    SELECT_MEMORIES,
    SELECT_POSITION,
    SELECT_SOLVED,
    SELECT_TITLES,
)
from projections.tiers.text import (
    AVOIDED,
    SOLVED,
    Best,
    Identity,
    Pattern,
    TrustedMemory,
    identity_text,
    summary_text,
)
from projections.trust.projection import Trust

T = TypeVar("T")

PROMOTED_MILLIONTHS = 800_000
KNOWN_MILLIONTHS = 500_000
# A dead end that was read so often is worth a line.
RECALLS_MIN = 2
# Of each kind: more than there is room for.
LINES_MAX = 100
# How far up the beginning of a dead end is looked for.
STEPS_MAX = 100
TITLES_MAX = 3
AGENTS_MAX = 3
# Of a thought or title there is no need for more.
CHARACTERS_MAX = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """L1, as text and as its patterns; made of what was recorded up to ``position``.

    ``total`` patterns there are, of which ``patterns`` are the best.
    """

    text: str = ""
    patterns: Sequence[Pattern] = ()
    total: int = 0
    position: int = 0
    stale: bool


class Tiers:
    """Asks for one tier at a time."""

    def __init__(self, connections: LiveConnections) -> None:
        self._connections = connections

    async def identity(self, tenant: str) -> str:
        """L0.  Raises DatabaseUnavailableError."""
        counted = await self._rows(SELECT_COUNTS, tenant)
        if not counted:
            return identity_text(Identity(chains=0, thoughts=0, sessions=0, agents=[], titles=[]))
        ((chains, thoughts, sessions),) = counted
        agents = await self._rows(SELECT_AGENTS, tenant)
        titles = await self._rows(SELECT_TITLES, tenant)
        return identity_text(
            Identity(
                chains=chains,
                thoughts=thoughts,
                sessions=sessions,
                agents=[agent for (agent,) in agents],
                titles=[title for (title,) in titles],
            )
        )

    async def summary(
        self,
        tenant: str,
        *,
        session_id: str | None = None,
        agent: str | None = None,
        limit: int = LINES_MAX,
        position: int = 0,
    ) -> Summary:
        """L1 as of *position*, waited for as lists do; with patterns of a session or agent only.

        *limit* is how many of a kind at most, which are the best; those left out are counted.
        Raises DatabaseUnavailableError.
        """
        seen = await self._connections.wait(position, Thoughts.name, Trust.name)
        built = await self._rows(SELECT_POSITION, tenant)
        if not built:
            return Summary(stale=True)
        ((as_of,),) = built
        narrowed = {"session_id": session_id, "agent": agent, "limit": limit}
        solved = _best(_solved, await self._rows(SELECT_SOLVED, tenant, **narrowed))
        avoided = _best(_avoided, await self._rows(SELECT_AVOIDED, tenant, **narrowed))
        memories: Best[TrustedMemory] = Best()
        if session_id is None and agent is None:
            memories = _best(_memory, await self._rows(SELECT_MEMORIES, tenant, limit=limit))
        return Summary(
            text=summary_text(solved, avoided, memories),
            patterns=[*solved.rows, *avoided.rows],
            total=solved.total + avoided.total,
            position=as_of,
            stale=not seen,
        )

    async def _rows(self, query: Any, tenant: str, **parameters: object) -> list[tuple[Any, ...]]:
        known = {
            "tenant": tenant,
            "promoted": PROMOTED_MILLIONTHS,
            "known": KNOWN_MILLIONTHS,
            "recalls_min": RECALLS_MIN,
            "characters_max": CHARACTERS_MAX,
            "steps_max": STEPS_MAX,
            "titles_max": TITLES_MAX,
            "agents_max": AGENTS_MAX,
        }
        try:
            return await self._connections.reader.fetch(query, known | parameters, prepare=False)
        except UNKNOWN:  # no worker has built it yet
            return []


def _best(read: Callable[[tuple[Any, ...]], T], rows: Sequence[tuple[Any, ...]]) -> Best[T]:
    """Rows that end with how many there would be without a limit."""
    return Best([read(row[:-1]) for row in rows], rows[0][-1] if rows else 0)


def _solved(row: tuple[Any, ...]) -> Pattern:
    chain_id, session_id, title, approach, trust, first, last = row
    return Pattern(
        kind=SOLVED,
        chain_id=chain_id,
        session_id=session_id,
        title=title,
        approach=approach,
        trust=float(trust),
        recalls=0,
        positions=sorted({first, last}),
    )


def _avoided(row: tuple[Any, ...]) -> Pattern:
    chain_id, session_id, title, approach, trust, recalls, position = row
    return Pattern(
        kind=AVOIDED,
        chain_id=chain_id,
        session_id=session_id,
        title=title,
        approach=approach,
        trust=trust,
        recalls=recalls,
        positions=[position],
    )


def _memory(row: tuple[Any, ...]) -> TrustedMemory:
    chain_id, thought_id, text, trust, position = row
    return TrustedMemory(
        chain_id=chain_id, thought_id=thought_id, text=text, trust=trust, position=position
    )
