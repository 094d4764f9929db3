"""Which chains and thoughts may be found: as said by who asks, and as SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

RESULTS_MAX = 50

# For the front of a statement: the chains that may be found, each looked at once.
# ``(chain_id IN (SELECT id FROM allowed)) IS TRUE`` then keeps them a set that is looked into:
# before tables are analysed the planner takes each for a row or two, and would go through one again
# for every row of another.
ALLOWED: LiteralString = """
    WITH allowed AS MATERIALIZED (
        SELECT id, thought_count
          FROM live.thought_chains
         WHERE tenant = %(tenant)s
           AND status = ANY (%(statuses)s)
           AND id <> ALL (%(known)s)
           AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR agent = %(agent)s)
           AND (%(since)s::timestamptz IS NULL OR updated_at >= %(since)s)
           AND (%(until)s::timestamptz IS NULL OR created_at < %(until)s)
    )
"""

# For a condition: the thoughts that trust lets pass; a title is none, and goes by its chain.
OF_TRUST: LiteralString = """
    (%(trusted)s::uuid[] IS NULL OR thought_id = ANY (%(trusted)s))
           AND (thought_id <> ALL (%(archived)s::uuid[])) IS NOT FALSE
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallFilter:
    """What may be found: chains of one of *statuses*, and of all that is not None.

    ``since`` and ``until`` are moments: what moved at or after the first and began before the
    second.  ``trust_min`` (0 to 1) leaves out thoughts that are trusted less now.  ``limit`` is at
    most RESULTS_MAX.
    """

    statuses: Sequence[str]
    session_id: str | None = None
    agent: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    trust_min: float | None = None
    limit: int = RESULTS_MAX


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What trust leaves out before the best are taken: else it would take their places.

    Only the thoughts *trusted*, if not None; none of those *archived*, nor of chains of which
    nothing else is left.
    """

    trusted: Sequence[UUID] | None = None
    archived: Sequence[UUID] = ()
    archived_chains: Sequence[UUID] = ()


def parameters_of(tenant: str, wanted: RecallFilter, bounds: Bounds) -> dict[str, Any]:
    """What ALLOWED and OF_TRUST ask for; ``known`` are chains to leave out."""
    return {
        "tenant": tenant,
        "known": list(bounds.archived_chains),
        "trusted": None if bounds.trusted is None else list(bounds.trusted),
        "archived": list(bounds.archived),
        "statuses": [str(status) for status in wanted.statuses],
        "session_id": wanted.session_id,
        "agent": wanted.agent,
        "since": wanted.since,
        "until": wanted.until,
    }
