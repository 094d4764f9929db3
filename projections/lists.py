"""Lists of chains for a server: asked asynchronously, a page at a time."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg.rows import TupleRow

from ledger.database import Connector
from ledger.limits import recordable_name
from ledger.reader import Reader
from projections.embeddings.status import (
    PARAMETERS,
    SELECT_STATUS,
    EmbeddingStatus,
    status_of,
)
from projections.entities import Entities
from projections.live import LiveConnections
from projections.status import SELECT_LAG
from projections.terms import Terms
from projections.thoughts import Thoughts
from projections.trust.projection import Trust

LIST_CHAINS_MAX = 100
STARTS_MAX = 100
# A lag is counted so far: whoever asks often wants to know whether, not how long.
LAG_EVENTS_COUNTED_MAX = 10_000

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

# The bounds of a prefix, so that the primary key finds them.
SELECT_CHAIN_IDS = """
    SELECT id::text, count(*) OVER ()
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
       AND id BETWEEN %(first)s AND %(last)s
     ORDER BY updated_at DESC, id
     LIMIT %(limit)s
"""

SELECT_SESSION_IDS = """
    SELECT session_id, count(*) OVER ()
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
       AND starts_with(session_id, %(prefix)s)
     GROUP BY session_id
     ORDER BY max(updated_at) DESC, session_id
     LIMIT %(limit)s
"""

SELECT_COUNTS = """
    SELECT status, count(*)
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
     GROUP BY status
     ORDER BY status
"""

SELECT_POSITION: Mapping[str, LiteralString] = {
    Thoughts.name: "SELECT position FROM live.thoughts_checkpoint",
    Terms.name: "SELECT position FROM live.terms_checkpoint",
    Trust.name: "SELECT position FROM live.trust_checkpoint",
    Entities.name: "SELECT position FROM live.entities_checkpoint",
}


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


@dataclass(frozen=True, slots=True)
class Starts:
    """What starts with some letters: the latest STARTS_MAX, and how many there are in all."""

    values: list[str]
    total: int


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a read model has come, 0 if no worker has built it.

    ``events`` counts what is recorded and not yet in it, to LAG_EVENTS_COUNTED_MAX; ``seconds``
    is the age of the oldest of that.
    """

    position: int
    events: int
    seconds: float


class ChainLists:
    """Asks the live read models, on connections made when first needed."""

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
        rows = await _fetch(self.connections.reader, SELECT_CHAINS, parameters)
        if rows is None:
            return ChainPage([], None, stale=True)
        chains = [ChainRow(*row) for row in rows]
        if len(chains) <= wanted.limit:
            return ChainPage(chains, None, stale=not seen)
        chains = chains[: wanted.limit]
        return ChainPage(chains, After(chains[-1].updated_at, chains[-1].id), stale=not seen)

    async def chain_ids(self, tenant: str, prefix: str) -> Starts:
        """The ids of chains that start so, the latest moved first.

        Raises DatabaseUnavailableError.
        """
        try:
            first, last = _bounds_of_ids(prefix)
        except ValueError:
            return Starts([], 0)
        return await self._starts(SELECT_CHAIN_IDS, tenant=tenant, first=first, last=last)

    async def session_ids(self, tenant: str, prefix: str) -> Starts:
        """The names of sessions that start so, the latest first.

        Raises DatabaseUnavailableError.
        """
        named = recordable_name(prefix)
        return await self._starts(SELECT_SESSION_IDS, tenant=tenant, prefix=named)

    async def counts(self, tenant: str) -> dict[str, int] | None:
        """How many chains there are by status; None before a worker has built the read model.

        Raises DatabaseUnavailableError.
        """
        counted = await _fetch(self.connections.reader, SELECT_COUNTS, {"tenant": tenant})
        return None if counted is None else dict(counted)

    async def lags(self) -> dict[str, Lag]:
        """How far behind the log each read model is, by its name.

        Raises DatabaseUnavailableError.
        """
        return {name: await self._lag(query) for name, query in SELECT_POSITION.items()}

    async def embeddings(self) -> EmbeddingStatus:
        """How the embedding side is.

        Raises DatabaseUnavailableError.
        """
        rows = await _fetch(self.connections.reader, SELECT_STATUS, PARAMETERS)
        return status_of(rows[0]) if rows else EmbeddingStatus()

    async def close(self) -> None:
        """Let the connections go."""
        await self.connections.close()

    async def _lag(self, select_position: LiteralString) -> Lag:
        reader = self.connections.reader
        rows = await _fetch(reader, select_position, {})
        position = rows[0][0] if rows else 0
        ((events, seconds),) = await reader.fetch(
            SELECT_LAG, {"position": position, "limit": LAG_EVENTS_COUNTED_MAX}
        )
        return Lag(position, events, max(seconds, 0.0))

    async def _starts(self, query: LiteralString, **parameters: object) -> Starts:
        reader = self.connections.reader
        rows = await _fetch(reader, query, parameters | {"limit": STARTS_MAX}) or []
        return Starts([value for value, _ in rows], rows[0][1] if rows else 0)


async def _fetch(
    reader: Reader, query: LiteralString, parameters: Mapping[str, Any]
) -> list[TupleRow] | None:
    """The rows; None when no worker has built the read model yet."""
    try:
        return await reader.fetch(query, parameters)
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None


def _bounds_of_ids(prefix: str) -> tuple[UUID, UUID]:
    """The first and the last id that start so.  Raises ValueError when none can."""
    digits = prefix.lower().replace("-", "")
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    if not str(first).startswith(prefix.lower()):
        raise ValueError("its hyphens are not where an id has them")
    return first, last
