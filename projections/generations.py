"""Generations: numbered, disposable builds of a read model, and the registry that lists them.

A generation is one PostgreSQL schema (``thoughts_g1``) that holds the tables, the position they
have reached and the chains that had to be parked; dropping the schema forgets them together.
Readers look only at schema ``live``, whose views point at one generation of each projection
(``projections.views``); promoting another one moves the views (``projections.promotion``).
"""

from typing import LiteralString, NamedTuple

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from projections import views
from projections.errors import (
    GenerationLiveError,
    GenerationNotFoundError,
    GrantMissingError,
    ProjectionVersionError,
)
from projections.projection import Projection
from projections.registry import LOCK_REGISTRY, bundled, ensure_registry, registry_exists

# Arbitrary; it only has to stay the same.
LEADER_LOCK_CLASS = 74110003
INDEX_MEMORY = "256MB"

# What has happened to the list of generations: workers look at it again.
CHANNEL = "projection_generations"
LISTEN_TO_GENERATIONS: LiteralString = f"LISTEN {CHANNEL}"
NOTIFY_GENERATIONS: LiteralString = f"NOTIFY {CHANNEL}"

SELECT_GENERATIONS = """
    SELECT id, name, number, projection_version, schema_name, state
      FROM projections.generations
     WHERE (%(name)s::text IS NULL OR name = %(name)s)
       AND to_regnamespace(schema_name) IS NOT NULL
     ORDER BY promoted_at DESC NULLS LAST, number DESC
"""

# A schema of that name may be somebody else's.
SELECT_NEXT_NUMBER = """
    SELECT min(number)
      FROM (SELECT coalesce(max(number), 0) AS latest
              FROM projections.generations
             WHERE name = %(name)s) AS known
     CROSS JOIN LATERAL generate_series(latest + 1, latest + 100) AS number
     WHERE to_regnamespace(%(name)s || '_g' || number) IS NULL
"""

INSERT_GENERATION = """
    INSERT INTO projections.generations (name, number, projection_version, schema_name, state)
    VALUES (%(name)s, %(number)s, %(version)s, %(schema)s, %(state)s)
    RETURNING id, name, number, projection_version, schema_name, state
"""

# A generation whose schema somebody dropped is not there to go back to.
UPDATE_REPLACED = """
    UPDATE projections.generations
       SET state = CASE WHEN to_regnamespace(schema_name) IS NULL THEN 'retired' ELSE 'kept' END
     WHERE name = %(name)s AND state = 'live'
"""

UPDATE_PROMOTED = """
    UPDATE projections.generations
       SET state = 'live', promoted_at = clock_timestamp()
     WHERE id = %(id)s
"""

UPDATE_RETIRED = """
    UPDATE projections.generations
       SET state = 'retired'
     WHERE id = %(id)s AND state <> 'live'
"""

ANNOUNCE = "UPDATE {schema}.checkpoint SET announced = %(announced)s"

TAKE_LEAD = "SELECT projections.take_lead(%(lock_class)s, %(id)s)"

CONFIGURE_INDEXING = """
    SELECT set_config('maintenance_work_mem', %(memory)s, true),
           set_config('statement_timeout', '0', true)
"""


class Generation(NamedTuple):
    """One build of a read model, as the registry knows it."""

    id: int
    name: str
    number: int
    projection_version: int
    schema: str
    state: str


def ensure_live(connection: Connection[TupleRow], projection: Projection) -> Generation:
    """The generation readers see; built, empty, and promoted when there is none.

    Several workers may come at once: one of them builds.

    Raises ProjectionVersionError, GrantMissingError.
    """
    ensure_registry(connection)
    generation = find_live(connection, projection.name) or _build_live(connection, projection)
    refuse_other_version(generation, projection)
    return generation


def refuse_other_version(generation: Generation, projection: Projection) -> None:
    """Raise ProjectionVersionError when other code has built the generation."""
    if generation.projection_version != projection.version:
        raise ProjectionVersionError(
            generation.schema,
            built_version=generation.projection_version,
            version=projection.version,
            projection_name=projection.name,
        )


def listed(connection: Connection[TupleRow], name: str | None = None) -> list[Generation]:
    """The generations of *name*, or of all, that are there: the latest promoted first, then new."""
    if not registry_exists(connection):
        return []
    found = connection.execute(SELECT_GENERATIONS, {"name": name}).fetchall()
    return [Generation(*row) for row in found]


def find_live(connection: Connection[TupleRow], name: str) -> Generation | None:
    """The generation of *name* readers see, if there is one."""
    return next((found for found in listed(connection, name) if found.state == "live"), None)


def find(connection: Connection[TupleRow], name: str, number: int) -> Generation:
    """Generation *number* of *name*.  Raises GenerationNotFoundError."""
    for found in listed(connection, name):
        if found.number == number:
            return found
    raise GenerationNotFoundError(name, number)


