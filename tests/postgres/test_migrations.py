"""Forward-only migrations, and who may log in to what they made."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ledger import migrations
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, DatabaseUnavailableError, DatabaseUnfitError, Role
from ledger.embedded import EmbeddedPostgres
from ledger.header import Context
from ledger.migrations import ChangedMigrationError, NewerDatabaseError
from ledger.settings import Settings

NAMES = [migration.name for migration in migrations.bundled()]
RECORD = "INSERT INTO ledger.migrations (name, digest) VALUES (%(name)s, 'digest')"
ALTER = "UPDATE ledger.migrations SET digest = 'another' WHERE name = %(name)s"
FORGET = "DELETE FROM ledger.migrations"


@pytest.fixture
def empty_url(server):
    """The superuser's way to a database nobody has migrated."""
    name = f"empty_{uuid4().hex}"
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield server.conninfo(dbname=name)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def login(server):
    """Makes logins that are gone after the test, with all they own and were granted."""
    made: list[tuple[str, str]] = []

    def make(url: str, options: str = "") -> str:
        name = f"login_{uuid4().hex}"
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(
                sql.SQL("CREATE ROLE {} LOGIN {}").format(sql.Identifier(name), sql.SQL(options))
            )
        made.append((name, url))
        return name

    yield make
    for name, url in made:
        with psycopg.connect(url, autocommit=True) as admin:
            role = sql.Identifier(name)
            for statement in ("REASSIGN OWNED BY {} TO postgres", "DROP OWNED BY {}"):
                admin.execute(sql.SQL(statement).format(role))
            admin.execute(sql.SQL("DROP ROLE {}").format(role))


def do(url: str, statement: str, **names: str) -> None:
    identifiers = {key: sql.Identifier(name) for key, name in names.items()}
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(sql.SQL(statement).format(**identifiers))  # type: ignore[arg-type]


def opened(url: str, **changes: str) -> list[str]:
    return Database(Settings(database_url=make_conninfo(url, **changes))).open()


def records(url: str, **changes: str) -> bool:
    """Whether the ledger works with that URL: something recorded comes back."""

    async def record() -> bool:
        database = Database(Settings(database_url=make_conninfo(url, **changes)))
        async with Ledger(database) as ledger:
            chain = ThoughtChain.start(uuid4(), title="t")
            receipt = await ledger.begin(Context(actor="tester"), chain, {})
            return (await ledger.chain(receipt.chain_id)).version == 1

    return asyncio.run(record())


# Migrations


def test_an_empty_database_gets_every_migration_in_order(empty_url):
    assert opened(empty_url) == NAMES == sorted(NAMES)
    assert records(empty_url)


def test_migrating_again_does_nothing(empty_url):
    opened(empty_url)

    assert opened(empty_url) == []


def test_of_several_migrators_at_once_one_migrates(empty_url):
    together = Barrier(4)

    def migrate(_: int) -> list[str]:
        with psycopg.connect(empty_url, autocommit=True) as connection:
            together.wait(30)
            return migrations.migrate(connection)

    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(migrate, range(4)))

    assert sorted(applied) == [[], [], [], NAMES]


def test_opening_at_once_ends_well_for_all(empty_url):
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: opened(empty_url), range(4)))

    assert [name for names in applied for name in names] == NAMES


def test_a_database_of_a_newer_ledger_is_refused(database_url):
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(RECORD, {"name": "9999_future.sql"})

    with pytest.raises(NewerDatabaseError) as refusal:
        opened(database_url)

    assert refusal.value.names == ["9999_future.sql"]


def test_a_migration_that_was_changed_since_is_refused(database_url):
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(ALTER, {"name": NAMES[0]})

    with pytest.raises(ChangedMigrationError) as refusal:
        opened(database_url)

    assert refusal.value.name == NAMES[0]


def test_migrations_that_fail_leave_nothing_behind(empty_url):
    # The second migration meets a function that is not ours.
    do(empty_url, "CREATE SCHEMA ledger")
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("CREATE TYPE ledger.events AS (id int)")

        with pytest.raises(psycopg.Error):
            migrations.migrate(connection)

        row = connection.execute("SELECT to_regclass('ledger.migrations')").fetchone()
        role = connection.execute("SELECT current_user").fetchone()
    assert row == (None,)
    assert role == ("postgres",)


# An embedded database


