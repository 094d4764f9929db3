"""Import of traces: resumable, harmless to repeat, and never into a chain somebody changed."""

import asyncio
from uuid import UUID

import orjson
import pytest

from ledger import log
from ledger.application import Ledger
from ledger.database import Role
from ledger.header import Context
from ledger.imports import ChangedChainError, Imported, check_traces, import_traces
from ledger.limits import BATCH_EVENTS_MAX
from ledger.traces import Operation, chain_id_of
from tests.postgres.writers import a_thought, count

CONTEXT = Context(actor="importer")


def chain(name, thoughts, *, ends=True):
    """The operations of a chain: a start, thoughts with a branch among them, and an end."""
    operations = [{"chain": name, "op": "start", "content": f"task {name}", "src": "s"}]
    for n in range(1, thoughts + 1):
        said = {"chain": name, "op": "append", "n": n, "content": f"{name}/{n}", "parent": n - 1}
        operations.append(said | ({"op": "branch", "parent": n - 2} if n % 7 == 0 else {}))
    return operations + ([{"chain": name, "op": "complete"}] if ends else [])


def chain_id(name) -> UUID:
    return chain_id_of(Operation(1, name, "start", {"src": "s"}))


@pytest.fixture
def bring(database, tmp_path):
    """Check and import operations, as the command does."""

    def imported(operations) -> tuple[Imported, list[int]]:
        path = tmp_path / "traces.jsonl"
        path.write_bytes(b"\n".join(map(orjson.dumps, operations)))
        done: list[int] = []

        async def run() -> Imported:
            async with Ledger(database) as ledger:
                return await import_traces(ledger, CONTEXT, path, done.append)

        assert check_traces(path) == len(operations)
        return asyncio.run(run()), done

    return imported


def history(database, name):
    with database.connector(Role.READER).connect() as connection:
        return list(log.history(connection, chain_id(name)))


def texts(database, name):
    return [vars(each.event).get("text") for each in history(database, name)]


def wanted(operations):
    return [operation.get("content") if "n" in operation else None for operation in operations]


def test_every_operation_becomes_one_event_in_order(database, bring):
    operations = chain("a", 20)

    imported, done = bring(operations)

    assert imported == Imported(chains=1, operations=22, added=22)
    assert done == [22]
    assert texts(database, "a") == wanted(operations)


def test_importing_again_adds_nothing(database, bring):
    operations = [*chain("a", 5), *chain("b", 5, ends=False)]
    bring(operations)

    imported, _ = bring(operations)

    assert imported == Imported(chains=2, operations=13, added=0)
    assert len(history(database, "a")) == 7


@pytest.mark.parametrize("stop", [1, 2, 9, 21, 22, 23, 30, 43])
def test_an_import_that_stopped_goes_on_where_it_was(database, bring, stop):
    operations = [*chain("a", 20), *chain("b", 20)]
    bring(operations[:stop])

    imported, _ = bring(operations)

    assert imported.added == len(operations) - stop
    assert texts(database, "a") == wanted(operations[:22])
    assert texts(database, "b") == wanted(operations[22:])


def test_chains_whose_operations_are_mixed_are_each_in_order(database, bring):
    parts = [chain("a", 9), chain("b", 9), chain("c", 9)]
    mixed = [each for together in zip(*parts, strict=True) for each in together]
    bring(mixed[:17])

    imported, _ = bring(mixed)

    assert imported == Imported(chains=3, operations=33, added=16)
    for name, part in zip("abc", parts, strict=True):
        assert texts(database, name) == wanted(part)


@pytest.mark.parametrize("earlier", [0, 1, BATCH_EVENTS_MAX, BATCH_EVENTS_MAX + 1])
def test_a_chain_longer_than_a_batch_is_whole(database, bring, earlier):
    operations = chain("a", 2 * BATCH_EVENTS_MAX + 3)
    if earlier:
        bring(operations[:earlier])

    imported, _ = bring(operations)

    assert imported.added == len(operations) - earlier
    assert texts(database, "a") == wanted(operations)


def test_more_chains_than_are_imported_at_once_all_arrive(database, bring):
    operations = [each for name in range(150) for each in chain(str(name), 2)]

    imported, done = bring(operations)

    assert (imported.chains, imported.added) == (150, 600)
    assert done == sorted(done)
    assert done[-1] == 600


def test_a_chain_imported_in_part_and_changed_since_is_left_as_it_is(database, bring):
    operations = chain("a", 9)
    bring(operations[:4])

    async def meddle() -> None:
        async with Ledger(database) as ledger:
            await ledger.think(CONTEXT, chain_id("a"), a_thought("mine"), count)

    asyncio.run(meddle())

    with pytest.raises(ChangedChainError) as refusal:
        bring(operations)

    assert refusal.value.chain_id == chain_id("a")
    assert texts(database, "a")[-1] == "mine"
    assert len(history(database, "a")) == 5


def test_a_chain_imported_whole_and_gone_on_with_is_left_as_it_is(database, bring):
    operations = chain("a", 3)
    bring(operations)

    async def go_on() -> None:
        async with Ledger(database) as ledger:
            await ledger.think(CONTEXT, chain_id("a"), a_thought("more"), count)

    asyncio.run(go_on())

    imported, _ = bring(operations)

    assert imported.added == 0
    assert texts(database, "a")[-1] == "more"


@pytest.mark.parametrize(
    "other",
    [
        {"content": "another text"},
        {"n": 9, "content": "c/2"},
        {"meta": {"value": 1}},
    ],
    ids=["text", "number", "meta"],
)
def test_a_chain_of_the_same_name_that_says_something_else_is_left_alone(bring, database, other):
    bring(chain("c", 2))
    before = events_in(database)
    changed = chain("c", 2, ends=False)
    changed[2] |= other

    with pytest.raises(ChangedChainError) as refusal:
        bring(changed)

    assert refusal.value.line == 3
    assert events_in(database) == before


def test_two_imports_of_the_same_file_at_once_record_it_once(database, tmp_path):
    operations = [o for name in "abcdefgh" for o in chain(name, 12)]
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, operations)))

    async def run() -> list[Imported]:
        async with Ledger(database) as one, Ledger(database) as other:
            imports = (import_traces(each, CONTEXT, path, nothing) for each in (one, other))
            return await asyncio.gather(*imports)

    done = asyncio.run(run())

    assert sum(each.added for each in done) == len(operations)
    assert events_in(database) == len(operations)


def nothing(_):
    pass


def events_in(database) -> int:
    with database.connector(Role.READER).connect() as connection:
        (found,) = connection.execute("SELECT count(*) FROM ledger.events").fetchone()
    return found
