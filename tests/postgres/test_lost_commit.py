"""A connection lost while an append is under way: nothing is lost with it, and nothing doubled."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ledger import log
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.database import Database, Role
from ledger.events import ThoughtRecorded
from ledger.header import Context
from ledger.settings import Settings
from tests.postgres.proxy import Loss, proxy_before
from tests.postgres.writers import a_thought, begin, count

pytestmark = pytest.mark.anyio

CONTEXT = Context(actor="tester")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def proxy(database_url):
    directory = Path(tempfile.mkdtemp(prefix="tl-"))
    async with proxy_before(database_url, directory) as proxy:
        yield proxy
    shutil.rmtree(directory)


@pytest.fixture
async def ledger(proxy):
    async with Ledger(Database(Settings(database_url=proxy.url))) as ledger:
        yield ledger


def recorded_in(database):
    with database.connector(Role.READER).connect() as connection:
        return log.read(connection, after=0, limit=10_000)


def texts_of(events):
    return [each.event.text for each in events if isinstance(each.event, ThoughtRecorded)]


async def think(ledger, chain_id, text, request_id=None):
    context = Context(actor="tester", request_id=request_id)
    return await ledger.think(context, chain_id, a_thought(text), count)


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("request_id", [None, "r"])
async def test_a_thought_is_recorded_once(database, proxy, ledger, loss, request_id):
    chain_id = (await begin(ledger, CONTEXT, uuid4())).chain_id
    await think(ledger, chain_id, "before")
    proxy.losses = [loss]

    receipt = await think(ledger, chain_id, "lost", request_id)
    await proxy.deliver_late()
    after = await think(ledger, chain_id, "after")

    events = recorded_in(database)
    assert proxy.lost == 1
    assert texts_of(events) == ["before", "lost", "after"]
    assert receipt.answer == {"thoughts": 2}
    assert after.answer == {"thoughts": 3}
    assert receipt.position == next(
        each.position for each in events if texts_of([each]) == ["lost"]
    )


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("request_id", [None, "r"])
async def test_a_chain_is_begun_once(database, proxy, ledger, loss, request_id):
    context = Context(actor="tester", request_id=request_id)
    proxy.losses = [loss]

    receipt = await ledger.begin_thinking(context, None, a_thought("first"), count)
    await proxy.deliver_late()

    events = recorded_in(database)
    assert texts_of(events) == ["first"]
    assert {each.header.chain_id for each in events} == {receipt.chain_id}
    assert receipt.position == events[-1].position


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("with_request", [False, True])
async def test_a_batch_is_recorded_once(database, proxy, ledger, loss, with_request):
    chain_ids = [uuid4() for _ in range(20)]
    await asyncio.gather(*(begin(ledger, CONTEXT, each) for each in chain_ids))

    def said(number):
        return chain_ids[number], f"{number}", f"r{number}" if with_request else None

    proxy.losses = [loss, loss]
    receipts = await asyncio.gather(*(think(ledger, *said(number)) for number in range(20)))
    await proxy.deliver_late()

    events = recorded_in(database)
    positions = {
        each.event.text: each.position for each in events if isinstance(each.event, ThoughtRecorded)
    }
    assert proxy.lost == 2
    assert sorted(texts_of(events)) == sorted(map(str, range(20)))
    assert [receipt.position for receipt in receipts] == [positions[str(n)] for n in range(20)]
    assert {receipt.answer["thoughts"] for receipt in receipts} == {1}


async def test_several_commands_on_one_chain_are_recorded_once_and_whole(database, proxy, ledger):
    chain = ThoughtChain.start(uuid4(), title="t")
    await ledger.begin(CONTEXT, chain, {})

    def decide(chain):
        for number in range(3):
            chain.add_thought(uuid4(), a_thought(str(number)))
        return {}

    proxy.losses = [Loss.ANSWER]
    receipt = await ledger.change(CONTEXT, chain.id, "three", decide)

    events = recorded_in(database)
    assert texts_of(events) == ["0", "1", "2"]
    assert receipt.position == events[-1].position


@pytest.mark.parametrize("loss", [Loss.ANSWER, Loss.RACE])
async def test_an_append_is_recognised_although_the_chain_has_moved_on_since(
    database, proxy, ledger, loss
):
    chain_id = (await begin(ledger, CONTEXT, uuid4())).chain_id
    await ledger.chain(chain_id)
    proxy.losses = [loss] * 3

    async with Ledger(database) as other:
        told = await asyncio.gather(
            *(
                think(each, chain_id, f"{name}{number}")
                for number in range(10)
                for name, each in (("here", ledger), ("there", other))
            )
        )

    texts = texts_of(recorded_in(database))
    assert len(texts) == len(set(texts)) == 20
    assert [text for text in texts if text.startswith("here")] == [f"here{n}" for n in range(10)]
    assert sorted(receipt.answer["thoughts"] for receipt in told) == list(range(1, 21))


async def test_a_retry_after_a_lost_answer_gets_the_first_receipt(database, proxy, ledger):
    chain_id = (await begin(ledger, CONTEXT, uuid4())).chain_id
    proxy.losses = [Loss.ANSWER]
    first = await think(ledger, chain_id, "t", "r")

    again = await think(ledger, chain_id, "t", "r")

    assert (again.position, again.answer) == (first.position, first.answer)
    assert texts_of(recorded_in(database)) == ["t"]


async def test_reads_go_on_through_a_lost_connection(proxy, ledger, database_url):
    chain_id = (await begin(ledger, CONTEXT, uuid4())).chain_id
    await ledger.chain(chain_id)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(
            """
            SELECT pg_terminate_backend(pid)
              FROM pg_stat_activity
             WHERE datname = current_database()
               AND pid <> pg_backend_pid()
            """
        )

    assert (await ledger.chain(chain_id)).version == 1
