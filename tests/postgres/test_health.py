"""What ``doctor`` sees, on databases that really are well, or really are not."""

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from ledger import health_log, health_server
from ledger.database import DatabaseUnavailableError, Role
from ledger.health import State, examine, looking
from ledger.settings import Settings
from projections import health
from projections.catalogue import ALL
from projections.cli_doctor import CHECKS
from projections.generations import begin, ensure_live
from projections.operations import promote_generation
from projections.thoughts import Thoughts
from projections.workers import catch_up_all
from tests.acceptance.product import eventually
from tests.postgres.projecting import (
    SECONDS_MAX,
    NextTerms,
    NextThoughts,
    follow,
    record_chain,
    running_worker,
)

CREATE_BACKUPS = """
    CREATE TABLE IF NOT EXISTS ledger.backups (
        taken_at timestamptz, head_position bigint, events bigint, bytes bigint,
        log_only boolean, taken_by text
    );
    GRANT SELECT ON ledger.backups TO thought_ledger_reader
"""
INSERT_BACKUP = """
    INSERT INTO ledger.backups (taken_at, head_position, events, bytes, log_only, taken_by)
    VALUES (now() - %s, 0, 0, 0, false, 'somebody')
"""
CLOSE_APPEND = """
    REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ledger FROM PUBLIC, thought_ledger_writer
"""
REFUSE_NOTHING = """
    CREATE OR REPLACE FUNCTION ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN RETURN NULL; END'
"""


def seen(url, checks=CHECKS):
    """What is found, by check; of several findings of a check the worst."""
    order = list(State)
    with looking(Settings(database_url=url)) as look:
        found = sorted(examine(look, checks), key=lambda finding: order.index(finding.state))
    return {finding.check: finding for finding in found}


def states(url, checks=CHECKS):
    return {check: finding.state for check, finding in seen(url, checks).items()}


def failures(url):
    return {check for check, state in states(url).items() if state is State.FAILED}


@contextmanager
def connected(url, **words):
    with psycopg.connect(make_conninfo(url, **words), autocommit=True) as connection:
        yield connection


def test_nothing_has_failed_on_a_fresh_ledger_and_a_worker_makes_all_but_the_backup_well(
    database, database_url, writer
):
    assert failures(database_url) == set()
    record_chain(writer, "one")
    catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX)
    with ExitStack() as workers:
        for projection in ALL:
            workers.enter_context(running_worker(database, projection)).hear("leads")

        found = states(database_url)

    assert {check for check, state in found.items() if state is not State.OK} == {"backup"}


