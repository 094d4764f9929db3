"""What each role may not do, one by one, and what the narrowest login can still do."""

import asyncio
import json
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.errors import InsufficientPrivilege

from ledger import migrations
from ledger.application import Ledger
from ledger.database import Database, DatabaseUnfitError, Role
from ledger.embedded import EmbeddedPostgres
from ledger.header import Context
from ledger.settings import Settings
from projections.generations import ensure_live
from projections.terms import Terms
from projections.thoughts import Thoughts
from tests.acceptance.product import run
from tests.histories import start

NOBODY_MAY = {
    "make a table in the log": "CREATE TABLE ledger.more ()",
    "make a function in the log": "CREATE FUNCTION ledger.f() RETURNS int RETURN 1",
    "drop a guard": "DROP TRIGGER refuse_change ON ledger.events",
    "switch a guard off": "ALTER TABLE ledger.events DISABLE TRIGGER USER",
    "change a table of the log": "ALTER TABLE ledger.events ADD COLUMN more int",
    "drop a table of the log": "DROP TABLE ledger.requests",
    "drop the log": "DROP SCHEMA ledger CASCADE",
    "change an event": "UPDATE ledger.events SET actor = 'me'",
    "delete an event": "DELETE FROM ledger.events",
    "empty the log": "TRUNCATE ledger.events",
    "forget a request": "DELETE FROM ledger.requests",
    "forget a migration": "DELETE FROM ledger.migrations",
    "pretend a migration": "INSERT INTO ledger.migrations VALUES ('9999_future.sql', '')",
    "replace how appending is done": "DROP FUNCTION ledger.append_one",
    "move the next position": "SELECT setval('ledger.events_notification_id_seq', 1)",
    "use a position up": "SELECT nextval('ledger.events_notification_id_seq')",
    "choose a position": """
        INSERT INTO ledger.events (
            originator_id, originator_version, topic, state, recorded_at, actor, notification_id
        ) OVERRIDING SYSTEM VALUE
        VALUES (gen_random_uuid(), 1, 'chain.started', '', now(), 'me', 999)
    """,
    "make a role": "CREATE ROLE thought_ledger_more",
    "become the owner": "SET ROLE thought_ledger_owner",
    "become the superuser": "SET ROLE postgres",
}
APPEND = """
    SELECT ledger.append_one(gen_random_uuid(), 1, 'chain.paused', 's', now(), 'me', NULL)
"""
INSERT_EVENT = """
    INSERT INTO ledger.events (
        originator_id, originator_version, topic, state, recorded_at, actor
    ) VALUES (gen_random_uuid(), 1, 'chain.started', '', now(), 'me')
"""
INSERT_REQUEST = """
    INSERT INTO ledger.requests VALUES (gen_random_uuid(), gen_random_uuid(), '', '', 1, 1)
"""
WRITES_TO_READ_MODELS = {
    "add a row": "INSERT INTO thoughts_g1.memories (id) VALUES (gen_random_uuid())",
    "change a row": "UPDATE live.thoughts SET thought = 'another'",
    "delete a row": "DELETE FROM live.thought_chains",
    "empty a table": "TRUNCATE terms_g1.terms",
    "move a position": "UPDATE thoughts_g1.checkpoint SET position = 0",
    "switch a generation": "UPDATE projections.generations SET state = 'retired'",
    "drop a view": "DROP VIEW live.thoughts",
    "drop a generation": "DROP SCHEMA thoughts_g1 CASCADE",
    "make a schema": "CREATE SCHEMA thoughts_g9",
}
READS_OF_READ_MODELS = {
    "the chains": "SELECT id FROM live.thought_chains",
    "the thoughts": "SELECT id FROM live.thoughts",
    "a generation": "SELECT id FROM thoughts_g1.thoughts",
    "a position": "SELECT position FROM thoughts_g1.checkpoint",
    "the generations": "SELECT id FROM projections.generations",
}
# Who each role may act as, itself not counted: who reads more may always do with less.
INCLUDES = {
    Role.WRITER: {Role.READER, Role.AUDITOR},
    Role.PROJECTOR: set(),
    Role.READER: {Role.AUDITOR},
    Role.AUDITOR: set(),
}


@pytest.fixture(scope="module")
def projected(server, template):
    """A database with a chain in the log and empty read models, shared: nobody changes it."""
    url = server.conninfo(dbname="roles")
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE roles TEMPLATE {}").format(sql.Identifier(template)))
        admin.execute("GRANT CREATE ON DATABASE roles TO thought_ledger_projector")
    with Database(Settings(database_url=url)) as database:
        record(database)
        with database.connector(Role.PROJECTOR).connect() as connection:
            for projection in (Thoughts(), Terms()):
                ensure_live(connection, projection)
    return url


