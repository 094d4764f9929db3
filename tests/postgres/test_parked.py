"""Parked chains are shown, retried and skipped; what could be applied is, and nothing is lost."""

from contextlib import closing
from uuid import uuid4

import orjson
import psycopg
import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import CATALOGUE, ThoughtAdded
from ledger.log import head, read_stream
from projections.catalogue import ALL
from projections.errors import (
    FencedError,
    LogRestoredError,
    NotParkedError,
    ParkedApartError,
    ProjectionVersionError,
)
from projections.generations import ensure_live
from projections.parked import parked_chain, parked_chains, skipped_events
from projections.retrying import retry, retry_all, skip
from projections.thoughts import Thoughts
from tests.postgres.parking import (
    VERSION_MAX,
    Buggy,
    await_head,
    built_afresh,
    contents,
    parked_rows,
)
from tests.postgres.projecting import (
    NextThoughts,
    catch_up,
    follow,
    record,
    record_chain,
    rows,
    running_worker,
    thought,
)
from tests.stored import forged

CHAINS = 1_000

INSERT_EVENT = """
    INSERT INTO ledger.events (
        originator_id, originator_version, topic, state, recorded_at, actor
    ) VALUES (%s, %s, %s, %s, now(), 'forger')
"""


class LaterThoughtAdded(ThoughtAdded):
    """As it is after a version that did not ask whether another thought is needed."""

    class_version = 2

    @staticmethod
    def upcast_v1_v2(state) -> None:
        state.setdefault("next_thought_needed", True)


@pytest.fixture
def operator(database):
    """The connection of the operator's command."""
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        yield connection


@pytest.fixture
def buggy():
    return Buggy(Thoughts())


def skip_it(connection, projection, chain_id):
    return skip(connection, projection, chain_id, reason="it is empty", skipped_by="ada")


def record_older_thought(writer, admin, text):
    """A chain whose second event has the shape of an older version of its class."""
    chain = ThoughtChain.start(uuid4(), title="old")
    record(writer, chain)
    chain.add_thought(uuid4(), thought(text))
    (event,) = chain.collect()
    payload = {"salt": "00", "text": text, "sequence": 1, "thought_number": 1, "total_thoughts": 9}
    payload["thought_id"] = str(event.thought_id)
    row = forged("thought.added", orjson.dumps(payload), chain=str(chain.id), version=2)
    admin.execute(INSERT_EVENT, (chain.id, 2, row.topic, row.state))
    return chain


