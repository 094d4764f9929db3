"""One real PostgreSQL a run, and a fresh, migrated database a test."""

import itertools
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from ledger.database import Database, Role
from ledger.embedded import EmbeddedPostgres
from ledger.settings import Settings

TEMPLATE = "template_ledger"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server():
    """The embedded PostgreSQL of this run, under a path short enough for a socket."""
    data_dir = Path(tempfile.mkdtemp(prefix="tl-"))
    try:
        with EmbeddedPostgres(data_dir) as server:
            yield server
    finally:
        shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server):
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {TEMPLATE}")
    Database(Settings(database_url=server.conninfo(dbname=TEMPLATE))).open()
    return TEMPLATE


@pytest.fixture
def database_url(server, template):
    """The superuser's way to a database of this test's own."""
    name = f"test_{next(NUMBERS)}"
    with psycopg.connect(server.conninfo(dbname="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        # What may be done with a database as such is not copied from its template.
        admin.execute(
            f"GRANT CREATE ON DATABASE {name} TO thought_ledger_owner, thought_ledger_projector"
        )
        yield server.conninfo(dbname=name)
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(database_url):
    """The test's own database, opened."""
    with Database(Settings(database_url=database_url)) as database:
        yield database


@pytest.fixture
def connector(database):
    """Makes connections that may write read models."""
    return database.connector(Role.PROJECTOR)


@pytest.fixture
def writer(database):
    """A connection that may append."""
    with closing(database.connector(Role.WRITER).connect()) as connection:
        yield connection


@pytest.fixture
def projector(database):
    """A connection that may write read models."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        yield connection


@pytest.fixture
def reader(database):
    """A connection that may only read."""
    with closing(database.connector(Role.READER).connect()) as connection:
        yield connection


@pytest.fixture
def admin(database_url):
    """A connection that may do anything."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection
