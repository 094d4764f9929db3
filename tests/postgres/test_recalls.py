"""Recalls: counted in streams of their own, by the way, whoever reads and however many do."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from ledger import outcomes, recalls
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Role
from ledger.events import ChainRecalled
from ledger.header import Context
from ledger.log import read
from ledger.recalls import recalls_of
from tests.postgres.projecting import record_chain, thought

ADA, BOB = Context(actor="ada", request_id="not an id of recalls"), Context(actor="bob")
TOOL = "get_thought_chain"


def recalled(connection, chain) -> list:
    """The recalls of a chain, as they are in the log."""
    everything = read(connection, after=0, limit=10_000)
    stream_id = recalls_of(chain.id)
    found = [one for one in everything if one.event.originator_id == stream_id]
    assert all(isinstance(one.event, ChainRecalled) for one in found)
    assert [one.header.version for one in found] == [*range(1, len(found) + 1)]
    return found


def counts(found) -> Counter:
    return Counter(text for one in found for text in one.event.thought_ids)


def ids_of(chain) -> list:
    return [step.thought_id for step in chain.steps.recorded]


@pytest.fixture
def chain(writer):
    return record_chain(writer, "one", "two")


def test_what_is_noted_meanwhile_goes_into_one_event_for_each_tool_and_caller(
    database, reader, chain
):
    first, second = ids_of(chain)

    async def run():
        async with Ledger(database) as ledger:
            for _ in range(5):
                ledger.recalled(ADA, chain.id, TOOL, [first, second])
            ledger.recalled(ADA, chain.id, TOOL, [second])
            ledger.recalled(ADA, chain.id, "resume_thought_chain", [second])
            ledger.recalled(BOB, chain.id, TOOL, [first])
            ledger.recalled(BOB, chain.id, TOOL, [])
            return ledger.appends

    assert asyncio.run(run()) == 0
    found = recalled(reader, chain)
    assert counts(found) == {str(first): 6, str(second): 7}
    assert {(one.header.actor, one.event.tool, one.event.chain_id) for one in found} == {
        ("ada", TOOL, chain.id),
        ("ada", "resume_thought_chain", chain.id),
        ("bob", TOOL, chain.id),
    }
    assert len(found) == 3
    assert all(one.header.request_id is None for one in found)


def test_a_recall_does_not_move_the_version_of_its_chain(database, chain):
    async def run():
        async with Ledger(database) as ledger:
            ledger.recalled(ADA, chain.id, TOOL, ids_of(chain))
        async with Ledger(database) as ledger:
            return (await ledger.chain(chain.id)).version

    assert asyncio.run(run()) == chain.version


def test_several_processes_count_the_same_chain_and_none_is_lost(
    database, reader, chain, monkeypatch
):
    monkeypatch.setattr(recalls, "BATCH_SECONDS", 0)
    (first, _) = ids_of(chain)

    async def one_process():
        async with Ledger(database) as ledger:
            for _ in range(20):
                ledger.recalled(ADA, chain.id, TOOL, [first])
                # Each in an event of its own, at once.
                await ledger.position()

    async def run():
        await asyncio.gather(*(one_process() for _ in range(4)))

    asyncio.run(run())

    assert counts(recalled(reader, chain)) == {str(first): 80}


def test_who_only_reads_leaves_no_trace(database, reader, chain):
    async def run():
        async with Ledger(database, Role.READER) as ledger:
            ledger.recalled(ADA, chain.id, TOOL, ids_of(chain))

    asyncio.run(run())

    assert recalled(reader, chain) == []


def test_many_recalls_of_one_chain_are_told_in_events_of_bounded_size(
    database, reader, chain, monkeypatch
):
    monkeypatch.setattr(recalls, "EVENT_THOUGHTS_MAX", 3)
    first, second = ids_of(chain)

    async def run():
        async with Ledger(database) as ledger:
            for _ in range(4):
                ledger.recalled(ADA, chain.id, TOOL, [first, second])

    asyncio.run(run())

    found = recalled(reader, chain)
    assert [len(one.event.thought_ids) for one in found] == [3, 3, 2]
    assert counts(found) == {str(first): 4, str(second): 4}


def test_more_than_can_wait_is_forgotten_and_what_waits_is_kept(
    database, reader, chain, monkeypatch
):
    monkeypatch.setattr(recalls, "WAITING_THOUGHTS_MAX", 3)
    first, second = ids_of(chain)

    async def run():
        async with Ledger(database) as ledger:
            for _ in range(4):
                ledger.recalled(ADA, chain.id, TOOL, [first, second])

    asyncio.run(run())

    assert counts(recalled(reader, chain)) == {str(first): 1, str(second): 1}


def test_a_refused_append_is_tried_again_and_nobody_hears_of_it(
    database, admin, reader, chain, monkeypatch
):
    monkeypatch.setattr(recalls, "BATCH_SECONDS", 0)
    monkeypatch.setattr(recalls, "RETRY_SECONDS", 0)
    first, second = ids_of(chain)
    admin.execute("REVOKE INSERT ON ledger.events FROM thought_ledger_writer")

    async def run():
        async with Ledger(database) as ledger:
            outage = ledger._recalls._outage
            ledger.recalled(ADA, chain.id, TOOL, [first, second])
            async with asyncio.timeout(20):
                while not outage._is_said:
                    await ledger.position()
            admin.execute(
                "GRANT INSERT (originator_id, originator_version, topic, state, recorded_at, actor,"
                " session_id) ON ledger.events TO thought_ledger_writer"
            )
            async with asyncio.timeout(20):
                while outage._is_said:
                    await ledger.position()

    asyncio.run(run())

    assert counts(recalled(reader, chain)) == {str(first): 1, str(second): 1}


def test_the_stream_of_a_chains_recalls_is_made_of_its_id():
    chain_id = uuid4()

    assert recalls_of(chain_id) == recalls_of(chain_id) != chain_id
    assert recalls_of(chain_id) != recalls_of(uuid4())


def test_resuming_recalls_the_last_thought(database, reader, writer):
    chain = ThoughtChain.start(uuid4(), title="t")
    chain.add_thought(uuid4(), thought("one", 1))
    chain.add_thought(uuid4(), thought("two", 2))
    last = chain.steps.recorded[-1].thought_id

    async def run():
        async with Ledger(database) as ledger:
            await ledger.begin(BOB, chain, {})
            await ledger.pause(BOB, chain.id)
            await outcomes.resume(ledger, BOB, chain.id, tool="resume_thought_chain")

    asyncio.run(run())

    assert counts(recalled(reader, chain)) == {str(last): 1}
