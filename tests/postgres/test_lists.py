"""What is asked of the read model of chains for a person who types, and for the status."""

import asyncio
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from projections.catalogue import ALL
from projections.lists import STARTS_MAX, ChainLists, Lag
from tests.postgres.projecting import catch_up, follow, record, record_chain

TENANT = "default"


def ask(database, question):
    """The answer of ``question(lists)``."""

    @asynccontextmanager
    async def opened():
        lists = ChainLists(lambda: database.connector(Role.READER))
        try:
            yield lists
        finally:
            await lists.close()

    async def answer():
        async with opened() as lists:
            return await question(lists)

    return asyncio.run(answer())


def chain_of(number, session_id=None):
    return ThoughtChain.start(UUID(number), title="t", session_id=session_id)


IDS = [
    "aabbccdd-0000-4000-8000-000000000001",
    "aabbccdd-1111-4000-8000-000000000002",
    "aabb0000-0000-4000-8000-000000000003",
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
]


@pytest.fixture
def chains(projector, writer):
    """Four chains with ids that are known, the last of which moved last."""
    made = [chain_of(number) for number in IDS]
    for chain in made:
        record(writer, chain)
    catch_up(follow(projector))
    return made


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("", [3, 2, 1, 0]),
        ("a", [2, 1, 0]),
        ("AABBCCDD", [1, 0]),
        ("aabbccdd-", [1, 0]),
        ("aabbccdd-1", [1]),
        (IDS[0], [0]),
        ("f", [3]),
        ("0", []),
        ("aabb-", []),
        ("aabbccdd1", []),
        (IDS[0] + "0", []),
        ("%", []),
        ("0x", []),
        ("z\0é", []),
    ],
)
def test_chains_are_found_by_what_their_ids_start_with(database, chains, prefix, found):
    starts = ask(database, lambda lists: lists.chain_ids(TENANT, prefix))

    assert starts.values == [IDS[number] for number in found]
    assert starts.total == len(found)


def test_of_many_the_latest_are_given_and_all_are_counted(database, projector, writer):
    made = [ThoughtChain.start(UUID(int=n + 1), title="t") for n in range(STARTS_MAX + 3)]
    record(writer, *made)
    catch_up(follow(projector))

    starts = ask(database, lambda lists: lists.chain_ids(TENANT, ""))

    assert starts.values == [str(chain.id) for chain in reversed(made)][:STARTS_MAX]
    assert starts.total == STARTS_MAX + 3


@pytest.mark.parametrize(
    ("prefix", "found"),
    [("", ["b_1", "bx1", "a%"]), ("b_", ["b_1"]), ("a%", ["a%"]), ("%", []), ("\0", [])],
)
def test_sessions_are_found_by_what_their_names_start_with(
    database, projector, writer, prefix, found
):
    names = ["a%", "bx1", "b_1"]
    record(writer, *(chain_of(*pair) for pair in zip(IDS, [None, *names], strict=True)))
    again = chain_of("00000000-0000-4000-8000-000000000009", session_id="b_1")
    record(writer, again)
    catch_up(follow(projector))

    starts = ask(database, lambda lists: lists.session_ids(TENANT, prefix))

    assert (starts.values, starts.total) == (found, len(found))


def test_another_tenants_chains_are_not_found(database, chains):
    starts = ask(database, lambda lists: lists.chain_ids("another", ""))

    assert (starts.values, starts.total) == ([], 0)


def test_chains_are_counted_by_status(database, chains, projector, writer):
    chains[0].complete()
    chains[1].pause()
    record(writer, chains[0], chains[1])
    follower = follow(projector)
    behind = ask(database, lambda lists: lists.counts(TENANT))
    catch_up(follower)

    counts = ask(database, lambda lists: lists.counts(TENANT))

    assert behind == {"active": 4}
    assert counts == {"active": 2, "completed": 1, "paused": 1}


def test_it_is_said_of_each_read_model_how_far_behind_it_is(database, chains, projector, writer):
    chains[0].complete()
    record(writer, chains[0])
    behind = ask(database, lambda lists: lists.lags())
    catch_up(follow(projector))

    lags = ask(database, lambda lists: lists.lags())

    assert list(lags) == [projection.name for projection in ALL]
    assert (behind["thoughts"].position, behind["thoughts"].events) == (4, 1)
    assert behind["thoughts"].seconds > 0
    assert lags["thoughts"] == Lag(5, 0, 0)
    assert (lags["terms"].position, lags["terms"].events) == (0, 5), "nobody has built it"


def test_before_anything_is_built_nothing_is_found_or_counted(database, writer):
    record_chain(writer, "one")

    assert ask(database, lambda lists: lists.chain_ids(TENANT, "")).values == []
    assert ask(database, lambda lists: lists.session_ids(TENANT, "")).values == []
    assert ask(database, lambda lists: lists.counts(TENANT)) is None
