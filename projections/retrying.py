"""Retrying parked chains and skipping parked events, while a worker leads and goes on."""

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from projections.errors import (
    NotParkedError,
    ParkedApartError,
    ProjectionVersionError,
    ReadModelBusyError,
)
from projections.generations import Generation
from projections.parked import Parked, generations, parked_chains, parked_in
from projections.projection import Projection
from projections.registry import LOCK_REGISTRY, ensure_registry
from projections.session import configure
from projections.unparking import Retried, Unparking

# A leader's batch holds the row for some milliseconds, and another retry for as long as it takes.
LOCK_SECONDS_MAX = 0.5
LOCK_ATTEMPTS_MAX = 20
# Chains in one transaction when all are retried: each transaction fences the leader once.
CHAINS_AT_ONCE_MAX = 100

# Besides what ``projections.session`` says: but what an operator decided to skip is on disk when
# the command says so.
CONFIGURE = """
    SELECT set_config('lock_timeout', %(lock_timeout)s, true),
           set_config('synchronous_commit', 'on', true)
"""

INSERT_SKIPPED = """
    INSERT INTO projections.skipped (
        name, projection_version, position, chain_id, version, topic, state_sha256,
        error, reason, skipped_by
    )
    SELECT %(name)s, %(projection_version)s, event.notification_id, event.originator_id,
           event.originator_version, event.topic, sha256(event.state),
           %(error)s, %(reason)s, %(skipped_by)s
      FROM ledger.events AS event
     WHERE event.notification_id = %(position)s
        ON CONFLICT (name, projection_version, position) DO UPDATE
       SET chain_id = excluded.chain_id,
           version = excluded.version,
           topic = excluded.topic,
           state_sha256 = excluded.state_sha256,
           error = excluded.error,
           reason = excluded.reason,
           skipped_by = excluded.skipped_by,
           skipped_at = excluded.skipped_at
"""

# What lets a transaction fail because of others, and succeed when it is repeated.
CONFLICTS = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)

_T = TypeVar("_T")


def retry(
    connection: Connection[TupleRow], projection: Projection, chain_id: UUID
) -> list[Retried]:
    """Apply a chain from its parked event on, in every generation of this version that parked it.

    In one transaction.  What can be applied is, as a rebuild would; where an event fails again,
    or a later one does, the chain is parked there.  *connection* is of role PROJECTOR.

    Raises NotParkedError, ProjectionVersionError, ReadModelBusyError, and psycopg.Error when the
    database is at fault.
    """

    def work() -> list[Retried]:
        retried = _retry(connection, projection, [chain_id])
        if not retried:
            raise _refusal(connection, projection, chain_id)
        return retried

    return _patiently(connection, projection, work)


def retry_all(connection: Connection[TupleRow], projection: Projection) -> Iterator[Retried]:
    """The same for whatever is parked, some chains a transaction; nothing when nothing is.

    Raises as ``retry``, but NotParkedError.
    """
    found = parked_chains(connection, projection.name)
    own = [row for row in found if row.projection_version == projection.version]
    if found and not own:
        raise _refusal(connection, projection, found[0].chain_id)
    chain_ids = list(dict.fromkeys(row.chain_id for row in own))
    for start in range(0, len(chain_ids), CHAINS_AT_ONCE_MAX):
        some = chain_ids[start : start + CHAINS_AT_ONCE_MAX]
        yield from _patiently(
            connection, projection, lambda some=some: _retry(connection, projection, some)
        )


def skip(
    connection: Connection[TupleRow],
    projection: Projection,
    chain_id: UUID,
    *,
    reason: str,
    skipped_by: str,
) -> list[Retried]:
    """Leave the parked event out in this version of the projection for good, and retry the chain.

    All of it is one transaction.  Raises as ``retry``, and ParkedApartError.
    """

    def work() -> list[Retried]:
        # A generation built meanwhile is one whose worker finds the event skipped.
        connection.execute(LOCK_REGISTRY)
        row = _parked_event(connection, projection, chain_id)
        connection.execute(
            INSERT_SKIPPED,
            {
                "name": projection.name,
                "projection_version": projection.version,
                "position": row.position,
                "error": row.error,
                "reason": reason,
                "skipped_by": skipped_by,
            },
        )
        # Also where the event is still to come: the leader there does not know yet.
        return _retry(connection, projection, [chain_id], fence_all=True)

    return _patiently(connection, projection, work)


def _patiently(
    connection: Connection[TupleRow], projection: Projection, work: Callable[[], _T]
) -> _T:
    ensure_registry(connection)
    for _ in range(LOCK_ATTEMPTS_MAX):
        try:
            with connection.transaction():
                # It has what the leader waits for: stopped, it is ended.
                configure(connection, is_local=True)
                connection.execute(CONFIGURE, {"lock_timeout": f"{LOCK_SECONDS_MAX * 1000:.0f}ms"})
                return work()
        except CONFLICTS:
            continue
    raise ReadModelBusyError(projection.name, LOCK_ATTEMPTS_MAX * LOCK_SECONDS_MAX)


def _retry(
    connection: Connection[TupleRow],
    projection: Projection,
    chain_ids: Collection[UUID],
    *,
    fence_all: bool = False,
) -> list[Retried]:
    retried: list[Retried] = []
    for generation in _own(connection, projection):
        unparking = Unparking(connection, projection, generation)
        here = [unparking.settle(row) for row in parked_in(connection, generation, chain_ids)]
        if fence_all or any(each.parked is None for each in here):
            unparking.fence()
        retried += here
    return retried


def _own(connection: Connection[TupleRow], projection: Projection) -> list[Generation]:
    return [
        generation
        for generation in generations(connection, projection.name)
        if generation.projection_version == projection.version
    ]


def _parked_event(
    connection: Connection[TupleRow], projection: Projection, chain_id: UUID
) -> Parked:
    rows: list[Parked] = []
    for generation in _own(connection, projection):
        Unparking(connection, projection, generation)
        rows += parked_in(connection, generation, [chain_id])
    if not rows:
        raise _refusal(connection, projection, chain_id)
    positions = sorted({row.position for row in rows})
    if len(positions) > 1:
        raise ParkedApartError(projection.name, chain_id, positions)
    return rows[0]


def _refusal(
    connection: Connection[TupleRow], projection: Projection, chain_id: UUID
) -> NotParkedError | ProjectionVersionError:
    """Why there is nothing to retry: not parked, or only where another version of it wrote."""
    for generation in generations(connection, projection.name):
        if parked_in(connection, generation, [chain_id]):
            return ProjectionVersionError(
                generation.schema,
                built_version=generation.projection_version,
                version=projection.version,
                projection_name=projection.name,
            )
    return NotParkedError(projection.name, chain_id)
