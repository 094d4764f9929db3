"""The read model of entities and links, in a real database."""

import asyncio
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import FeedbackGiven
from ledger.header import Context
from ledger.recorder import repository
from projections.entities import Entities
from projections.entity_search import EntityQuestion, EntitySearch
from projections.live import LiveConnections
from projections.retrying import retry_all
from tests.postgres.histories import Histories, steps
from tests.postgres.parking import Buggy, contents
from tests.postgres.projecting import (
    catch_up,
    follow,
    record,
    record_chain,
    rows,
    running_worker,
    thought,
)

NAMES = ["src/a.py", "./src/a.py", "SRC/A.py", "`parse`", "parse()", "numpy==1.2", "so", "x.org/a"]
texts = st.lists(st.sampled_from(NAMES), max_size=4).map(" ".join)


@st.composite
def naming_steps(draw):
    number, verb, (detail, which) = draw(steps())
    if verb in ("think", "under"):
        detail = replace(detail, text=draw(texts))
    return number, verb, (detail, which)


@pytest.fixture
def lived(projector):
    """Generation 1, which readers see."""
    return follow(projector, Entities())


@pytest.fixture
def batched(database, lived):
    """Generation 2, beside it."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        yield follow(connection, Entities(), number=2)


def seen(connection, table):
    return rows(connection, "live", table)


def named(connection):
    return [(row["kind"], row["name"], row["written"]) for row in seen(connection, "entities")]


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(naming_steps(), min_size=8, max_size=40), data=st.data())
def test_batches_of_any_size_come_to_what_one_event_at_a_time_comes_to(
    writer, admin, lived, batched, history, data
):
    # The log cannot be emptied: each example goes on from the one before.
    histories = Histories(writer)
    histories.play(history)

    catch_up(lived, limit=1)
    while batched.step(data.draw(st.integers(1, histories.events + 1))):
        pass

    assert contents(admin, Entities(), "entities_g1") == contents(admin, Entities(), "entities_g2")


def test_an_entity_is_one_row_and_each_thought_that_names_it_another(writer, reader, lived):
    chain = record_chain(writer, "see ./src/a.py and src/a.py", "nothing", "src/a.py again")

    catch_up(lived)

    ((kind, name, written),) = named(reader)
    assert (kind, name, written) == ("file", "src/a.py", "./src/a.py")
    (entity,) = seen(reader, "entities")
    first, _, third = chain.steps.recorded
    mentions = sorted(seen(reader, "entity_mentions"), key=lambda row: row["position"])
    assert [
        (row["entity_id"], row["position"], row["chain_id"], row["thought_id"]) for row in mentions
    ] == [
        (entity["id"], 2, chain.id, first.thought_id),
        (entity["id"], 4, chain.id, third.thought_id),
    ]
    assert (entity["position"], entity["folded"], entity["short"]) == (2, "src/a.py", "a.py")


def test_a_title_names_nothing(writer, reader, lived):
    record(writer, ThoughtChain.start(uuid4(), title="see src/a.py"))

    catch_up(lived)

    assert named(reader) == []


def test_tenants_do_not_share_entities(writer, reader, lived):
    for tenant in ("one", "other"):
        chain = ThoughtChain.start(uuid4(), title="")
        chain.add_thought(uuid4(), thought("src/a.py"))
        context = Context(actor="ada", tenant=tenant)
        repository(writer, context).event_store.put(chain.collect())

    catch_up(lived)

    found = seen(reader, "entities")
    assert {row["tenant"] for row in found} == {"one", "other"}
    assert len({row["id"] for row in found}) == 2


def test_what_comes_late_and_is_the_earliest_says_how_it_is_written(writer, admin, projector):
    buggy = Buggy(Entities())
    leader = follow(projector, buggy)
    late, other = ThoughtChain.start(uuid4(), title=""), ThoughtChain.start(uuid4(), title="")
    late.add_thought(uuid4(), thought("./src/a.py"))
    other.add_thought(uuid4(), thought("src//a.py"))
    buggy.fail(late.id)
    record(writer, late, other)
    catch_up(leader)
    assert [written for *_, written in named(admin)] == ["src//a.py"]

    buggy.mend()
    assert all(each.parked is None for each in retry_all(admin, buggy))

    assert named(admin) == [("file", "src/a.py", "./src/a.py")]
    assert len(seen(admin, "entity_mentions")) == 2


def test_the_longest_thought_and_the_strangest_are_taken_up(writer, reader, lived):
    chain = ThoughtChain.start(uuid4(), title="")
    strange = ["a_b.py\0" * 2**17, "`\0\0`", "x" * 200 + "_file.py", '"Ä\u0301 Ö"', "%s {x_y_file}"]
    for number, text in enumerate(strange, 1):
        chain.add_thought(uuid4(), thought(text, number))
    record(writer, chain)

    catch_up(lived)

    assert rows(reader, "entities_g1", "parked") == []
    assert seen(reader, "entities_checkpoint")[0]["position"] == 6


# -- Links ----------------------------------------------------------------------------------------


def links(connection):
    fields = ("kind", "from_thought_id", "to_thought_id", "chain_id", "to_chain_id", "position")
    return [tuple(row[name] for name in fields) for row in seen(connection, "thought_links")]


def test_a_revision_supersedes_and_a_branch_is_derived_by_its_first_thought(writer, reader, lived):
    chain = ThoughtChain.start(uuid4(), title="")
    one, two, three, four, five = ids = [uuid4() for _ in range(5)]
    chain.add_thought(ids[0], thought("first", 1))
    chain.add_thought(ids[1], thought("again", 2, is_revision=True, revises_thought_number=1))
    branch = {"branch_id": "b", "branch_from_thought_number": 2}
    chain.add_thought(ids[2], thought("aside", 3, **branch))
    chain.add_thought(ids[3], thought("further", 4, **branch))
    other = {"branch_id": "c", "branch_from_thought_number": 1}
    chain.add_thought(
        ids[4], thought("anew", 5, **other, is_revision=True, revises_thought_number=3)
    )
    record(writer, chain)

    catch_up(lived)

    assert four not in {link[1] for link in links(reader)}
    assert {link[:3] for link in links(reader)} == {
        ("supersedes", two, one),
        ("derived_from", three, two),
        ("derived_from", five, one),
        ("supersedes", five, three),
    }
    assert {link[3:5] for link in links(reader)} == {(chain.id, chain.id)}


def test_what_refers_to_nothing_says_no_link(writer, reader, lived):
    chain = ThoughtChain.start(uuid4(), title="")
    chain.think(uuid4(), thought("no such", 1, is_revision=True, revises_thought_number=9))
    chain.think(uuid4(), thought("nor such", 2, branch_id="b", branch_from_thought_number=9))
    record(writer, chain)

    catch_up(lived)

    assert links(reader) == []


def test_a_chain_is_derived_from_the_chain_it_was_started_under(writer, reader, lived):
    parent = ThoughtChain.start(uuid4(), title="")
    child = ThoughtChain.start(uuid4(), title="", parent_chain_id=parent.id)
    position = record(writer, parent, child)

    catch_up(lived)

    assert links(reader) == [("derived_from", None, None, child.id, parent.id, position)]


@pytest.mark.parametrize(
    ("signal", "names_it", "expected"),
    [
        ("user_corrected", True, 1),
        ("user_confirmed", True, 0),
        ("user_corrected", False, 0),
    ],
)
def test_what_a_user_corrected_is_contradicted(writer, reader, lived, signal, names_it, expected):
    chain = record_chain(writer, "it is cold", "so warm it")
    corrected = chain.steps.recorded[0].thought_id
    chain.trigger_event(
        FeedbackGiven,
        signal=signal,
        thought_id=corrected if names_it else None,
        scope=None,
        source="ada",
        note=None,
    )
    position = record(writer, chain)

    catch_up(lived)

    link = ("contradicts", None, corrected, chain.id, chain.id, position)
    assert links(reader) == [link] * expected


# -- Search ---------------------------------------------------------------------------------------


def test_one_reads_ones_own_writes_and_only_those_of_ones_tenant(database, writer):
    with running_worker(database) as worker, running_worker(database, Entities()) as other:
        worker.hear("leads")
        other.hear("leads")
        theirs = ThoughtChain.start(uuid4(), title="")
        theirs.add_thought(uuid4(), thought("src/a.py and theirs_alone"))
        context = Context(actor="ada", tenant="other")
        repository(writer, context).event_store.put(theirs.collect())
        ours = ThoughtChain.start(uuid4(), title="")
        ours.add_thought(uuid4(), thought("src/a.py"))
        position = record(writer, ours)

        answer = asyncio.run(related(database, EntityQuestion(entity="src/a.py"), position))
        by_chain = asyncio.run(related(database, EntityQuestion(chain_id=theirs.id), position))

    assert [chain.id for chain in answer.chains] == [ours.id]
    assert [(entity.thoughts, entity.chains) for entity in answer.entities] == [(1, 1)]
    assert (answer.together, answer.position, answer.stale) == ([], position, False)
    assert (by_chain.entities, by_chain.chains) == ([], [])


async def related(database, question, position):
    connections = LiveConnections(lambda: database.connector(Role.READER))
    try:
        return await EntitySearch(connections).related("default", question, position=position)
    finally:
        await connections.close()
