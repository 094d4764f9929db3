"""A generation is built beside the live one, whatever interrupts it, and comes out the same."""

from contextlib import closing

import pytest

from ledger.database import Role
from ledger.log import head
from projections.candidate import open_candidate
from projections.catalogue import ALL
from projections.errors import BeingBuiltError, ProjectionVersionError
from projections.generations import ensure_live
from projections.thoughts import Thoughts
from tests.postgres.projecting import (
    NextThoughts,
    catch_up,
    follow,
    record_chain,
    rows,
)

SELECT_INDEXES = "SELECT indexname FROM pg_indexes WHERE schemaname = %s ORDER BY indexname"


class InterruptedBuildError(Exception):
    """The build was ended from outside."""


def record_chains(writer, count=12):
    for number in range(count):
        record_chain(writer, *(f"{number}, {place}" for place in range(3)))


def contents(connection, schema, tables):
    return {table: rows(connection, schema, table) for table in tables}


@pytest.mark.parametrize("projection", ALL, ids=lambda projection: projection.name)
def test_what_is_built_beside_equals_what_was_lived_through(
    connector, writer, projector, reader, admin, projection
):
    live = follow(projector, projection)
    for number in range(6):
        record_chain(writer, f"{number}", "because")
        catch_up(live, limit=1)

    with open_candidate(connector, projection) as candidate:
        events = candidate.build_up()

    one, other = (f"{projection.name}_g{number}" for number in (1, 2))
    assert events == 18
    assert candidate.position == head(reader) == live.position
    assert contents(admin, one, projection.tables) == contents(admin, other, projection.tables)
    indexes = [
        [name for (name,) in admin.execute(SELECT_INDEXES, (schema,)).fetchall()]
        for schema in (one, other)
    ]
    assert indexes[0] == indexes[1]


def test_readers_do_not_see_what_is_being_built(connector, writer, projector, reader):
    ensure_live(projector, Thoughts())
    record_chain(writer, "one")

    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up()

        assert rows(reader, "live", "thoughts") == []


def test_interrupted_it_goes_on_where_it_stopped(connector, writer, projector, admin):
    ensure_live(projector, Thoughts())
    record_chains(writer)

    def interrupt(progress):
        if progress.events:
            raise InterruptedBuildError

    with pytest.raises(InterruptedBuildError), open_candidate(connector, Thoughts()) as first:
        first.build_up(interrupt, events_per_second_max=10)
    with open_candidate(connector, Thoughts()) as second:
        assert (second.generation, second.position) == (first.generation, first.position)
        events = second.build_up()

    assert events == 48 - 10
    assert len(rows(admin, second.generation.schema, "thoughts")) == 36


def test_a_rate_is_kept_by_small_batches(connector, writer, projector):
    ensure_live(projector, Thoughts())
    record_chains(writer, count=3)
    seen = []

    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up(seen.append, events_per_second_max=60)
        candidate.build_up(seen.append, events_per_second_max=5)

    assert max(progress.events for progress in seen) == 12
    assert [progress.phase for progress in seen][:1] == ["events"]


def test_it_comes_to_a_position_and_no_further(connector, writer, projector):
    ensure_live(projector, Thoughts())
    record_chains(writer, count=2)

    with open_candidate(connector, Thoughts()) as candidate:
        assert candidate.reach(3, deadline=float("inf"))
        assert candidate.position == 3

        assert not candidate.reach(9, deadline=float("inf"))
        assert candidate.position == 8


def test_two_do_not_build_the_same(connector, projector):
    ensure_live(projector, Thoughts())

    with (
        open_candidate(connector, Thoughts()),
        pytest.raises(BeingBuiltError),
        open_candidate(connector, Thoughts()),
    ):
        pass


def test_a_generation_of_another_version_is_not_written_to(connector, projector):
    generation = ensure_live(projector, Thoughts())

    with (
        pytest.raises(ProjectionVersionError),
        open_candidate(connector, NextThoughts(), generation),
    ):
        pass


def test_what_is_recorded_meanwhile_is_in_it(connector, database, projector):
    ensure_live(projector, Thoughts())
    with closing(database.connector(Role.WRITER).connect()) as writer:
        record_chains(writer, count=2)

        def go_on(progress):
            if progress.phase == "indexes":
                record_chain(writer, "meanwhile")

        with open_candidate(connector, Thoughts()) as candidate:
            candidate.build_up(go_on)

    assert candidate.position == 10