def test_a_start_that_died_after_migrating_is_mended_by_the_next(tmp_path):
    with EmbeddedPostgres(tmp_path / "ledger") as server:
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            migrations.migrate(connection)

        with Database(Settings(data_dir=tmp_path / "ledger")) as database:
            for role in Role:
                with database.connector(role).connect() as connection:
                    row = connection.execute("SELECT session_user").fetchone()
                assert row == (role.value,)


# A database elsewhere


@pytest.mark.parametrize("url", ["postgresql://u:secret@[", "password=secret no url"])
def test_a_url_that_cannot_be_read_is_refused_without_being_told(url):
    with pytest.raises(DatabaseUnfitError) as refusal:
        Database(Settings(database_url=url))

    assert "secret" not in str(refusal.value)


def test_nobody_there_is_said(tmp_path):
    with pytest.raises(DatabaseUnavailableError):
        opened(f"host={tmp_path} dbname=d user=u")


def test_a_database_that_is_not_there_is_said(server):
    with pytest.raises(DatabaseUnavailableError):
        opened(server.conninfo(dbname="nowhere"))


def test_a_login_that_may_create_roles_migrates_the_database_it_owns(fresh_server, login):
    url = fresh_server.conninfo()
    name = login(url, "CREATEROLE")
    do(url, "CREATE EXTENSION vector")
    do(url, "ALTER DATABASE thought_ledger OWNER TO {name}", name=name)

    assert opened(url, user=name) == NAMES
    assert opened(url, user=name) == []
    assert records(url, user=name)


def test_a_login_that_may_not_create_the_extension_is_told(fresh_server, login):
    url = fresh_server.conninfo()
    name = login(url, "CREATEROLE")
    do(url, "ALTER DATABASE thought_ledger OWNER TO {name}", name=name)

    with pytest.raises(DatabaseUnfitError):
        opened(url, user=name)


def test_an_owner_without_rights_migrates_when_the_roles_are_there_and_granted(
    empty_url, template, login
):
    name = login(empty_url)
    do(empty_url, "CREATE EXTENSION vector")
    database = conninfo_to_dict(empty_url)["dbname"]
    do(empty_url, "ALTER DATABASE {database} OWNER TO {name}", database=str(database), name=name)
    # The roles are there because another database of the cluster has been migrated.
    do(
        empty_url,
        "GRANT thought_ledger_owner, thought_ledger_writer, thought_ledger_projector, "
        "thought_ledger_reader TO {name}",
        name=name,
    )

    assert opened(empty_url, user=name) == NAMES
    assert records(empty_url, user=name)


def test_an_owner_who_may_not_act_as_the_roles_is_told(empty_url, template, login):
    name = login(empty_url)
    do(empty_url, "CREATE EXTENSION vector")
    database = conninfo_to_dict(empty_url)["dbname"]
    do(empty_url, "ALTER DATABASE {database} OWNER TO {name}", database=str(database), name=name)

    with pytest.raises(DatabaseUnfitError):
        opened(empty_url, user=name)


def test_a_plain_login_with_the_roles_works_on_a_migrated_database(database_url, login):
    name = login(database_url)
    do(
        database_url,
        "GRANT thought_ledger_writer, thought_ledger_projector TO {name}",
        name=name,
    )

    assert opened(database_url, user=name) == []
    assert records(database_url, user=name)


def test_a_stranger_to_a_migrated_database_is_told(database_url, login):
    name = login(database_url)

    with pytest.raises(DatabaseUnfitError):
        opened(database_url, user=name)


def test_a_login_without_the_writers_role_is_told_when_it_writes(database_url, login):
    name = login(database_url)
    do(database_url, "GRANT thought_ledger_reader TO {name}", name=name)

    assert opened(database_url, user=name) == []
    with pytest.raises(DatabaseUnfitError):
        records(database_url, user=name)


def test_a_plain_login_is_told_to_let_an_owner_migrate(empty_url, template, login):
    name = login(empty_url)

    with pytest.raises(DatabaseUnfitError):
        opened(empty_url, user=name)


def test_options_of_the_url_are_kept_beside_the_role(database_url):
    url = make_conninfo(database_url, options="-c work_mem=7MB")
    database = Database(Settings(database_url=url))

    with database.connector(Role.READER).connect() as connection:
        row = connection.execute("SELECT current_user, current_setting('work_mem')").fetchone()

    assert row == (Role.READER, "7MB")


@pytest.fixture
def fresh_server(tmp_path: Path):
    """A cluster that has never seen the product, so that its roles are not there."""
    with EmbeddedPostgres(tmp_path / "ledger") as server:
        yield server