def test_one_of_a_thousand_chains_is_parked_shown_mended_by_an_upcaster_and_retried(
    database, admin, writer, reader, operator, monkeypatch
):
    before = [record_chain(writer, "fine") for _ in range(CHAINS // 2)]
    old = record_older_thought(writer, admin, "from long ago")
    old.add_thought(uuid4(), thought("after it", 2))
    record(writer, old)
    after = [record_chain(writer, "fine") for _ in range(CHAINS // 2 - 1)]
    with running_worker(database) as worker:
        worker.hear("parked chain")
        await_head(reader, "thoughts")

        counts = {row["id"]: row["thought_count"] for row in rows(reader, "live", "thought_chains")}
        assert [counts[chain.id] for chain in (*before, *after)] == [1] * (CHAINS - 1)
        assert counts[old.id] == 0
        (parked,) = parked_chains(reader)
        assert (parked.chain_id, parked.version, parked.waiting) == (old.id, 2, 1)
        shown = parked_chain(reader, "thoughts", old.id)
        assert (shown.event.actor, shown.event.text) == ("forger", None)
        assert "next_thought_needed" in shown.event.unreadable
        assert len(shown.waiting_positions) == 1

        monkeypatch.setitem(CATALOGUE, "thought.added", LaterThoughtAdded)
        assert parked_chain(reader, "thoughts", old.id).event.text == "from long ago"
        (retried,) = retry(operator, Thoughts(), old.id)
        record_chain(writer)
        worker.hear("leads")
        await_head(reader, "thoughts")

    assert (retried.applied, retried.parked) == (2, None)
    lived = contents(admin, Thoughts(), "thoughts_g1")
    assert lived == built_afresh(database, Thoughts())
    assert len(lived["thoughts"]) == CHAINS + 1


@pytest.mark.parametrize("projection", ALL, ids=lambda projection: projection.name)
def test_a_retried_chain_comes_to_what_a_rebuild_comes_to(
    database, writer, projector, operator, projection
):
    buggy = Buggy(projection)
    leader = follow(projector, buggy)
    chain = record_chain(writer, "the cache", "the cache again")
    buggy.fail(chain.id, 2)
    record_chain(writer, "another cache")
    chain.add_thought(uuid4(), thought("the last of the cache", 3))
    record(writer, chain)
    record_chain(writer, "the other cache")
    catch_up(leader)
    buggy.mend()

    (retried,) = retry(operator, buggy, chain.id)

    assert (retried.applied, retried.parked) == (3, None)
    assert parked_rows(operator, projection.name) == []
    assert contents(operator, projection, f"{projection.name}_g1") == built_afresh(
        database, projection
    )


def test_a_chain_that_fails_again_stays_as_it_was_with_the_new_error(
    writer, projector, operator, buggy
):
    leader = follow(projector, buggy)
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    catch_up(leader)
    (before,) = parked_rows(operator, "thoughts")

    (retried,) = retry(operator, buggy, chain.id)

    (after,) = parked_rows(operator, "thoughts")
    assert after == before
    assert retried.applied == 0
    assert retried.parked.error == "ZeroDivisionError: bang"
    record_chain(writer, "the leader goes on")
    catch_up(leader)


def test_what_comes_before_the_next_event_that_fails_is_applied(
    database, writer, projector, operator, buggy
):
    leader = follow(projector, buggy)
    chain = record_chain(writer, *(f"thought {number}" for number in range(1_200)))
    buggy.fail(chain.id, 3)
    catch_up(leader)
    buggy.fail(chain.id, 1_100)

    (retried,) = retry(operator, buggy, chain.id)

    assert retried.applied == 1_097
    (row,) = parked_rows(operator, "thoughts")
    assert (row["version"], row["events"]) == (1_100, 102)
    assert row["last_position"] == head(operator)
    assert contents(operator, buggy, "thoughts_g1") == built_afresh(database, buggy)
    (fresh,) = parked_rows(operator, "thoughts", 2)
    same = ("chain_id", "position", "version", "topic", "error", "events", "last_position")
    assert {name: row[name] for name in same} == {name: fresh[name] for name in same}


def test_what_the_tables_refuse_undoes_nothing_of_what_comes_before_it(
    database, writer, projector, operator, buggy
):
    leader = follow(projector, buggy)
    taken = uuid4()
    chains = [ThoughtChain.start(uuid4(), title="t") for _ in range(2)]
    for chain in chains:
        chain.add_thought(uuid4(), thought("fine"))
        chain.add_thought(taken, thought("the same id", 2))
        record(writer, chain)
    buggy.fail(chains[1].id)
    catch_up(leader)
    buggy.mend()

    (retried,) = retry(operator, buggy, chains[1].id)

    assert (retried.applied, retried.parked.version) == (2, 3)
    assert retried.parked.error.startswith("UniqueViolation")
    assert contents(operator, buggy, "thoughts_g1") == built_afresh(database, buggy)


def test_a_leader_is_fenced_by_a_retry_and_goes_on_when_it_looks_again(
    database, writer, projector, operator, buggy
):
    leader = follow(projector, buggy)
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(leader)
    buggy.mend()
    retry(operator, buggy, chain.id)
    chain.add_thought(uuid4(), thought("two", 2))
    record(writer, chain)

    with pytest.raises(FencedError):
        leader.step()
    leader.lead()
    catch_up(leader)

    assert contents(operator, buggy, "thoughts_g1") == built_afresh(database, buggy)


def test_a_chain_is_retried_in_every_generation_of_the_version_that_parked_it(
    database, writer, projector, operator, buggy
):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    built_afresh(database, buggy, 2)
    buggy.mend()

    retried = retry(operator, buggy, chain.id)

    assert [(each.generation, each.parked) for each in retried] == [(1, None), (2, None)]
    assert contents(operator, buggy, "thoughts_g1") == built_afresh(database, buggy, 3)
    assert contents(operator, buggy, "thoughts_g2") == built_afresh(database, buggy, 4)


def test_all_that_is_parked_is_retried_and_what_fails_again_stays(
    writer, projector, operator, buggy
):
    leader = follow(projector, buggy)
    chains = [record_chain(writer, "one") for _ in range(120)]
    for chain in chains:
        buggy.fail(chain.id)
    catch_up(leader)
    buggy.mend()
    buggy.fail(chains[7].id)

    retried = list(retry_all(operator, buggy))

    assert [each.chain_id for each in retried] == [chain.id for chain in chains]
    assert [each.chain_id for each in retried if each.parked] == [chains[7].id]
    assert [row["chain_id"] for row in parked_rows(operator, "thoughts")] == [chains[7].id]
    assert [each.parked for each in retry_all(operator, Thoughts())] == [None]
    assert list(retry_all(operator, Thoughts())) == []


def test_a_chain_that_is_not_parked_is_refused(writer, projector, operator):
    catch_up(follow(projector))
    chain = record_chain(writer, "one")

    for refused in (retry, skip_it):
        with pytest.raises(NotParkedError) as refusal:
            refused(operator, Thoughts(), chain.id)
        assert refusal.value.chain_id == chain.id
    with pytest.raises(NotParkedError):
        parked_chain(operator, "thoughts", chain.id)


def test_a_generation_of_another_version_is_not_written_to(writer, projector, operator, buggy):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    before = parked_rows(operator, "thoughts")

    for refused in (retry, skip_it, lambda *of: list(retry_all(*of[:2]))):
        with pytest.raises(ProjectionVersionError) as refusal:
            refused(operator, NextThoughts(), chain.id)
        assert refusal.value.built_version == Thoughts.version

    assert parked_rows(operator, "thoughts") == before
    assert skipped_events(operator) == []


def test_a_generation_that_is_ahead_of_a_restored_log_is_not_written_to(
    admin, writer, projector, operator, buggy
):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    admin.execute("UPDATE thoughts_g1.checkpoint SET position = position + 1")
    before = parked_rows(operator, "thoughts")

    with pytest.raises(LogRestoredError):
        retry(operator, buggy, chain.id)

    assert parked_rows(operator, "thoughts") == before


def test_a_fault_of_the_database_leaves_a_chain_parked(admin, writer, projector, operator, buggy):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    before = parked_rows(operator, "thoughts")
    buggy.mend()
    admin.execute("ALTER TABLE thoughts_g1.memories RENAME TO gone")

    with pytest.raises(psycopg.errors.UndefinedTable):
        retry(operator, buggy, chain.id)

    assert parked_rows(operator, "thoughts") == before
    admin.execute("ALTER TABLE thoughts_g1.gone RENAME TO memories")
    assert retry(operator, buggy, chain.id)[0].parked is None


def test_a_skipped_event_is_left_out_by_every_generation_of_the_version_and_by_no_other(
    database, writer, projector, reader, operator, buggy
):
    leader = follow(projector, buggy)
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    catch_up(leader)
    buggy.mend()

    (skipped,) = skip_it(operator, buggy, chain.id)
    leader.lead()
    chain.add_thought(uuid4(), thought("three", 3))
    record(writer, chain)
    catch_up(leader)

    assert (skipped.applied, skipped.parked) == (1, None)
    lived = contents(operator, buggy, "thoughts_g1")
    assert {row["thought"] for row in lived["thoughts"]} == {"two", "three"}
    assert lived == built_afresh(database, buggy)
    later = built_afresh(database, NextThoughts(), 3)
    assert {row["thought"] for row in later["thoughts"]} == {"one", "two", "three"}
    (told,) = skipped_events(reader, "thoughts")
    assert (told.chain_id, told.version, told.topic) == (chain.id, 2, "thought.added")
    assert (told.reason, told.skipped_by) == ("it is empty", "ada")
    assert (
        told.position
        == read_stream(reader, chain.id, after_version=1, to_position=head(reader), limit=1)[0][0]
    )


def test_another_event_that_comes_to_have_a_skipped_position_is_not_left_out(
    database, admin, writer, projector, operator, buggy
):
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))
    buggy.mend()
    skip_it(operator, buggy, chain.id)
    # As after a restore of an older log, whose events went on in another way.
    admin.execute("UPDATE projections.skipped SET state_sha256 = sha256('another event')")

    fresh = built_afresh(database, buggy)

    assert {row["thought"] for row in fresh["thoughts"]} == {"one", "two"}


def test_a_generation_that_is_still_to_come_to_a_skipped_event_leaves_it_out(
    database, writer, projector, operator, buggy
):
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))
    with closing(database.connector(Role.PROJECTOR).connect()) as connection:
        behind = follow(connection, buggy, number=2)
        behind.step(1)
        buggy.fail(chain.id, VERSION_MAX)

        skip_it(operator, buggy, chain.id)

        with pytest.raises(FencedError):
            behind.step()
        behind.lead()
        catch_up(behind)
    assert contents(operator, buggy, "thoughts_g2") == contents(operator, buggy, "thoughts_g1")
    assert parked_rows(operator, "thoughts", 2) == []


