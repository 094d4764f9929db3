"""How the embedding side is: who embeds with what, how far behind, and why it does not."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.events import ThoughtAdded, ThoughtBranched, ThoughtRevised
from projections.embeddings import lead
from projections.embeddings.schema import MISSING

BEHIND_MAX = 100_000
THOUGHT_TOPICS = [event.TOPIC for event in (ThoughtAdded, ThoughtBranched, ThoughtRevised)]
NOT_BEGUN = "not begun"

# One statement, for whoever asks plainly and whoever awaits it.
SELECT_STATUS = """
    SELECT live.number, live.model, live.dimensions, coalesce(live.position, 0),
           coalesce(live.thoughts, 0), coalesce(live.embedded, 0),
           (SELECT max(number) FROM vectors.spaces WHERE state = 'building'),
           (SELECT count(*)
              FROM (SELECT
                      FROM ledger.events
                     WHERE notification_id > coalesce(live.position, 0)
                       AND topic = ANY (%(topics)s)
                     LIMIT %(behind_max)s) AS waiting),
           (SELECT count(*) FROM vectors.left_out WHERE space = live.number),
           word.state, coalesce(word.reason, ''), word.model, word.rate,
           leader.number, leader.name
      FROM (SELECT max(lock.objid::bigint) AS number, max(session.application_name) AS name
              FROM pg_locks AS lock
              LEFT JOIN pg_stat_activity AS session ON session.pid = lock.pid
             WHERE lock.locktype = 'advisory'
               AND lock.database = (
                       SELECT oid FROM pg_database WHERE datname = current_database()
                   )
               AND lock.classid = %(lock_class)s
               AND lock.objsubid = 2
               AND lock.granted) AS leader
      LEFT JOIN vectors.embedder AS word ON true
      LEFT JOIN vectors.spaces AS live ON live.state = 'live'
"""
PARAMETERS: dict[str, Any] = {
    "topics": THOUGHT_TOPICS,
    "behind_max": BEHIND_MAX,
    "lock_class": lead.LOCK_CLASS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingStatus:
    """``behind`` counts the thoughts recorded after the live space's position, to BEHIND_MAX.

    ``embedded`` counts texts that a model was run on, ``thoughts`` the vectors there are, and
    ``left_out`` the thoughts that got none.  ``building`` is a space that is to become live.
    ``process`` is who embeds, PID@HOST; ``rate`` is in texts a second, of late.
    """

    name: str = "embeddings"
    state: str = NOT_BEGUN
    reason: str = ""
    model: str | None = None
    space: int | None = None
    dimensions: int | None = None
    position: int = 0
    behind: int = 0
    thoughts: int = 0
    embedded: int = 0
    left_out: int = 0
    building: int | None = None
    rate: float | None = None
    process: str | None = None


def look(connection: Connection[TupleRow]) -> EmbeddingStatus:
    """How it is now."""
    try:
        row = connection.execute(SELECT_STATUS, PARAMETERS).fetchone()
    except MISSING:
        return EmbeddingStatus()
    assert row is not None
    return status_of(row)


def status_of(row: TupleRow) -> EmbeddingStatus:
    """What a row of SELECT_STATUS says."""
    space, model, dimensions, position, thoughts, embedded, building, behind, left_out = row[:9]
    said, reason, model_said, rate, number, name = row[9:]
    state = _state(said, number)
    return EmbeddingStatus(
        state=state,
        reason=reason if state == said else "",
        model=model or model_said,
        space=space,
        dimensions=dimensions,
        position=position,
        behind=behind,
        thoughts=thoughts,
        embedded=embedded,
        left_out=left_out,
        building=building,
        rate=rate if number is not None else None,
        process=name and name.rpartition(" ")[2],
    )


def _state(said: str | None, number: int | None) -> str:
    if number is not None:
        return lead.IS_READY if number == lead.READY else lead.LOADING
    # The last word of one that was killed is not how it is.
    if said in (lead.IS_READY, lead.LOADING):
        return lead.RESTING
    return said or NOT_BEGUN


def sentence(status: EmbeddingStatus) -> str:
    """All of it, for people."""
    parts = [f"{status.state}: {status.reason}" if status.reason else status.state]
    if status.model is not None:
        parts.append(f"model {status.model}")
    if status.space is not None:
        parts.append(f"space {status.space} of {status.dimensions} dimensions")
    more = "over " if status.behind >= BEHIND_MAX else ""
    parts += [f"{more}{status.behind:,} thoughts behind", f"{status.embedded:,} texts embedded"]
    if status.building is not None:
        parts.append(f"space {status.building} is being built")
    if status.left_out:
        parts.append(f"{status.left_out:,} thoughts left out")
    if status.rate is not None:
        parts.append(f"{status.rate:,.0f} texts a second")
    if status.process is not None:
        parts.append(f"by {status.process}")
    return "; ".join(parts)
