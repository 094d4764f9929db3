"""Some chains of a live read model compared with what the log says, and nothing left of it."""

import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier, Literal

from ledger.database import Connector
from ledger.log import stream_pages
from ledger.serialization import decode
from projections import generations, views
from projections.comparison import Comparison
from projections.errors import NoLiveGenerationError
from projections.generations import Generation
from projections.parked import left_out
from projections.projection import Projection
from projections.promotion import SELECT_POSITION, position_of
from projections.registry import bundled
from projections.tables import Tables

BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"

# The chains of events at random places; a long chain is likelier to be among them.
SELECT_CHAINS = """
    SELECT DISTINCT event.originator_id
      FROM (SELECT (random() * %(position)s)::int8 AS place
              FROM generate_series(1, 4 * %(count)s)) AS chosen
     CROSS JOIN LATERAL (
           SELECT originator_id
             FROM ledger.events
            WHERE notification_id >= chosen.place AND notification_id <= %(position)s
            ORDER BY notification_id
            LIMIT 1
     ) AS event
     WHERE event.originator_id NOT IN (SELECT chain_id FROM {schema}.parked)
"""

COPY_ROWS = """
    CREATE TABLE {into} (LIKE {table} INCLUDING INDEXES);
    INSERT INTO {into} SELECT * FROM {table} WHERE {column} = ANY ({chains})
"""

MOVE_POSITION = "UPDATE {schema}.checkpoint SET position = %(position)s"


@dataclass(frozen=True, slots=True)
class Sample:
    """The chains that were compared, and the tables that only a whole comparison covers."""

    comparison: Comparison
    chains: Sequence[UUID]
    uncovered: Sequence[str]


@contextmanager
def sampled(connector: Connector, projection: Projection, count: int) -> Generator[Sample]:
    """Up to *count* chains, as they are in the live generation and folded anew.

    All of it is one transaction that is never committed.  Chains that are parked are left out.

    Raises NoLiveGenerationError, ProjectionVersionError, and PoisonError or what ``decode`` raises
    for an event that cannot be applied, though its chain is not parked.
    """
    with connector.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute(BEGIN)
        live = generations.find_live(connection, projection.name)
        if live is None:
            raise NoLiveGenerationError(projection.name)
        generations.refuse_other_version(live, projection)
        position = position_of(connection, SELECT_POSITION, live)
        chosen = SQL(SELECT_CHAINS).format(schema=Identifier(live.schema))
        where = {"position": position, "count": count}
        found = [chain_id for (chain_id,) in connection.execute(chosen, where).fetchall()]
        chains = random.sample(found, min(count, len(found)))
        there = _copied(connection, projection, live, chains, position)
        fresh = _folded(connection, projection, live, chains, position)
        uncovered = [name for name in projection.tables if name not in projection.chain_columns]
        yield Sample(Comparison(connection, there, fresh), chains, uncovered)


def _copied(
    connection: Connection[TupleRow],
    projection: Projection,
    live: Generation,
    chains: Sequence[UUID],
    position: int,
) -> Generation:
    copied = _scratch(connection, live, "sample", position)
    for table, column in projection.chain_columns.items():
        connection.execute(
            SQL(COPY_ROWS).format(
                into=Identifier(copied.schema, table),
                table=Identifier(live.schema, table),
                column=Identifier(column),
                chains=Literal(list(chains)),
            )
        )
    return copied


def _folded(
    connection: Connection[TupleRow],
    projection: Projection,
    live: Generation,
    chains: Sequence[UUID],
    position: int,
) -> Generation:
    folded = _scratch(connection, live, "fresh", position)
    connection.execute(SQL(bundled(projection.name)).format(schema=Identifier(folded.schema)))
    skipped = left_out(connection, projection)
    tables = Tables(connection, projection, folded.schema)
    for chain_id in chains:
        for rows in stream_pages(connection, chain_id, after_version=0, to_position=position):
            tables.make(tables.decide([decode(*row) for row in rows if not skipped.holds(*row)]))
    for table in views.tables_of(connection, folded.schema):
        if table not in projection.chain_columns:
            connection.execute(SQL("DROP TABLE {}").format(Identifier(folded.schema, table)))
    return folded


def _scratch(
    connection: Connection[TupleRow],
    live: Generation,
    purpose: str,
    position: int,
) -> Generation:
    """A schema like that of a generation, which is in no registry."""
    name = f"{live.schema}_{purpose}_{connection.info.backend_pid}"
    schema = Identifier(name)
    connection.execute(SQL("CREATE SCHEMA {}").format(schema))
    connection.execute(SQL(bundled("checkpoint")).format(schema=schema))
    connection.execute(SQL(MOVE_POSITION).format(schema=schema), {"position": position})
    return live._replace(schema=name)