def test_a_skip_goes_on_to_the_next_event_that_fails(writer, projector, operator, buggy):
    chain = record_chain(writer, "one", "two", "three")
    buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))

    skips = [skip_it(operator, buggy, chain.id)[0] for _ in range(3)]

    assert [each.parked and each.parked.version for each in skips] == [3, 4, None]
    assert [event.version for event in skipped_events(operator)] == [2, 3, 4]


def test_what_is_parked_at_several_events_is_not_skipped(
    database, writer, projector, operator, buggy
):
    chain = record_chain(writer, "one", "two")
    buggy.fail(chain.id, 3)
    catch_up(follow(projector, buggy))
    buggy.fail(chain.id, 2)
    built_afresh(database, buggy)

    with pytest.raises(ParkedApartError) as refusal:
        skip_it(operator, buggy, chain.id)

    assert len(refusal.value.positions) == 2
    assert skipped_events(operator) == []
    assert {each.parked.version for each in retry(operator, buggy, chain.id)} == {2, 3}


def test_of_several_generations_the_live_one_is_shown_unless_another_is_asked_for(
    database, writer, projector, reader, buggy
):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id, 2)
    catch_up(follow(projector, buggy))
    built_afresh(database, buggy)

    live = parked_chain(reader, "thoughts", chain.id)
    other = parked_chain(reader, "thoughts", chain.id, 2)

    assert (live.parked.generation, live.other_generations) == (1, [2])
    assert (other.parked.generation, other.other_generations) == (2, [1])
    assert live.event.text == "one"
    with pytest.raises(NotParkedError):
        parked_chain(reader, "thoughts", chain.id, 3)


