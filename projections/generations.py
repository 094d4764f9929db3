"""Generations: numbered, disposable builds of a read model.

A generation is one PostgreSQL schema (``thoughts_g1``) that holds the tables, the position they
have reached and the chains that had to be parked; dropping the schema forgets them together.
Readers look only at schema ``live``, whose views point at one generation of each projection;
promoting another one moves the views.
"""

from importlib import resources
from typing import LiteralString, NamedTuple, cast

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from projections.errors import GenerationNotFoundError, GrantMissingError, ProjectionVersionError
from projections.projection import Projection

# One builder at a time; the numbers are arbitrary and only have to stay the same.
LOCK_REGISTRY = "SELECT pg_advisory_xact_lock(74110002)"
LEADER_LOCK_CLASS = 74110003
PROMOTE_LOCK_SECONDS_MAX = 10

# By a look at the catalogue itself: to_regclass may answer from a cache that, within a
# transaction that waited for the lock, still says no.  One that an earlier thought-ledger made
# lacks a table, and is not there until it has that too.
REGISTRY_EXISTS = """
    SELECT count(*) = 2
      FROM pg_tables
     WHERE schemaname = 'projections' AND tablename IN ('generations', 'skipped')
"""

SELECT_LIVE = """
    SELECT id, name, number, projection_version, schema_name, state
      FROM projections.generations
     WHERE name = %(name)s AND state = 'live' AND to_regnamespace(schema_name) IS NOT NULL
"""

SELECT_GENERATION = """
    SELECT id, name, number, projection_version, schema_name, state
      FROM projections.generations
     WHERE name = %(name)s AND number = %(number)s
"""

SELECT_NEXT_NUMBER = """
    SELECT coalesce(max(number), 0) + 1
      FROM projections.generations
     WHERE name = %(name)s
"""

INSERT_GENERATION = """
    INSERT INTO projections.generations (name, number, projection_version, schema_name, state)
    VALUES (%(name)s, %(number)s, %(version)s, %(schema)s, 'building')
    RETURNING id, name, number, projection_version, schema_name, state
"""

# A generation whose schema somebody dropped is not there to go back to.
UPDATE_REPLACED = """
    UPDATE projections.generations
       SET state = CASE WHEN to_regnamespace(schema_name) IS NULL THEN 'retired' ELSE 'kept' END
     WHERE name = %(name)s AND state = 'live'
    RETURNING schema_name, state
"""

UPDATE_PROMOTED = """
    UPDATE projections.generations
       SET state = 'live', promoted_at = now()
     WHERE id = %(id)s
"""

SELECT_COLUMNS = """
    SELECT attname
      FROM pg_attribute
     WHERE attrelid = format('%%I.%%I', %(schema)s::text, %(table)s::text)::regclass
       AND attnum > 0
       AND NOT attisdropped
     ORDER BY attnum
"""

ANNOUNCE = "UPDATE {schema}.checkpoint SET announced = %(announced)s"

SELECT_SKIPPED_POSITIONS = """
    SELECT position
      FROM projections.skipped
     WHERE name = %(name)s AND projection_version = %(version)s
"""

TAKE_LEAD = "SELECT projections.take_lead(%(lock_class)s, %(id)s)"


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
    generation = find_live(connection, projection.name) or _build_live(connection, projection)
    if generation.projection_version != projection.version:
        raise ProjectionVersionError(
            generation.schema, generation.projection_version, projection.version
        )
    return generation


def find_live(connection: Connection[TupleRow], name: str) -> Generation | None:
    """The generation of *name* readers see, if there is one."""
    if not has_registry(connection):
        return None
    found = connection.execute(SELECT_LIVE, {"name": name}).fetchone()
    return Generation(*found) if found else None


def has_registry(connection: Connection[TupleRow]) -> bool:
    """Whether the registry is there, with all its tables."""
    row = connection.execute(REGISTRY_EXISTS).fetchone()
    return row is not None and row[0]


