"""Generations are built once, by one of many, and readers see one of them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from ledger.database import Role
from projections.errors import (
    GenerationLiveError,
    GenerationNotFoundError,
    GrantMissingError,
    ProjectionVersionError,
)
from projections.generations import Switch, begin, build, ensure_live, find, retire
from projections.thoughts import Thoughts
from tests.postgres.projecting import (
    NextThoughts,
    catch_up,
    follow,
    record_chain,
    rows,
)


def test_of_many_workers_at_once_one_builds_the_first_generation(database):
    def ensure(_):
        with closing(database.connector(Role.PROJECTOR).connect()) as connection:
            return ensure_live(connection, Thoughts())

    with ThreadPoolExecutor(8) as pool:
        generations = set(pool.map(ensure, range(8)))

    (generation,) = generations
    assert (generation.schema, generation.state) == ("thoughts_g1", "live")


def test_a_generation_of_another_version_of_the_projection_is_refused(projector):
    ensure_live(projector, Thoughts())

    with pytest.raises(ProjectionVersionError) as refusal:
        ensure_live(projector, NextThoughts())

    versions = (refusal.value.built_version, refusal.value.version)
    assert versions == (Thoughts.version, NextThoughts.version)


def test_what_is_made_live_is_what_readers_see(writer, projector, reader):
    record_chain(writer, "one")
    catch_up(follow(projector))
    generation = begin(projector, Thoughts())
    assert len(rows(reader, "live", "thoughts")) == 1

    with projector.transaction():
        Switch(projector, generation).make()

    assert rows(reader, "live", "thoughts") == []
    states = {
        row["schema_name"]: row["state"] for row in rows(reader, "projections", "generations")
    }
    assert states == {"thoughts_g1": "kept", "thoughts_g2": "live"}
    announced = [
        rows(reader, schema, "checkpoint")[0]["announced"]
        for schema in ("thoughts_g1", "thoughts_g2")
    ]
    assert announced == [False, True]


def test_a_generation_that_is_not_there_is_not_found(projector):
    ensure_live(projector, Thoughts())

    with pytest.raises(GenerationNotFoundError):
        find(projector, "thoughts", 7)


def test_who_begins_again_goes_on_with_what_was_begun(projector):
    ensure_live(projector, Thoughts())

    first = begin(projector, Thoughts())
    of_another_version = begin(projector, NextThoughts())

    assert begin(projector, Thoughts()) == first
    assert (first.number, of_another_version.number) == (2, 3)


def test_what_is_retired_is_gone_and_what_is_live_stays(projector, reader):
    live = ensure_live(projector, Thoughts())
    generation = begin(projector, Thoughts())

    retire(projector, generation)

    assert reader.execute("SELECT to_regnamespace('thoughts_g2')").fetchone() == (None,)
    assert begin(projector, Thoughts()).number == 3
    with pytest.raises(GenerationLiveError):
        retire(projector, live)
    assert rows(reader, "live", "thoughts") == []


def test_dropping_the_schema_forgets_rows_and_position(admin, writer, projector, reader):
    record_chain(writer, "one")
    catch_up(follow(projector))
    admin.execute("DROP SCHEMA thoughts_g1 CASCADE")

    catch_up(follow(projector))

    assert len(rows(reader, "live", "thoughts")) == 1
    states = {
        row["schema_name"]: row["state"] for row in rows(reader, "projections", "generations")
    }
    assert states == {"thoughts_g1": "retired", "thoughts_g2": "live"}


def test_a_role_that_may_not_build_is_told_what_to_grant(admin, projector):
    name = admin.info.dbname
    admin.execute(f"REVOKE CREATE ON DATABASE {name} FROM thought_ledger_projector")

    with pytest.raises(GrantMissingError) as refusal:
        ensure_live(projector, Thoughts())

    assert refusal.value.database == name


def test_readers_may_read_what_is_live_and_change_nothing(projector, reader):
    ensure_live(projector, Thoughts())

    for statement in (
        "DELETE FROM live.thoughts",
        "UPDATE thoughts_g1.checkpoint SET position = 9",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(statement)


def test_columns_of_a_view_are_named_in_the_order_of_the_table(projector, reader):
    generation = build(projector, _with_registry(projector), 2)

    Switch(projector, generation).make()

    live, table = (
        [column.name for column in reader.execute(f"SELECT * FROM {name} LIMIT 0").description]
        for name in ("live.thoughts_checkpoint", "thoughts_g2.checkpoint")
    )
    assert live == table


def _with_registry(connection):
    ensure_live(connection, Thoughts())
    return Thoughts()