def test_looking_changes_nothing(database_url):
    with (
        looking(Settings(database_url=database_url)) as look,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        look.connection.execute("CREATE TABLE public.mine ()")


def test_what_is_not_migrated_is_said_and_left_so(server, database_url, admin):
    admin.execute("CREATE DATABASE not_migrated")
    url = server.conninfo(dbname="not_migrated")
    try:
        found = seen(url)
        with connected(url) as connection:
            schemas = connection.execute(
                "SELECT count(*) FROM pg_namespace WHERE nspname = 'ledger'"
            ).fetchone()
    finally:
        admin.execute("DROP DATABASE not_migrated WITH (FORCE)")

    assert schemas == (0,)
    wrong = {check for check, finding in found.items() if finding.state is State.FAILED}
    assert wrong == {"pgvector", "migrations", "triggers", "functions", "owner", "grants"}


def test_without_a_database_it_cannot_look():
    with (
        pytest.raises(DatabaseUnavailableError),
        looking(Settings(database_url="postgresql://nobody@127.0.0.1:1/none")),
    ):
        pass


# The log


@pytest.mark.parametrize(
    ("check", "damage"),
    [
        ("pgvector", "UPDATE pg_extension SET extversion = '0.8.3' WHERE extname = 'vector'"),
        ("pgvector", "DROP EXTENSION vector CASCADE"),
        ("migrations", "DELETE FROM ledger.migrations WHERE name LIKE '0002%'"),
        ("migrations", "UPDATE ledger.migrations SET digest = 'other'"),
        ("migrations", "INSERT INTO ledger.migrations VALUES ('9999_next.sql', '')"),
        ("triggers", "ALTER TABLE ledger.events DISABLE TRIGGER refuse_change"),
        ("triggers", "ALTER TABLE ledger.requests ENABLE REPLICA TRIGGER refuse_change"),
        ("triggers", "DROP TRIGGER refuse_change ON ledger.events"),
        ("triggers", "DROP TABLE ledger.requests"),
        ("triggers", "ALTER DATABASE {database} SET session_replication_role = replica"),
        ("functions", REFUSE_NOTHING),
        ("functions", "DROP FUNCTION ledger.refuse_change CASCADE; " + REFUSE_NOTHING),
        ("owner", "ALTER TABLE ledger.events OWNER TO postgres"),
        ("owner", "ALTER SCHEMA ledger OWNER TO postgres"),
        ("grants", "REVOKE INSERT ON ledger.events FROM thought_ledger_writer"),
        ("grants", "REVOKE SELECT ON ledger.events FROM thought_ledger_projector"),
        ("grants", "REVOKE USAGE ON SCHEMA ledger FROM thought_ledger_projector"),
        ("grants", CLOSE_APPEND),
        ("grants", "GRANT UPDATE ON ledger.events TO thought_ledger_writer"),
        ("grants", "GRANT UPDATE (state) ON ledger.events TO thought_ledger_writer"),
        ("grants", "GRANT INSERT ON ledger.requests TO thought_ledger_reader"),
        ("grants", "GRANT DELETE ON ledger.events TO PUBLIC"),
        ("durability", "ALTER DATABASE {database} SET synchronous_commit = off"),
        ("grants", "REVOKE CREATE ON DATABASE {database} FROM thought_ledger_projector"),
    ],
)
def test_what_is_wrong_with_the_log_is_a_failure(admin, database_url, check, damage):
    assert seen(database_url)[check].state is State.OK

    admin.execute(damage.format(database=admin.info.dbname))

    finding = seen(database_url)[check]
    assert finding.state is State.FAILED
    assert finding.todo


@pytest.fixture
def whole_server(admin):
    """For what belongs to all databases: undone afterwards."""
    yield admin
    for statement in (
        "ALTER ROLE thought_ledger_writer NOSUPERUSER",
        "ALTER ROLE thought_ledger_owner NOLOGIN",
        "REVOKE thought_ledger_owner FROM thought_ledger_projector",
        "ALTER ROLE thought_ledger_writer RESET synchronous_commit",
        "DROP ROLE IF EXISTS stranger",
    ):
        admin.execute(statement)


@pytest.mark.parametrize(
    ("check", "damage"),
    [
        ("roles", "ALTER ROLE thought_ledger_writer SUPERUSER"),
        ("roles", "ALTER ROLE thought_ledger_owner LOGIN"),
        ("roles", "GRANT thought_ledger_owner TO thought_ledger_projector"),
        ("durability", "ALTER ROLE thought_ledger_writer SET synchronous_commit = off"),
    ],
)
def test_what_is_wrong_with_the_roles_is_a_failure(whole_server, database_url, check, damage):
    assert seen(database_url)[check].state is State.OK

    whole_server.execute(damage)

    finding = seen(database_url)[check]
    assert finding.state is State.FAILED
    assert finding.todo


def test_an_extension_that_could_be_newer_is_a_warning(admin, database_url):
    admin.execute("UPDATE pg_extension SET extversion = '0.8.4' WHERE extname = 'vector'")

    assert "ALTER EXTENSION" in seen(database_url)["pgvector"].todo
    assert states(database_url)["pgvector"] is State.WARNING


def test_what_this_login_may_not_see_is_said_and_the_rest_is_looked_at(
    whole_server, database_url, admin
):
    admin.execute("CREATE ROLE stranger LOGIN")

    found = seen(make_conninfo(database_url, user="stranger"))

    assert "may not see" in found["migrations"].fact
    assert {found[check].state for check in ("migrations", "read models")} == {State.WARNING}
    assert {found[check].state for check in ("postgresql", "durability", "roles")} == {State.OK}


def test_a_table_that_somebody_has_locked_does_not_hang_it(admin, database_url):
    with admin.transaction():
        admin.execute("LOCK TABLE ledger.migrations IN ACCESS EXCLUSIVE MODE")

        finding = seen(database_url, health_log.CHECKS)["migrations"]

    assert finding.state is State.WARNING


@pytest.mark.parametrize(
    ("taken_at", "state"),
    [
        (None, State.WARNING),
        (timedelta(days=3), State.WARNING),
        (timedelta(hours=5), State.OK),
    ],
)
def test_the_age_of_the_last_backup(admin, database_url, taken_at, state):
    assert states(database_url)["backup"] is State.WARNING
    admin.execute(CREATE_BACKUPS)
    if taken_at is not None:
        admin.execute(INSERT_BACKUP, (taken_at,))

    assert states(database_url)["backup"] is state


# The server


def test_a_database_of_another_encoding_is_a_failure(server, admin):
    admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        found = states(server.conninfo(dbname="latin"), health_server.CHECKS)
    finally:
        admin.execute("DROP DATABASE latin WITH (FORCE)")

    assert found["encoding"] is State.FAILED


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_flush_is_a_failure(admin, database_url, setting):
    def turned(value):
        with connected(database_url) as connection:
            return connection.execute(f"SHOW {setting}").fetchone() == (value,)

    admin.execute(f"ALTER SYSTEM SET {setting} = off")
    try:
        admin.execute("SELECT pg_reload_conf()")
        eventually(lambda: turned("off"), SECONDS_MAX)

        finding = seen(database_url)["durability"]
    finally:
        admin.execute(f"ALTER SYSTEM RESET {setting}")
        admin.execute("SELECT pg_reload_conf()")
        eventually(lambda: turned("on"), SECONDS_MAX)

    assert finding.state is State.FAILED
    assert setting in finding.fact


@pytest.mark.parametrize("seconds", [-5, 5])
def test_a_clock_that_is_off_is_a_warning(database_url, seconds):
    with looking(Settings(database_url=database_url)) as look:
        wrong = replace(look, now=lambda: datetime.now(UTC) + timedelta(seconds=seconds))

        found = {finding.check: finding for finding in examine(wrong, health_server.CHECKS)}

    assert found["clock"].state is State.WARNING
    assert ("ahead" if seconds < 0 else "behind") in found["clock"].fact


def test_a_disk_that_is_full_is_a_failure(database_url):
    with looking(Settings(database_url=database_url)) as look:
        # A file system that never has any room.
        full = replace(look, data_dir=Path("/proc"))

        found = {finding.check: finding for finding in examine(full, health_server.CHECKS)}

    assert found["disk"].state is State.FAILED


def test_few_connections_left_are_a_warning(admin, database_url):
    with ExitStack() as many:
        for _ in range(325):
            many.enter_context(connected(database_url))

        assert states(database_url, health_server.CHECKS)["connections"] is State.WARNING


# The read models


class FaultyThoughts(Thoughts):
    """Cannot take up a thought that says so."""

    def changes(self, batch):
        if any("poison" in getattr(recorded.event, "text", "") for recorded in batch):
            raise ValueError("poison")
        return super().changes(batch)


def test_a_backlog_that_nobody_works_on_is_a_failure(database, database_url, writer):
    record_chain(writer, "one")
    catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX)
    assert states(database_url, health.CHECKS)["read models"] is State.WARNING  # nobody leads

    record_chain(writer, "two")

    finding = seen(database_url, health.CHECKS)["read models"]
    assert finding.state is State.FAILED
    assert "2 events" in finding.fact