def ensure_registry(connection: Connection[TupleRow]) -> None:
    """Make what is missing of the registry; within a transaction, it stays locked to its end."""
    with connection.transaction():
        connection.execute(LOCK_REGISTRY)
        if not has_registry(connection):
            connection.execute(_bundled("registry"))


def skipped_positions(connection: Connection[TupleRow], projection: Projection) -> frozenset[int]:
    """The events an operator left out for good, in every generation of this version."""
    found = connection.execute(
        SELECT_SKIPPED_POSITIONS, {"name": projection.name, "version": projection.version}
    ).fetchall()
    return frozenset(position for (position,) in found)


def build(connection: Connection[TupleRow], projection: Projection, number: int) -> Generation:
    """Create the empty tables of a new generation; readers do not see it yet."""
    schema = f"{projection.name}_g{number}"
    with connection.transaction():
        connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        for name in ("checkpoint", projection.name):
            connection.execute(SQL(_bundled(name)).format(schema=Identifier(schema)))
        row = connection.execute(
            INSERT_GENERATION,
            {
                "name": projection.name,
                "number": number,
                "version": projection.version,
                "schema": schema,
            },
        ).fetchone()
    assert row is not None
    return Generation(*row)


def promote(connection: Connection[TupleRow], projection: Projection, number: int) -> Generation:
    """Point readers at a generation, in one transaction: they see the old one or the new one.

    Raises GenerationNotFoundError.
    """
    with connection.transaction():
        connection.execute(
            "SELECT set_config('lock_timeout', %(limit)s, true)",
            {"limit": f"{PROMOTE_LOCK_SECONDS_MAX}s"},
        )
        where = {"name": projection.name, "number": number}
        row = connection.execute(SELECT_GENERATION, where).fetchone()
        if row is None:
            raise GenerationNotFoundError(projection.name, number)
        generation = Generation(*row)
        replaced = connection.execute(UPDATE_REPLACED, {"name": projection.name}).fetchall()
        for schema, state in replaced:
            if state == "kept":
                _announce(connection, schema, announced=False)
        connection.execute(UPDATE_PROMOTED, {"id": generation.id})
        _announce(connection, generation.schema, announced=True)
        for table in projection.tables:
            _point_view(connection, table, generation.schema, table)
        _point_view(connection, f"{projection.name}_checkpoint", generation.schema, "checkpoint")
    return generation._replace(state="live")


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
            ensure_registry(connection)
            if generation := find_live(connection, projection.name):
                return generation
            number = _next_number(connection, projection.name)
            build(connection, projection, number)
            return promote(connection, projection, number)
    except psycopg.errors.InsufficientPrivilege as error:
        raise GrantMissingError(connection.info.dbname) from error


def _next_number(connection: Connection[TupleRow], name: str) -> int:
    row = connection.execute(SELECT_NEXT_NUMBER, {"name": name}).fetchone()
    assert row is not None
    return row[0]


def _announce(connection: Connection[TupleRow], schema: str, *, announced: bool) -> None:
    connection.execute(SQL(ANNOUNCE).format(schema=Identifier(schema)), {"announced": announced})


def _point_view(connection: Connection[TupleRow], view: str, schema: str, table: str) -> None:
    # Named columns: a prepared `SELECT *` breaks for good when the next generation has others.
    found = connection.execute(SELECT_COLUMNS, {"schema": schema, "table": table}).fetchall()
    columns = SQL(", ").join(Identifier(name) for (name,) in found)
    names = {"view": Identifier(view), "schema": Identifier(schema), "table": Identifier(table)}
    connection.execute(SQL("DROP VIEW IF EXISTS live.{view}").format(**names))
    connection.execute(
        SQL("CREATE VIEW live.{view} AS SELECT {columns} FROM {schema}.{table}").format(
            columns=columns, **names
        )
    )
    connection.execute(SQL("GRANT SELECT ON live.{view} TO thought_ledger_reader").format(**names))


def _bundled(name: str) -> LiteralString:
    file = resources.files("projections") / "sql" / f"{name}.sql"
    # Shipped with the package, so as trustworthy as the code itself.
    return cast("LiteralString", file.read_text(encoding="utf-8"))
