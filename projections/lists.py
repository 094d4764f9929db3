"""Lists of chains for a server: asked asynchronously, a page at a time."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

import psycopg

from ledger.database import Connector
from projections.live import LiveConnections
from projections.thoughts import Thoughts

LIST_CHAINS_MAX = 100

SELECT_CHAINS = """
    SELECT id, title, status, session_id, parent_chain_id, agent, client,
           thought_count, version, conclusion, created_at, updated_at
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
       AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
       AND (%(status)s::text IS NULL OR status = %(status)s)
       AND (%(parent_chain_id)s::uuid IS NULL OR parent_chain_id = %(parent_chain_id)s)
       AND (%(agent)s::text IS NULL OR agent = %(agent)s)
       AND (%(after_id)s::uuid IS NULL
            OR updated_at < %(after_updated_at)s
            OR (updated_at = %(after_updated_at)s AND id > %(after_id)s))
     ORDER BY updated_at DESC, id
     LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class After:
    """Where a page of a list ended."""

    updated_at: datetime
    chain_id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFilter:
    """Which chains: those of all that is not None.  ``limit`` is at most LIST_CHAINS_MAX."""

    session_id: str | None = None
    status: str | None = None
    parent_chain_id: UUID | None = None
    agent: str | None = None
    limit: int = LIST_CHAINS_MAX
    after: After | None = None


@dataclass(frozen=True, slots=True)
class ChainRow:
    """A chain as agents list it."""

    id: UUID
    title: str
    status: str
    session_id: str | None
    parent_chain_id: UUID | None
    agent: str
    client: str | None
    thought_count: int
    version: int
    conclusion: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ChainPage:
    """Chains, the latest moved first.

    ``stale``: what was written up to the position asked for is not all in it yet.
    """

    chains: list[ChainRow]
    following: After | None
    stale: bool


class ChainLists:
    """Asks the live read model of chains, on connections made when first needed."""

    def __init__(self, connector: Callable[[], Connector]) -> None:
        """*connector* makes one of any role that may read, once the database is open."""
        self.connections = LiveConnections(connector)

    async def chains(self, tenant: str, wanted: ChainFilter, *, position: int) -> ChainPage:
        """A page of chains as of *position*, waited for WAIT_SECONDS_MAX at most.

        Raises DatabaseUnavailableError.
        """
        seen = await self.connections.wait(position, Thoughts.name)
        after = wanted.after
        parameters = asdict(wanted) | {
            "tenant": tenant,
            "after": None,
            "after_id": after and after.chain_id,
            "after_updated_at": after and after.updated_at,
            "limit": wanted.limit + 1,
        }
        try:
            rows = await self.connections.reader.fetch(SELECT_CHAINS, parameters)
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return ChainPage([], None, stale=True)  # no worker has built it yet
        chains = [ChainRow(*row) for row in rows]
        if len(chains) <= wanted.limit:
            return ChainPage(chains, None, stale=not seen)
        chains = chains[: wanted.limit]
        return ChainPage(chains, After(chains[-1].updated_at, chains[-1].id), stale=not seen)

    async def close(self) -> None:
        """Let the connections go."""
        await self.connections.close()
