"""The same on PostgreSQL 16, on 18, and embedded: what the product rests on, end to end."""

import asyncio
from contextlib import ExitStack, closing, contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from ledger import log, migrations
from ledger.application import Ledger
from ledger.backups.backup import take_backup
from ledger.backups.restore import restore_backup
from ledger.database import Database, Role
from ledger.errors import ChainExistsError
from ledger.header import Context
from ledger.settings import Settings
from projections.catalogue import ALL
from projections.follower import Follower
from projections.generations import build, find_live
from projections.promotion import promote
from projections.thoughts import Thoughts
from projections.wait import wait_for
from projections.workers import catch_up_all
from tests.postgres.projecting import (
    SECONDS_MAX,
    catch_up,
    record,
    record_chain,
    rows,
    running_worker,
    tables,
)
from tests.postgres.servers import running_server
from tests.postgres.test_log_is_append_only import CHANGES, TABLES, statement
from tests.postgres.test_roles import INCLUDES, NOBODY_MAY, WRITES_TO_READ_MODELS
from tests.postgres.test_search import chain_of, ids, related
from tests.postgres.writers import begin, write

CONTEXT = Context(actor="tester")
PLACES = ["16", "18", "embedded"]
APPEND_ONE = """
    SELECT verdict
      FROM ledger.append_one(%(id)s, %(version)s, 'chain.paused', %(state)s, now(), 'me', NULL)
"""


@pytest.fixture(scope="module")
def servers():
    """The servers by their version, each started when it is first asked for."""
    with ExitStack() as stack:
        started = {}

        def server(major):
            if major not in started:
                started[major] = stack.enter_context(running_server(major))
            return started[major]

        yield server


@pytest.fixture(scope="module", params=PLACES)
def place(request, servers, tmp_path_factory):
    """A new ledger for the tests of this module, and what was applied to make it."""
    if request.param == "embedded":
        database = Database(Settings(data_dir=tmp_path_factory.mktemp("data") / "ledger"))
        try:
            yield database, database.open()
        finally:
            database.close()
        return
    with servers(request.param).database() as url:
        database = Database(Settings(database_url=url))
        yield database, database.open()


@pytest.fixture
def database(place):
    return place[0]


def test_it_is_the_version_it_should_be(request, database, reader):
    expected = request.node.callspec.params["place"].replace("embedded", "18")

    (version,) = reader.execute("SHOW server_version").fetchone()

    assert version.partition(".")[0] == expected


def test_it_is_migrated_once(place):
    database, applied = place

    assert applied == [migration.name for migration in migrations.bundled()]
    assert database.open() == []


def test_one_event_is_stored_known_again_and_refused(writer):
    first = {"id": uuid4(), "version": 1, "state": b"state"}

    verdicts = [
        writer.execute(APPEND_ONE, said).fetchone()[0]
        for said in (first, first, first | {"state": b"another"}, first | {"version": 9})
    ]

    assert verdicts == ["stored", "known", "conflict", "conflict"]
    stored = "SELECT count(*) FROM ledger.events WHERE originator_id = %(id)s"
    assert writer.execute(stored, first).fetchone() == (1,)


def test_batches_of_many_callers_are_stored_in_their_order(database):
    async def record_at_once():
        async with Ledger(database) as ledger:
            chain_ids = [uuid4() for _ in range(20)]
            await asyncio.gather(*(begin(ledger, CONTEXT, id_) for id_ in chain_ids))
            await write(ledger, "w", chain_ids, tasks=20, thoughts=3)
            with pytest.raises(ChainExistsError):
                await begin(ledger, CONTEXT, chain_ids[0])
            return chain_ids

    chain_ids = asyncio.run(record_at_once())

    with database.connector(Role.AUDITOR).connect() as connection:
        for chain_id in chain_ids:
            history = log.history(connection, chain_id)
            assert [one.header.version for one in history] == [1, 2, 3, 4]