def test_an_event_that_was_tampered_with_is_shown_as_far_as_it_can_be_read(
    admin, writer, projector, reader
):
    leader = follow(projector)
    chain = record_chain(writer, "one")
    admin.execute(INSERT_EVENT, (chain.id, 3, "thought.added", b"no header"))
    catch_up(leader)

    shown = parked_chain(reader, "thoughts", chain.id)

    assert (shown.event.actor, shown.event.text) == (None, None)
    assert shown.event.unreadable.startswith("TamperedEventError")


def test_a_registry_of_an_earlier_version_gets_what_it_lacks(
    admin, writer, projector, reader, operator, buggy
):
    chain = record_chain(writer, "one")
    buggy.fail(chain.id)
    catch_up(follow(projector, buggy))
    admin.execute("DROP TABLE projections.skipped")

    assert [row.chain_id for row in parked_chains(reader)] == [chain.id]
    assert skipped_events(reader) == []
    generation = ensure_live(projector, buggy)

    assert generation.number == 1
    assert skip_it(operator, buggy, chain.id)[0].parked is not None
    assert len(skipped_events(reader)) == 1


def test_readers_may_see_what_is_skipped_and_change_nothing(projector, reader):
    ensure_live(projector, Thoughts())

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute("DELETE FROM projections.skipped")