def test_a_leader_that_falls_behind_is_a_warning(database, database_url, writer, admin):
    catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX)
    with ExitStack() as leaders:
        for projection in ALL:
            connection = leaders.enter_context(database.connector(Role.PROJECTOR).connect())
            follow(connection, projection)  # and does nothing
        record_chain(writer, "one")
        admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
        admin.execute("UPDATE ledger.events SET recorded_at = recorded_at - interval '1 hour'")

        assert states(database_url, health.CHECKS)["read models"] is State.WARNING


def test_a_generation_of_another_version_is_a_failure(projector, database_url):
    ensure_live(projector, NextTerms())

    finding = seen(database_url, health.CHECKS)["versions"]

    assert finding.state is State.FAILED
    assert "upgrade" in finding.todo


def test_an_older_generation_is_a_failure_only_when_nobody_keeps_it_up(
    database, database_url, projector, monkeypatch
):
    ensure_live(projector, Thoughts())
    monkeypatch.setattr(health, "ALL", (NextThoughts(),))

    alone = seen(database_url, health.CHECKS)["versions"]
    with running_worker(database) as worker:
        worker.hear("leads")
        kept_up = seen(database_url, health.CHECKS)["versions"]

    assert (alone.state, kept_up.state) == (State.FAILED, State.WARNING)
    assert "projections rebuild thoughts" in alone.todo


def test_a_read_model_further_than_the_log_is_a_failure(database, database_url, writer, projector):
    record_chain(writer, "one")
    catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX)
    projector.execute("UPDATE thoughts_g1.checkpoint SET position = 999")

    finding = seen(database_url, health.CHECKS)["read models"]

    assert finding.state is State.FAILED
    assert "rebuild thoughts --fresh --promote" in finding.todo


def test_what_is_forgotten_beside_the_live_ones_is_a_warning(database, database_url, projector):
    ensure_live(projector, Thoughts())
    assert seen(database_url, health.CHECKS)["generations"].state is State.OK
    begin(projector, Thoughts())

    building = seen(database_url, health.CHECKS)["generations"]
    promote_generation(database.connector(Role.PROJECTOR), Thoughts())
    kept = seen(database_url, health.CHECKS)["generations"]

    assert (building.state, kept.state) == (State.WARNING, State.WARNING)
    assert "--generation 2" in building.todo
    assert "--generation 1" in kept.todo


def test_a_parked_chain_is_a_failure(database, database_url, writer):
    with running_worker(database, FaultyThoughts()) as worker:
        record_chain(writer, "poison")
        worker.hear("parked chain")

    finding = seen(database_url, health.CHECKS)["parked"]

    assert finding.state is State.FAILED
    assert "projections parked thoughts" in finding.todo


def test_the_dates_of_a_database_do_not_matter(database_url, admin, writer):
    record_chain(writer, "one")
    admin.execute(
        "INSERT INTO ledger.backups (taken_at, head_position, events, bytes, log_only, taken_by)"
        " VALUES (now(), 2, 2, 1, false, 'ada')"
    )
    admin.execute(f"ALTER DATABASE {admin.info.dbname} SET DateStyle = 'SQL, DMY'")

    found = states(database_url)

    assert (found["clock"], found["backup"]) == (State.OK, State.OK)
