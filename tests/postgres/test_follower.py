"""Rows and position move together, once; what cannot be applied is parked and the rest goes on."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from uuid import uuid4

import psycopg
import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import ThoughtAdded
from projections.errors import FencedError, LogRestoredError
from projections.projection import Change
from projections.thoughts import Thoughts
from tests.postgres.projecting import catch_up, follow, record, record_chain, rows, thought
from tests.stored import forged

INSERT_EVENT = """
    INSERT INTO ledger.events (
        originator_id, originator_version, topic, state, recorded_at, actor
    ) VALUES (%s, %s, %s, %s, now(), 'mallory')
"""


class Stumbling(Thoughts):
    """A projection with a bug."""

    def changes(self, batch: Sequence) -> Iterator[Change]:
        for recorded in batch:
            if isinstance(recorded.event, ThoughtAdded) and recorded.event.text == "boom":
                raise ZeroDivisionError("bang\0")
        yield from super().changes(batch)


def test_a_stalled_leader_is_fenced_before_the_next_one_has_done_anything(
    database, writer, projector, reader
):
    stalled = follow(projector)
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        projector.execute("SELECT pg_advisory_unlock_all()")
        follow(connection)
        record_chain(writer, "one")

        with pytest.raises(FencedError):
            stalled.step()

    assert rows(reader, "live", "thoughts") == []


def test_a_stalled_leader_that_wakes_up_changes_nothing(database, writer, projector, reader):
    stalled = follow(projector)
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        projector.execute("SELECT pg_advisory_unlock_all()")
        leader = follow(connection)
        record_chain(writer, "one")
        catch_up(leader)

    with pytest.raises(FencedError) as refusal:
        catch_up(stalled)

    assert refusal.value.schema == "thoughts_g1"
    assert len(rows(reader, "live", "thoughts")) == 1


def test_a_leader_whose_position_was_moved_changes_nothing(admin, writer, projector, reader):
    leader = follow(projector)
    record_chain(writer, "one")
    admin.execute("UPDATE thoughts_g1.checkpoint SET position = 1")

    with pytest.raises(FencedError):
        leader.step()

    assert rows(reader, "live", "thoughts") == []


def test_a_fault_of_the_database_parks_nothing(admin, writer, projector, reader):
    leader = follow(projector)
    record_chain(writer, "one")
    admin.execute("ALTER TABLE thoughts_g1.thoughts RENAME TO gone")

    with pytest.raises(psycopg.errors.UndefinedTable):
        leader.step()

    admin.execute("ALTER TABLE thoughts_g1.gone RENAME TO thoughts")
    catch_up(leader)
    assert len(rows(reader, "live", "thoughts")) == 1
    assert rows(reader, "thoughts_g1", "parked") == []


@pytest.mark.parametrize("limit", [1, 3, 500])
def test_a_bug_parks_one_chain_of_many_and_the_others_go_on(writer, projector, reader, limit):
    said = []
    leader = follow(projector, Stumbling(), said=said)
    before = [record_chain(writer, "fine", "fine") for _ in range(5)]
    poisoned = record_chain(writer, "fine", "boom", "later")
    after = [record_chain(writer, "fine") for _ in range(5)]
    poisoned.add_thought(uuid4(), thought("later still", 4))
    last = record(writer, poisoned)

    catch_up(leader, limit)

    assert leader.position == last
    counts = {row["id"]: row["thought_count"] for row in rows(reader, "live", "thought_chains")}
    assert [counts[chain.id] for chain in (*before, *after)] == [2] * 5 + [1] * 5
    assert counts[poisoned.id] == 1
    (parked,) = rows(reader, "thoughts_g1", "parked")
    assert (parked["chain_id"], parked["version"]) == (poisoned.id, 3)
    assert (parked["events"], parked["last_position"]) == (3, last)
    assert parked["error"] == "ZeroDivisionError: bang\ufffd"
    assert len(said) == 1


@pytest.mark.parametrize(
    ("topic", "state"),
    [
        ("thought.added", b"no header"),
        ("thought.added", b'{"format":1}\n{}'),
        ("thought.dreamt", b"{}\n{}"),
    ],
)
def test_an_event_that_cannot_be_read_parks_its_chain(
    admin, writer, projector, reader, topic, state
):
    leader = follow(projector)
    forged = record_chain(writer, "fine")
    admin.execute(INSERT_EVENT, (forged.id, forged.version + 1, topic, state))
    record_chain(writer, "fine")

    catch_up(leader)

    (parked,) = rows(reader, "thoughts_g1", "parked")
    assert (parked["chain_id"], parked["topic"]) == (forged.id, topic)
    assert len(rows(reader, "live", "thoughts")) == 2


def test_an_event_of_a_newer_ledger_parks_its_chain(admin, writer, projector, reader):
    leader = follow(projector)
    chain = record_chain(writer)
    dreamt = forged("thought.dreamt", b"{}", chain=str(chain.id), version=2)
    admin.execute(INSERT_EVENT, (chain.id, 2, dreamt.topic, dreamt.state))

    catch_up(leader)

    (parked,) = rows(reader, "thoughts_g1", "parked")
    assert parked["error"].startswith("UnknownTopicError")
    assert len(rows(reader, "live", "thought_chains")) == 1


def test_what_the_tables_refuse_parks_the_chain_that_brought_it(writer, projector, reader):
    said = []
    leader = follow(projector, said=said)
    same_id = uuid4()
    first, second = (ThoughtChain.start(uuid4(), title="t") for _ in range(2))
    for chain in (first, second):
        chain.add_thought(same_id, thought())
        record(writer, chain)

    catch_up(leader)

    (parked,) = rows(reader, "thoughts_g1", "parked")
    assert parked["chain_id"] == second.id
    # One line to read; the whole of it for machines.
    (line,) = said
    assert "UniqueViolation" in line
    assert "\n" not in line
    assert line.facts["error"] == parked["error"]
    assert "DETAIL" in line.facts["error"]
    assert [row["chain_id"] for row in rows(reader, "live", "thoughts")] == [first.id]


def test_a_parked_chain_stays_parked_under_the_next_leader(database, writer, projector, reader):
    leader = follow(projector, Stumbling())
    chain = record_chain(writer, "boom")
    catch_up(leader)
    projector.execute("SELECT pg_advisory_unlock_all()")
    chain.add_thought(uuid4(), thought("fine", 2))
    record(writer, chain)

    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        catch_up(follow(connection))

    (parked,) = rows(reader, "thoughts_g1", "parked")
    assert (parked["version"], parked["events"]) == (2, 2)
    assert rows(reader, "live", "thoughts") == []


def test_a_read_model_of_events_that_are_gone_is_not_followed(admin, writer, projector):
    record_chain(writer, "one", "two")
    leader = follow(projector)
    catch_up(leader)
    # What is left when an older log was put in the place of this one.
    admin.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
    admin.execute("DELETE FROM ledger.events WHERE notification_id = 3")

    with pytest.raises(LogRestoredError) as refusal:
        leader.lead()

    assert (refusal.value.name, refusal.value.position, refusal.value.head) == ("thoughts", 3, 2)