def find_building(connection: Connection[TupleRow], projection: Projection) -> Generation | None:
    """The one that was begun for this version of the projection and never promoted."""
    for found in listed(connection, projection.name):
        if found.state == "building" and found.projection_version == projection.version:
            return found
    return None


def begin(connection: Connection[TupleRow], projection: Projection) -> Generation:
    """The generation to build for this version: the one that was begun, else a new one.

    Raises GrantMissingError.
    """
    ensure_registry(connection)
    try:
        with connection.transaction():
            connection.execute(LOCK_REGISTRY)
            if generation := find_building(connection, projection):
                return generation
            return build(connection, projection, next_number(connection, projection.name))
    except psycopg.errors.InsufficientPrivilege as error:
        raise GrantMissingError(connection.info.dbname) from error


def build(
    connection: Connection[TupleRow],
    projection: Projection,
    number: int,
    *,
    state: str = "building",
) -> Generation:
    """Create the empty tables of a new generation; readers do not see it yet."""
    schema = f"{projection.name}_g{number}"
    with connection.transaction():
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        for name in ("checkpoint", projection.name):
            connection.execute(SQL(bundled(name)).format(schema=Identifier(schema)))
        row = connection.execute(
            INSERT_GENERATION,
            {
                "name": projection.name,
                "number": number,
                "version": projection.version,
                "schema": schema,
                "state": state,
            },
        ).fetchone()
    assert row is not None
    return Generation(*row)


def add_indexes(
    connection: Connection[TupleRow], projection: Projection, generation: Generation
) -> None:
    """Make what only readers need, where it is missing, and have the tables analysed."""
    schema = Identifier(generation.schema)
    with connection.transaction():
        connection.execute(CONFIGURE_INDEXING, {"memory": INDEX_MEMORY})
        connection.execute(SQL(bundled(f"{projection.name}_indexes")).format(schema=schema))
        for table in views.tables_of(connection, generation.schema):
            name = Identifier(generation.schema, table)
            connection.execute(SQL("ANALYZE {}").format(name))


class Switch:
    """What it takes to have readers see a generation instead of the live one, made ready.

    It is made and used in one transaction that holds LOCK_REGISTRY; ``locks`` are statements, each
    of which keeps readers off one view.
    """

    def __init__(self, connection: Connection[TupleRow], generation: Generation) -> None:
        self.replaced = find_live(connection, generation.name)
        self._connection = connection
        self._generation = generation
        self.locks, self._moves = views.plan(
            connection, generation.name, generation.schema, self.replaced and self.replaced.schema
        )

    def make(self) -> None:
        """Have readers see it.  Raises ViewInUseError."""
        self._connection.execute(UPDATE_REPLACED, {"name": self._generation.name})
        self._connection.execute(UPDATE_PROMOTED, {"id": self._generation.id})
        if self.replaced is not None:
            self._announce(self.replaced, announced=False)
        self._announce(self._generation, announced=True)
        # Last, for readers wait from here on.
        views.move(self._connection, self._moves)
        self._connection.execute(NOTIFY_GENERATIONS)

    def _announce(self, generation: Generation, *, announced: bool) -> None:
        statement = SQL(ANNOUNCE).format(schema=Identifier(generation.schema))
        self._connection.execute(statement, {"announced": announced})


def retire(connection: Connection[TupleRow], generation: Generation) -> None:
    """Drop a generation that is not live, with all that is in it.

    Raises GenerationLiveError.
    """
    with connection.transaction():
        retired = connection.execute(UPDATE_RETIRED, {"id": generation.id})
        if retired.rowcount != 1:
            raise GenerationLiveError(generation.name, generation.number)
        schema = Identifier(generation.schema)
        connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(schema))
        connection.execute(NOTIFY_GENERATIONS)


def take_lead(connection: Connection[TupleRow], generation: Generation) -> bool:
    """Lead a generation as long as *connection* lives; False when after half a second another does.

    Whoever asks again at once gets the lead at the moment the other loses it, as long as it waits.
    """
    row = connection.execute(
        TAKE_LEAD, {"lock_class": LEADER_LOCK_CLASS, "id": generation.id}
    ).fetchone()
    return row is not None and row[0]


def _build_live(connection: Connection[TupleRow], projection: Projection) -> Generation:
    try:
        with connection.transaction():
            connection.execute(LOCK_REGISTRY)
            if generation := find_live(connection, projection.name):
                return generation
            number = next_number(connection, projection.name)
            generation = build(connection, projection, number)
            add_indexes(connection, projection, generation)
            Switch(connection, generation).make()
            return generation._replace(state="live")
    except psycopg.errors.InsufficientPrivilege as error:
        raise GrantMissingError(connection.info.dbname) from error


def next_number(connection: Connection[TupleRow], name: str) -> int:
    """Of the generation to be built next; within a transaction that holds LOCK_REGISTRY."""
    row = connection.execute(SELECT_NEXT_NUMBER, {"name": name}).fetchone()
    assert row is not None
    return row[0]
