"""Some chains of a live read model are folded anew and compared, and nothing is left of it."""

import pytest

from projections.catalogue import ALL
from projections.errors import ProjectionVersionError
from projections.generations import ensure_live
from projections.sampling import sampled
from projections.terms import Terms
from projections.thoughts import Thoughts
from tests.postgres.projecting import (
    NextThoughts,
    catch_up,
    follow,
    record_chain,
)
from tests.postgres.test_follower import Stumbling

CHAINS = 6
SELECT_SCHEMAS = "SELECT array_agg(nspname ORDER BY nspname) FROM pg_namespace"


def digests(connector, projection, count=200):
    with sampled(connector, projection, count) as sample:
        comparison = sample.comparison
        live, fresh = map(comparison.digests, (comparison.live, comparison.other))
        return sample, live, fresh, comparison.differences(5)


@pytest.mark.parametrize("projection", ALL, ids=lambda projection: projection.name)
def test_chains_that_are_what_the_log_says_are_equal(
    connector, writer, projector, admin, projection
):
    follower = follow(projector, projection)
    for number in range(CHAINS):
        record_chain(writer, f"{number}", "because src/cache.py says so")
    catch_up(follower, limit=4)
    before = admin.execute(SELECT_SCHEMAS).fetchone()

    sample, live, fresh, differences = digests(connector, projection)

    assert len(sample.chains) == CHAINS
    assert live == fresh
    assert [table.table for table in live] == sorted(projection.chain_columns)
    assert any(table.rows for table in live)
    assert all(table.is_equal for table in differences)
    assert {*sample.uncovered, *projection.chain_columns} == set(projection.tables)
    assert admin.execute(SELECT_SCHEMAS).fetchone() == before


def test_no_more_chains_are_compared_than_asked_for(connector, writer, projector):
    follower = follow(projector)
    for number in range(CHAINS):
        record_chain(writer, f"{number}")
    catch_up(follower)

    sample, live, _, _ = digests(connector, Thoughts(), count=2)

    assert 1 <= len(sample.chains) <= 2
    assert {table.rows for table in live} == {len(sample.chains)}


def test_a_row_that_was_changed_is_found(connector, writer, projector):
    follower = follow(projector)
    record_chain(writer, "one")
    catch_up(follower)
    projector.execute("UPDATE live.memories SET text = 'another'")

    _, live, fresh, differences = digests(connector, Thoughts())

    assert live != fresh
    assert [table.table for table in differences if not table.is_equal] == ["memories"]


def test_a_row_that_is_missing_is_found(connector, writer, projector):
    follower = follow(projector, Terms())
    record_chain(writer, "one")
    catch_up(follower)
    projector.execute("DELETE FROM live.term_texts WHERE thought_id IS NOT NULL")

    _, _, _, (texts,) = digests(connector, Terms())

    assert (texts.added, texts.removed, texts.changed) == (1, 0, 0)


def test_what_is_recorded_and_not_yet_applied_is_no_difference(connector, writer, projector):
    follower = follow(projector)
    record_chain(writer, "one", "two")
    follower.step(2)

    _, live, fresh, _ = digests(connector, Thoughts())

    assert live == fresh
    assert {table.table: table.rows for table in live}["thoughts"] == 1


def test_a_parked_chain_is_left_out(connector, writer, projector):
    follower = follow(projector, Stumbling())
    record_chain(writer, "boom")
    whole = record_chain(writer, "whole")
    catch_up(follower)

    sample, live, fresh, _ = digests(connector, Thoughts())

    assert list(sample.chains) == [whole.id]
    assert live == fresh


def test_one_of_another_version_cannot_be_sampled(connector, projector):
    ensure_live(projector, Thoughts())

    with pytest.raises(ProjectionVersionError):
        digests(connector, NextThoughts())


def test_before_anything_is_recorded_there_is_nothing_to_compare(connector, projector):
    ensure_live(projector, Thoughts())

    sample, live, fresh, _ = digests(connector, Thoughts())

    assert list(sample.chains) == []
    assert live == fresh
