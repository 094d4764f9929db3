"""Two generations are compared at one position, by rows and by digests."""

import pytest

from projections.candidate import open_candidate
from projections.catalogue import ALL
from projections.errors import NoLiveGenerationError
from projections.generations import begin, ensure_live
from projections.operations import compared, compared_to, promote_generation
from projections.thoughts import Thoughts
from projections.wait import wait_for
from tests.postgres.projecting import (
    SECONDS_MAX,
    NextThoughts,
    catch_up,
    follow,
    record_chain,
    running_worker,
)


@pytest.fixture
def two(connector, writer, projector):
    """The same two chains in the live generation and in one beside it."""
    follower = follow(projector)
    for text in ("one", "two"):
        record_chain(writer, text)
        catch_up(follower)
    with open_candidate(connector, Thoughts()) as candidate:
        candidate.build_up()
    return candidate.generation


def differences(connector, other, samples=5):
    with compared(connector, Thoughts(), other) as comparison:
        return {table.table: table for table in comparison.differences(samples)}


def digests(connector, other):
    with compared(connector, Thoughts(), other) as comparison:
        return comparison.digests(comparison.live), comparison.digests(comparison.other)


def test_equal_ones_differ_in_nothing(connector, two):
    found = differences(connector, two)

    assert all(table.is_equal for table in found.values())
    assert [(table.live_rows, table.other_rows) for table in found.values()] == [(2, 2)] * 3
    assert [table.samples for table in found.values()] == [[], [], []]


def test_rows_that_differ_are_counted_and_shown(connector, two, projector):
    projector.execute("UPDATE thoughts_g2.thoughts SET abandoned = true WHERE thought = 'one'")
    projector.execute("DELETE FROM thoughts_g2.memories WHERE text = 'one'")
    projector.execute("DELETE FROM thoughts_g1.thought_chains")

    found = differences(connector, two)

    thoughts, memories, chains = (
        found[name] for name in ("thoughts", "memories", "thought_chains")
    )
    assert (thoughts.added, thoughts.removed, thoughts.changed) == (0, 0, 1)
    assert thoughts.changed_columns == {"abandoned": 1}
    assert [(row.live, row.other) for row in thoughts.samples] == [
        ({"abandoned": False}, {"abandoned": True})
    ]
    assert (memories.added, memories.removed, memories.changed) == (0, 1, 0)
    assert [(row.live["text"], row.other) for row in memories.samples] == [("one", None)]
    assert (chains.live_rows, chains.other_rows, chains.added) == (0, 2, 2)
    assert [row.live for row in chains.samples] == [None, None]
    assert not any(table.is_equal for table in found.values())


def test_no_more_rows_are_shown_than_asked_for(connector, two, projector):
    projector.execute("UPDATE thoughts_g2.thoughts SET total_thoughts = 7")

    found = differences(connector, two, samples=1)

    assert found["thoughts"].changed == 2
    assert len(found["thoughts"].samples) == 1


def test_other_columns_and_tables_are_named(connector, two, projector):
    projector.execute("ALTER TABLE thoughts_g2.thoughts ADD COLUMN added_here int DEFAULT 1")
    projector.execute("ALTER TABLE thoughts_g2.thoughts DROP COLUMN critique")
    projector.execute("ALTER TABLE thoughts_g2.thoughts ALTER COLUMN total_thoughts TYPE int")
    projector.execute("CREATE TABLE thoughts_g2.more (id int PRIMARY KEY)")

    found = differences(connector, two)

    thoughts = found["thoughts"]
    assert thoughts.columns_added == ["added_here"]
    assert thoughts.columns_removed == ["critique"]
    assert thoughts.columns_retyped == ["total_thoughts"]
    assert (thoughts.added, thoughts.removed, thoughts.changed) == (0, 0, 0)
    assert (found["more"].live_rows, found["more"].other_rows) == (None, 0)
    assert not thoughts.is_equal
    assert not found["more"].is_equal


def test_digests_do_not_depend_on_the_order_rows_lie_in(connector, two, projector):
    projector.execute("UPDATE thoughts_g1.thoughts SET thought = thought WHERE sequence = 1")

    live, other = digests(connector, two)

    assert live == other
    assert [table.table for table in live] == ["memories", "thought_chains", "thoughts"]
    assert {table.rows for table in live} == {2}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE thoughts_g2.thoughts SET critique = '' WHERE thought = 'one'",
        "UPDATE thoughts_g2.memories SET created_at = created_at + interval '1 microsecond'",
        "DELETE FROM thoughts_g2.thought_chains",
    ],
)
def test_digests_notice_any_change(connector, two, projector, change):
    projector.execute(change)

    live, other = digests(connector, two)

    assert sum(one != another for one, another in zip(live, other, strict=True)) == 1


@pytest.mark.parametrize("projection", ALL, ids=lambda projection: projection.name)
def test_both_are_brought_to_one_position_while_others_write(
    connector, database, writer, reader, projection
):
    with running_worker(database, projection) as worker:
        worker.hear("leads")
        record_chain(writer, "one")
        with open_candidate(connector, projection) as candidate:
            candidate.build_up()
            record_chain(writer, "two")

            with compared_to(connector, candidate) as comparison:
                record_chain(writer, "three")

                assert comparison.is_even
                assert all(table.is_equal for table in comparison.differences(5))


def test_one_that_a_worker_keeps_up_is_compared_too(connector, database, writer, two):
    with running_worker(database) as worker:
        worker.hear("leads thoughts_g1")
        promote_generation(connector, Thoughts())
        worker.hear("leads thoughts_g2")
        kept = two._replace(id=two.id - 1, number=1, schema="thoughts_g1", state="kept")
        record_chain(writer, "three")

        with compared(connector, Thoughts(), kept) as comparison:
            assert comparison.is_even
            assert (comparison.live.number, comparison.other.number) == (2, 1)


def test_when_nobody_keeps_the_live_one_up_it_is_said_where_both_are(connector, two, writer):
    record_chain(writer, "three")

    with compared(connector, Thoughts(), two) as comparison:
        assert not comparison.is_even
        assert (comparison.live_position, comparison.other_position) == (4, 6)


def test_one_of_another_version_is_compared_as_it_is(connector, two):
    promote_generation(connector, Thoughts(), number=two.number)
    kept = two._replace(id=two.id - 1, number=1, schema="thoughts_g1", state="kept")

    with compared(connector, NextThoughts(), kept) as comparison:
        assert all(table.is_equal for table in comparison.differences(5))


def test_without_a_live_one_there_is_nothing_to_compare_with(connector, projector):
    ensure_live(projector, Thoughts())
    other = begin(projector, Thoughts())
    projector.execute("DROP SCHEMA thoughts_g1 CASCADE")

    with pytest.raises(NoLiveGenerationError):
        differences(connector, other)


def test_the_snapshot_keeps_no_worker_waiting(connector, database, writer, two, reader):
    with running_worker(database) as worker:
        worker.hear("leads")
        with compared(connector, Thoughts(), two) as comparison:
            record_chain(writer, "three")

            assert wait_for(reader, "thoughts", 6, SECONDS_MAX)
            assert comparison.live_position == 4
