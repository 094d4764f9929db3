"""The log can only grow, and that is a property of the database."""

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import sql

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.header import Context
from ledger.settings import Settings
from tests.histories import start

TABLES = ["events", "requests", "backups"]
CHANGES = [
    "UPDATE ledger.{table} SET {column} = {column}",
    "UPDATE ledger.{table} SET {column} = {column} WHERE false",
    "DELETE FROM ledger.{table}",
    "DELETE FROM ledger.{table} WHERE false",
    "TRUNCATE ledger.{table}",
    "WITH gone AS (DELETE FROM ledger.{table} RETURNING 1) SELECT count(*) FROM gone",
    """
    MERGE INTO ledger.{table} AS t USING ledger.{table} AS s ON t.{column} = s.{column}
     WHEN MATCHED THEN DELETE
    """,
    """
    INSERT INTO ledger.{table} ({columns}) SELECT {columns} FROM ledger.{table}
        ON CONFLICT ({key}) DO UPDATE SET {column} = EXCLUDED.{column}
    """,
]
NAMES = {
    "events": {
        "column": "state",
        "key": "originator_id, originator_version",
        "columns": "originator_id, originator_version, topic, state, recorded_at, actor",
    },
    "requests": {
        "column": "answer",
        "key": "request_key",
        "columns": ("request_key, chain_id, command_digest, answer, first_position, last_position"),
    },
    "backups": {
        "column": "taken_at",
        "key": "id",
        "columns": "id, taken_at, head_position, events, bytes, log_only, taken_by",
    },
}
COUNT = "SELECT (SELECT count(*) FROM ledger.events), (SELECT count(*) FROM ledger.requests)"
APPEND_ONE = """
    SELECT verdict
      FROM ledger.append_one(
        gen_random_uuid(), 1, 'chain.paused', 'state', now(), 'somebody', NULL
    )
"""
INSERT_REQUEST = """
    INSERT INTO ledger.requests VALUES (gen_random_uuid(), gen_random_uuid(), '', '', 1, 1)
"""


@pytest.fixture(scope="module")
def recorded(server, template):
    """A database with two events and a request in the log, shared: nobody can change it."""
    url = server.conninfo(dbname="append_only")
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE append_only TEMPLATE {}").format(named(template)))

    async def record(database: Database) -> None:
        async with Ledger(database) as ledger:
            chain = start()
            chain.pause()
            await ledger.begin(Context(actor="tester", request_id="first"), chain, {})

    with Database(Settings(database_url=url)) as database:
        asyncio.run(record(database))
        yield database


def named(name: str) -> sql.Identifier:
    return sql.Identifier(name)


def statement(text: str, table: str) -> sql.SQL:
    # A statement of this file, so as trustworthy as the code itself.
    return sql.SQL(text.format(table=table, **NAMES[table]))  # type: ignore[arg-type]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("change", CHANGES)
def test_not_even_the_superuser_changes_what_is_recorded(recorded, server, table, change):
    with psycopg.connect(server.conninfo(dbname="append_only"), autocommit=True) as superuser:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            superuser.execute(statement(change, table))

        assert superuser.execute(COUNT).fetchone() == (2, 1)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("table", TABLES)
def test_no_role_of_the_product_changes_what_is_recorded(recorded, role, table):
    with recorded.connector(role).connect() as connection:
        for change in CHANGES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement(change, table))

    with recorded.connector(Role.READER).connect() as connection:
        assert connection.execute(COUNT).fetchone() == (2, 1)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE ledger.{table} DISABLE TRIGGER ALL",
        "ALTER TABLE ledger.{table} DISABLE TRIGGER refuse_change",
        "DROP TRIGGER refuse_change ON ledger.{table}",
        "DROP TABLE ledger.{table}",
        "ALTER TABLE ledger.{table} ADD COLUMN more int",
        "CREATE RULE r AS ON INSERT TO ledger.{table} DO INSTEAD NOTHING",
        "CREATE TABLE ledger.more ()",
        "ALTER FUNCTION ledger.refuse_change() RENAME TO refuse_nothing",
        "DROP FUNCTION ledger.refuse_change() CASCADE",
        "SET session_replication_role = replica",
        "SET ROLE thought_ledger_owner",
    ],
)
def test_no_role_of_the_product_takes_the_guards_away(recorded, role, table, change):
    with recorded.connector(role).connect() as connection:
        # As a login of that role: the superuser behind this test could step back.
        connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(named(role.value)))

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement(change, table))