@pytest.mark.parametrize("table", TABLES)
def test_what_is_recorded_is_not_changed_by_a_superuser(database, table):
    with database.reach() as superuser:
        for change in CHANGES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                superuser.execute(statement(change, table))


def caught_up(database):
    assert catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX) == []


def test_what_is_recorded_is_seen_and_found(database, writer, reader):
    words = uuid4().hex
    chain = chain_of(f"The cache {words} is cold.", title="caches")
    position = record(writer, chain)

    caught_up(database)

    (row,) = (row for row in rows(reader, "live", "thought_chains") if row["id"] == chain.id)
    assert (row["title"], row["thought_count"]) == ("caches", 1)
    answer = asyncio.run(related(database, f"which cache? {words}", position))
    assert ids(answer)[0] == chain.id
    exact = asyncio.run(related(database, f"The cache {words} is cold.", position))
    assert ids(exact)[0] == chain.id


def test_another_generation_is_promoted_and_is_the_same(database, writer, reader):
    record_chain(writer, "one", "two")
    caught_up(database)
    old = tables(reader, "live")
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        number = 1 + max(
            row["number"]
            for row in rows(reader, "projections", "generations")
            if row["name"] == "thoughts"
        )
        generation = build(connection, Thoughts(), number)
        catch_up(leader_of(connection, generation))

        promote(connection, generation)

    assert find_live(reader, "thoughts").schema == generation.schema
    assert tables(reader, "live") == old


def leader_of(connection, generation):
    follower = Follower(connection, Thoughts(), generation)
    follower.lead()
    return follower


def test_who_listens_is_woken_by_an_append(writer, reader):
    reader.execute(log.LISTEN_TO_APPENDS)

    record_chain(writer, "one")

    (told, *_) = reader.notifies(timeout=SECONDS_MAX, stop_after=1)
    assert told.channel == "ledger_events"


def test_a_worker_follows(database, writer, reader):
    with running_worker(database) as worker:
        worker.hear("leads")
        chain = chain_of("one")

        assert wait_for(reader, "thoughts", record(writer, chain), SECONDS_MAX)


def test_each_role_is_refused_what_it_may_not(database):
    caught_up(database)
    with database.reach() as superuser:
        for role in Role:
            superuser.execute("RESET SESSION AUTHORIZATION")
            superuser.execute(
                sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(role.value))
            )
            others = [f"SET ROLE {other}" for other in set(Role) - {role} - INCLUDES[role]]
            models = [] if role is Role.PROJECTOR else list(WRITES_TO_READ_MODELS.values())
            for refused in [*NOBODY_MAY.values(), *others, *models]:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    superuser.execute(refused)


@pytest.mark.parametrize(
    ("source", "target"), [("16", "18"), ("18", "16"), ("embedded", "16"), ("16", "embedded")]
)
def test_a_backup_moves_from_one_to_the_other(servers, tmp_path, source, target):
    with ExitStack() as stack:
        database, other = (
            stack.enter_context(a_place(servers, name, tmp_path)) for name in (source, target)
        )
        with closing(open_writer(database)) as writer:
            record_chain(writer, "one", "two")
        caught_up(database)
        take_backup(database, tmp_path / "backup", taken_by="tester")

        restore_backup(other, tmp_path / "backup")

        assert read_models(other) == read_models(database)
        with closing(open_writer(other)) as writer:
            record_chain(writer, "life goes on")
        caught_up(other)
        assert len(read_models(other)["thoughts"]) == 3


def open_writer(database):
    database.open()
    return database.connector(Role.WRITER).connect()


def read_models(database):
    with closing(database.connector(Role.READER).connect()) as connection:
        return tables(connection, "live")


@contextmanager
def a_place(servers, name, tmp_path):
    """A database with nothing in it, not opened."""
    if name != "embedded":
        with servers(name).database() as url:
            yield Database(Settings(database_url=url))
        return
    database = Database(Settings(data_dir=tmp_path / "ledger"))
    try:
        yield database
    finally:
        database.close()