def record(database: Database) -> None:
    async def begin() -> None:
        async with Ledger(database) as ledger:
            await ledger.begin(Context(actor="tester"), start(), {})

    asyncio.run(begin())


@contextmanager
def logged_in(url: str, role: Role):
    """As a login of that role: the superuser behind this test could step back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(role.value))
        )
        yield connection


def assert_refused(url: str, role: Role, statement: str) -> None:
    with logged_in(url, role) as connection, pytest.raises(InsufficientPrivilege):
        connection.execute(statement)


def cases(statements: dict[str, str]):
    return pytest.mark.parametrize("statement", statements.values(), ids=statements.keys())


@pytest.mark.parametrize("role", Role)
@cases(NOBODY_MAY)
def test_no_role_of_the_product_may(projected, role, statement):
    assert_refused(projected, role, statement)


@pytest.mark.parametrize("role", [Role.WRITER, Role.READER, Role.AUDITOR])
@cases(WRITES_TO_READ_MODELS)
def test_none_but_the_projector_writes_read_models(projected, role, statement):
    assert_refused(projected, role, statement)


@pytest.mark.parametrize("role", [Role.PROJECTOR, Role.READER, Role.AUDITOR])
@pytest.mark.parametrize("statement", [APPEND, INSERT_EVENT, INSERT_REQUEST])
def test_none_but_the_writer_adds_to_the_log(projected, role, statement):
    assert_refused(projected, role, statement)


@cases(READS_OF_READ_MODELS)
def test_the_auditor_sees_no_read_model(projected, statement):
    assert_refused(projected, Role.AUDITOR, statement)


def test_the_auditor_does_not_see_the_answers_kept_for_requests(projected):
    assert_refused(projected, Role.AUDITOR, "SELECT answer FROM ledger.requests")


@pytest.mark.parametrize("role", Role)
def test_a_role_acts_as_those_it_includes_and_as_no_other(projected, role):
    acted = set()
    for other in set(Role) - {role}:
        with logged_in(projected, role) as connection:
            try:
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(other.value)))
                acted.add(other)
            except InsufficientPrivilege:
                pass

    assert acted == INCLUDES[role]


@pytest.mark.parametrize("role", Role)
def test_every_role_reads_the_events_and_the_migrations(projected, role):
    with logged_in(projected, role) as connection:
        events = connection.execute("SELECT count(*) FROM ledger.events").fetchone()
        applied = connection.execute("SELECT count(*) FROM ledger.migrations").fetchone()

    assert events == (1,)
    assert applied == (len(migrations.bundled()),)


@pytest.fixture
def login(projected):
    """Makes logins that are gone after the test."""
    made = []

    def make(*granted: str, url: str = projected) -> str:
        name = f"login_{uuid4().hex}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            for role in granted:
                admin.execute(
                    sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(name))
                )
        made.append(name)
        return make_conninfo(url, user=name)

    yield make
    with psycopg.connect(projected, autocommit=True) as admin:
        for name in made:
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("granted", [Role.AUDITOR, Role.READER, Role.WRITER])
def test_whoever_reads_the_log_replays_it(login, granted):
    url = login(granted)

    done = run("replay", start().id, "--json", env={"THOUGHT_LEDGER_DATABASE_URL": url})

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["type"] == "chain.started"


def test_a_login_that_only_audits_is_told_when_it_does_more(login):
    database = Database(Settings(database_url=login(Role.AUDITOR)))

    assert database.open() == []
    for role in (Role.READER, Role.WRITER, Role.PROJECTOR):
        with pytest.raises(DatabaseUnfitError):
            database.connector(role).connect()


def test_a_data_directory_from_before_the_auditor_gets_one(tmp_path):
    older = migrations.bundled()[:2]
    with EmbeddedPostgres(tmp_path / "ledger") as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as admin, admin.transaction():
            admin.execute(migrations.ENSURE_TABLE)
            for migration in older:
                admin.execute(migration.statements)
                admin.execute("RESET ROLE")
                admin.execute(migrations.INSERT_APPLIED, migration._asdict())
            for role in (Role.WRITER, Role.PROJECTOR, Role.READER):
                admin.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(role.value)))
        with Database(Settings(data_dir=tmp_path / "ledger")) as database:
            record(database)
            with database.connector(Role.AUDITOR).connect() as connection:
                row = connection.execute("SELECT session_user, count(*) FROM ledger.events")

                assert row.fetchone() == (Role.AUDITOR, 1)
