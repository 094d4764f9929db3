"""The read model of chains and thoughts, in a real database."""

import hashlib
from contextlib import closing
from uuid import uuid4, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from projections.identity import MEMORY_NAMESPACE
from tests.postgres.histories import Histories, steps
from tests.postgres.projecting import catch_up, follow, record, record_chain, rows, tables, thought


@pytest.fixture
def lived(projector):
    """Generation 1, which readers see."""
    return follow(projector)


@pytest.fixture
def batched(database, lived):
    """Generation 2, beside it."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        yield follow(connection, number=2)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(steps(), min_size=8, max_size=40), data=st.data())
def test_batches_of_any_size_come_to_what_one_event_at_a_time_comes_to(
    writer, reader, lived, batched, history, data
):
    # The log cannot be emptied: each example goes on from the one before.
    histories = Histories(writer)
    histories.play(history)

    catch_up(lived, limit=1)
    while batched.step(data.draw(st.integers(1, histories.events + 1))):
        pass

    chains = {chain.id: chain for chain in histories.chains.values()}
    expected = _tables_of(lived, chains)
    assert _tables_of(batched, chains) == expected
    thoughts, chains_shown, memories = expected
    assert _linked(memories, "thought_id", "id") == _linked(thoughts, "id", "memory_id")
    assert _claims(thoughts, chains_shown) == {
        id_: _claims_of(chain) for id_, chain in chains.items()
    }


def test_a_thought_is_shown_with_all_it_was_recorded_with(writer, lived, reader):
    chain = ThoughtChain.start(uuid4(), title="which\0index?", session_id="s")
    thought_id = uuid4()
    said = thought("a\0b", confidence_millionths=250_000, assumptions=("x\0", "y"), critique="weak")
    chain.add_thought(thought_id, said)
    position = record(writer, chain)

    catch_up(lived)

    (shown,) = rows(reader, "live", "thoughts")
    assert shown["id"] == thought_id
    assert shown["thought"] == "a\ufffdb"
    assert shown["content_hash"] == hashlib.sha256(b"a\0b").digest()
    assert shown["memory_id"] == uuid5(MEMORY_NAMESPACE, str(thought_id))
    assert shown["confidence_millionths"] == 250_000
    assert shown["assumptions"] == ["x\ufffd", "y"]
    assert shown["critique"] == "weak"
    assert (shown["agent"], shown["client"], shown["tenant"]) == ("ada", "cursor", "default")
    assert shown["position"] == position
    (row,) = rows(reader, "live", "thought_chains")
    assert (row["title"], row["session_id"], row["thought_count"]) == ("which\ufffdindex?", "s", 1)


def test_a_thought_is_remembered_with_its_text_and_what_its_author_gave(writer, lived, reader):
    chain = ThoughtChain.start(uuid4(), title="t")
    thought_id = uuid4()
    chain.add_thought(thought_id, thought("a\0b", metadata='{"a": "\\u0000"}'))
    position = record(writer, chain)

    catch_up(lived)

    (shown,) = rows(reader, "live", "thoughts")
    (memory,) = rows(reader, "live", "memories")
    assert memory == {
        "id": shown["memory_id"],
        "text": "a\ufffdb",
        "source_type": "thought",
        "content_hash": shown["content_hash"],
        "chain_id": chain.id,
        "thought_id": thought_id,
        "tenant": "default",
        "metadata": '{"a": "\\u0000"}',
        "created_at": shown["created_at"],
        "position": position,
    }


def test_what_hangs_under_a_dead_end_is_abandoned_before_and_after_it_was_given_up(
    writer, lived, reader
):
    chain = ThoughtChain.start(uuid4(), title="t")
    root, dead, under, beside, later = (uuid4() for _ in range(5))
    for thought_id, parent_id in ((root, None), (dead, root), (under, dead), (beside, root)):
        chain.add_thought(thought_id, thought(parent_thought_id=parent_id))
    chain.abandon_thought(dead)
    record(writer, chain)
    catch_up(lived)
    chain.add_thought(later, thought(parent_thought_id=under))
    record(writer, chain)

    catch_up(lived)

    abandoned = {row["id"] for row in rows(reader, "live", "thoughts") if row["abandoned"]}
    assert abandoned == {dead, under, later}


def test_a_thought_knows_the_latest_one_that_revises_it(writer, lived, reader):
    chain = ThoughtChain.start(uuid4(), title="t")
    first, second, third = uuid4(), uuid4(), uuid4()
    chain.add_thought(first, thought(number=1))
    chain.add_thought(second, thought(number=2, is_revision=True, revises_thought_number=1))
    record(writer, chain)
    catch_up(lived)
    chain.add_thought(third, thought(number=3, is_revision=True, revises_thought_number=1))
    record(writer, chain)

    catch_up(lived)

    revised_by = {
        row["id"]: row["revised_by_thought_id"] for row in rows(reader, "live", "thoughts")
    }
    assert revised_by == {first: third, second: None, third: None}


def test_a_chains_row_follows_its_life(writer, lived, reader):
    chain = record_chain(writer, "one")
    statuses = []
    for move in (
        chain.pause,
        chain.resume,
        lambda: chain.complete(conclusion="so\0"),
        chain.resume,
        chain.abandon,
    ):
        move()
        record(writer, chain)
        catch_up(lived)
        (row,) = rows(reader, "live", "thought_chains")
        statuses.append((row["status"], row["version"], row["conclusion"]))

    assert statuses == [
        ("paused", 3, None),
        ("active", 4, None),
        ("completed", 5, "so\ufffd"),
        ("active", 6, "so\ufffd"),
        ("abandoned", 7, "so\ufffd"),
    ]


def test_large_thoughts_are_read_in_small_batches_and_all_arrive(writer, lived, reader):
    record_chain(writer, *("x" * 2**20 for _ in range(20)))

    assert lived.step() < 20
    catch_up(lived)

    assert len(rows(reader, "live", "thoughts")) == 20


def _tables_of(follower, chain_ids):
    """The rows of some chains, in a generation."""
    found = tables(follower._connection, follower._generation.schema)
    return (
        [row for row in found["thoughts"] if row["chain_id"] in chain_ids],
        [row for row in found["thought_chains"] if row["id"] in chain_ids],
        [row for row in found["memories"] if row["chain_id"] in chain_ids],
    )


def _linked(rows, thought_id, memory_id):
    return {(row[thought_id], row[memory_id], row["content_hash"]) for row in rows}


def _claims(thoughts, chains):
    """What the rows say that a chain can be asked as well."""
    claims = {
        row["id"]: (row["status"], row["version"], row["thought_count"], {}) for row in chains
    }
    for row in thoughts:
        claims[row["chain_id"]][3][row["sequence"]] = (row["id"], row["abandoned"])
    return claims


def _claims_of(chain):
    steps_taken = {
        sequence: (step.thought_id, chain.steps.is_abandoned(step.thought_id))
        for sequence, step in enumerate(chain.steps.recorded, start=1)
    }
    return (str(chain.status), chain.version, chain.thought_count, steps_taken)
