"""Scratch generations: built to be compared, and gone when who made them is."""

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from projections import generations
from projections.generations import Generation
from projections.projection import Projection
from projections.registry import LOCK_REGISTRY, ensure_registry

DELETE_SCRATCH = "DELETE FROM projections.generations WHERE id = %(id)s AND state = 'scratch'"

TRY_LEAD = "SELECT pg_try_advisory_lock(%(lock_class)s, %(id)s)"
END_LEAD = "SELECT pg_advisory_unlock(%(lock_class)s, %(id)s)"


def begin_scratch(connection: Connection[TupleRow], projection: Projection) -> Generation:
    """A generation to be compared and then discarded by who leads it, whom *connection* makes.

    Raises GrantMissingError.
    """
    ensure_registry(connection)
    with connection.transaction():
        connection.execute(LOCK_REGISTRY)
        number = generations.next_number(connection, projection.name)
        generation = generations.build(connection, projection, number, state="scratch")
        # Within the transaction, so that nobody takes it for a leftover.
        assert generations.take_lead(connection, generation)
        return generation


def discard(connection: Connection[TupleRow], generation: Generation) -> None:
    """Drop a scratch generation, and forget that it was there."""
    with connection.transaction():
        connection.execute(DELETE_SCRATCH, {"id": generation.id})
        schema = Identifier(generation.schema)
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schema))


def discard_leftovers(connection: Connection[TupleRow], name: str) -> None:
    """Discard the scratch generations of *name* whose makers are gone."""
    for found in generations.listed(connection, name):
        if found.state != "scratch":
            continue
        where = {"lock_class": generations.LEADER_LOCK_CLASS, "id": found.id}
        row = connection.execute(TRY_LEAD, where).fetchone()
        if row is not None and row[0]:
            discard(connection, found)
            connection.execute(END_LEAD, where)