@pytest.mark.parametrize("role", [Role.PROJECTOR, Role.READER, Role.AUDITOR])
@pytest.mark.parametrize("append", [APPEND_ONE, INSERT_REQUEST])
def test_only_the_writer_appends(recorded, role, append):
    with (
        recorded.connector(role).connect() as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(append)


@pytest.mark.parametrize("append", [APPEND_ONE, INSERT_REQUEST])
def test_the_writer_appends(database, append):
    with database.connector(Role.WRITER).connect() as connection:
        assert connection.execute(append).rowcount == 1


@pytest.mark.parametrize("role", Role)
def test_every_role_reads_the_log(recorded, role):
    with recorded.connector(role).connect() as connection:
        assert connection.execute("SELECT count(*) FROM ledger.events").fetchone() == (2,)


def test_only_the_projector_makes_schemas_of_its_own(database):
    for role in Role:
        with database.connector(role).connect() as connection:
            if role is Role.PROJECTOR:
                connection.execute("CREATE SCHEMA a_read_model")
                continue
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("CREATE SCHEMA a_read_model_of_somebody")


def test_the_roles_that_log_in_own_nothing_of_the_log(recorded):
    with recorded.connector(Role.WRITER).connect() as connection:
        owners = connection.execute(
            """
            SELECT DISTINCT pg_get_userbyid(relowner)
              FROM pg_class
             WHERE relnamespace = 'ledger'::regnamespace
             UNION
            SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'ledger'
             UNION
            SELECT pg_get_userbyid(proowner)
              FROM pg_proc
             WHERE pronamespace = 'ledger'::regnamespace
            """
        ).fetchall()
        members = connection.execute(
            """
            SELECT role
              FROM unnest(%(roles)s::text[]) AS role
             WHERE pg_has_role(role, 'thought_ledger_owner', 'MEMBER')
            """,
            {"roles": [role.value for role in Role]},
        ).fetchall()

    assert owners == [("thought_ledger_owner",)]
    assert members == []


@pytest.mark.parametrize("role", ["thought_ledger_owner", *Role])
def test_no_role_of_the_product_is_privileged(recorded, role):
    with recorded.connector(Role.READER).connect() as connection:
        row = connection.execute(
            """
            SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
              FROM pg_roles
             WHERE rolname = %(role)s
            """,
            {"role": str(role)},
        ).fetchone()

    assert row == (False,)


def test_a_version_is_taken_once_whoever_inserts_it(recorded):
    insert = """
        INSERT INTO ledger.events
               (originator_id, originator_version, topic, state, recorded_at, actor)
        VALUES (%(chain_id)s, 1, 'chain.started', '', %(now)s, 'somebody')
    """
    said = {"chain_id": start().id, "now": datetime.now(UTC)}

    with (
        recorded.connector(Role.WRITER).connect() as connection,
        pytest.raises(psycopg.errors.UniqueViolation),
    ):
        connection.execute(insert, said)


def test_a_position_is_given_by_the_database_alone(recorded):
    insert = """
        INSERT INTO ledger.events (
            originator_id, originator_version, topic, state, recorded_at, actor, notification_id
        ) VALUES (gen_random_uuid(), 1, 'chain.started', '', now(), 'somebody', 7)
    """

    with (
        recorded.connector(Role.WRITER).connect() as connection,
        pytest.raises(psycopg.errors.GeneratedAlways),
    ):
        connection.execute(insert)


def test_the_events_of_the_fixture_are_a_chain(recorded):
    async def read() -> ThoughtChain:
        async with Ledger(recorded) as ledger:
            return await ledger.chain(start().id)

    assert asyncio.run(read()).version == 2
