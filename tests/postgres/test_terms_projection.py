"""The read model of search, in a real database."""

from contextlib import closing
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from projections.terms import Terms
from projections.tokens import terms_of
from tests.postgres.histories import Histories, steps
from tests.postgres.projecting import catch_up, follow, record, record_chain, rows, thought


@pytest.fixture
def lived(projector):
    """Generation 1, which readers see."""
    return follow(projector, Terms())


@pytest.fixture
def batched(database, lived):
    """Generation 2, beside it."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        yield follow(connection, Terms(), number=2)


def tables(connection, schema):
    found = {name: rows(connection, schema, name) for name in Terms.tables}
    found["terms"].sort(key=lambda row: (row["term"], row["tenant"], row["block"]))
    return found


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(steps(), min_size=8, max_size=40), data=st.data())
def test_batches_of_any_size_come_to_what_one_event_at_a_time_comes_to(
    writer, admin, lived, batched, history, data
):
    # The log cannot be emptied: each example goes on from the one before.
    histories = Histories(writer)
    histories.play(history)

    catch_up(lived, limit=1)
    while batched.step(data.draw(st.integers(1, histories.events + 1))):
        pass

    found = tables(admin, "terms_g1")
    assert found == tables(admin, "terms_g2")
    (total,) = found["term_totals"]
    assert total["texts"] == len(found["term_texts"])
    assert total["terms"] == sum(
        times for row in found["terms"] for times in (bits >> 16 & 63 for bits in row["entries"])
    )


def test_entries_of_many_batches_are_in_the_order_of_the_log(writer, reader, lived):
    for _ in range(300):
        record_chain(writer, "the cache")

    catch_up(lived, limit=7)

    said = [row for row in tables(reader, "live")["terms"] if row["term"] == "cache"]
    positions = [(row["block"] << 8) + (bits >> 22) for row in said for bits in row["entries"]]
    assert positions == [2 * number for number in range(1, 301)]


def test_the_longest_thought_and_the_strangest_are_taken_up(writer, reader, lived):
    texts = ["x" * 2**20, "\0", "\ufdfa" * 1_000, "\\ {} \" ' , %s %(a)s", "\u0301" * 100]
    chain = ThoughtChain.start(uuid4(), title="")
    for number, text in enumerate(texts, 1):
        chain.add_thought(uuid4(), thought(text, number))
    record(writer, chain)

    catch_up(lived)

    assert rows(reader, "live", "terms_checkpoint")[0]["position"] == 6
    assert rows(reader, "terms_g1", "parked") == []
    expected = {term for text in texts for term in terms_of(text)}
    assert {row["term"] for row in tables(reader, "live")["terms"]} == expected
