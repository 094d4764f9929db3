"""Completions: ids of chains, branches and sessions, as a person types them."""

from uuid import uuid4

import pytest
from mcp_types import PromptReference, ResourceTemplateReference

from tests.acceptance.in_memory import (
    ERAS,
    INTERNAL_ERROR,
    NOWHERE,
    a_chain,
    add,
    call,
    refusal_of,
    talk,
)
from tests.acceptance.product import chains, database, is_one_clear_sentence, temporary_data_dir

CHAIN = ResourceTemplateReference(uri="thought-chain://{chain_id}")
EVENTS = ResourceTemplateReference(uri="thought-chain://{chain_id}/events")
RESUME = PromptReference(name="resume_chain")
THINK = PromptReference(name="think_through")


@pytest.fixture(scope="module")
def ledger():
    """A data directory with a few chains, listed by the read model."""

    async def think(client):
        for number in range(105):
            await add(client, "t", 1, session_id=f"session {number:03}")
        chain_id = await a_chain(client, "one", "two")
        for branch_id in ("left", "leftmost", "right"):
            await call(
                client,
                "branch_thought",
                chain_id=chain_id,
                from_thought_number=1,
                branch_id=branch_id,
                thought="b",
            )
        return chain_id

    with temporary_data_dir() as data_dir, database(data_dir):
        latest = talk(data_dir, think)
        chains(data_dir)
        yield data_dir, latest


async def completed(client, ref, name, value, **context):
    result = await client.complete(
        ref, {"name": name, "value": value}, context_arguments=context or None
    )
    completion = result.completion
    assert completion.has_more == (completion.total > len(completion.values))
    assert len(completion.values) <= 100
    return completion.values, completion.total


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("ref", [CHAIN, EVENTS, RESUME])
def test_a_chain_is_completed_from_the_beginning_of_its_id(ledger, era, ref):
    data_dir, latest = ledger

    values, total = talk(
        data_dir, lambda client: completed(client, ref, "chain_id", latest[:10]), era=era
    )

    assert (values, total) == ([latest], 1)


def test_with_nothing_typed_the_latest_chains_come_first_and_all_are_counted(ledger):
    data_dir, latest = ledger

    values, total = talk(data_dir, lambda client: completed(client, CHAIN, "chain_id", ""))

    assert values[0] == latest
    assert (len(values), total) == (100, 106)


@pytest.mark.parametrize(
    ("typed", "found"),
    [("", ["left", "leftmost", "right"]), ("left", ["left", "leftmost"]), ("x", [])],
)
def test_a_branch_is_completed_within_its_chain(ledger, typed, found):
    data_dir, latest = ledger

    values, total = talk(
        data_dir, lambda client: completed(client, RESUME, "branch_id", typed, chain_id=latest)
    )

    assert (values, total) == (found, len(found))


@pytest.mark.parametrize("context", [{}, {"chain_id": "no-uuid"}, {"chain_id": str(uuid4())}])
def test_without_a_chain_there_is_no_branch_to_complete(ledger, context):
    data_dir, _ = ledger

    values, total = talk(
        data_dir, lambda client: completed(client, RESUME, "branch_id", "", **context)
    )

    assert (values, total) == ([], 0)


def test_a_session_is_completed_from_the_beginning_of_its_name(ledger):
    data_dir, _ = ledger

    values, total = talk(
        data_dir, lambda client: completed(client, THINK, "session_id", "session 00")
    )

    assert values == [f"session {number:03}" for number in reversed(range(10))]
    assert total == 10


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (PromptReference(name="no_prompt"), "chain_id"),
        (ResourceTemplateReference(uri="test://{x}"), "chain_id"),
        (THINK, "problem"),
        (THINK, "chain_id"),
        (RESUME, "no_argument"),
        (CHAIN, "branch_id"),
    ],
)
def test_what_is_not_known_here_is_completed_with_nothing(ledger, era, ref, name):
    data_dir, _ = ledger

    values, total = talk(data_dir, lambda client: completed(client, ref, name, "x"), era=era)

    assert (values, total) == ([], 0)


@pytest.mark.parametrize("era", ERAS)
def test_without_a_database_it_is_said(era):
    refused = refusal_of(NOWHERE, lambda client: completed(client, CHAIN, "chain_id", ""), era=era)

    assert refused.code == INTERNAL_ERROR
    assert is_one_clear_sentence(refused.message)
