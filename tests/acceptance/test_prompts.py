"""Prompts: what a person can ask an agent to do with the ledger, and how bad requests end."""

import json
import re
from uuid import uuid4

import pytest

from mcp_server.choice import TOOLSETS
from tests.acceptance.client import thought
from tests.acceptance.in_memory import (
    ERAS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    NOWHERE,
    a_chain,
    add,
    call,
    refusal_of,
    talk,
)
from tests.acceptance.product import (
    is_one_clear_sentence,
    run_well,
)

PROMPT_CHARACTERS_MAX = 100_000
OF_A_CHAIN = ["resume_chain", "review_reasoning"]


async def filled(client, name, **arguments):
    """The texts of a prompt's messages."""
    result = await client.get_prompt(name, arguments)
    assert result.description
    contents = [message.content for message in result.messages]
    return [one.resource.text if one.type == "resource" else one.text for one in contents]


# What there is


@pytest.mark.parametrize("era", ERAS)
def test_the_prompts_are_listed_with_what_they_need(ledger, era):
    async def prompts(client):
        return (await client.list_prompts()).prompts

    listed = talk(ledger, prompts, era=era)

    needed = {
        prompt.name: {argument.name: argument.required for argument in prompt.arguments}
        for prompt in listed
    }
    assert needed == {
        "start_session": {"session_id": False},
        "think_through": {"problem": True, "session_id": False},
        "resume_chain": {"chain_id": True, "branch_id": False},
        "review_reasoning": {"chain_id": True, "branch_id": False},
    }
    for prompt in listed:
        assert prompt.title
        assert prompt.description
        assert all(argument.description for argument in prompt.arguments)


# To go on with a chain


@pytest.mark.parametrize("era", ERAS)
def test_a_chain_is_resumed_from_its_last_thoughts(ledger, era):
    async def think_and_ask(client):
        chain_id = await a_chain(client, *(f"step {n}" for n in range(1, 9)))
        return chain_id, await filled(client, "resume_chain", chain_id=chain_id)

    chain_id, (text,) = talk(ledger, think_and_ask, era=era)

    assert "# which index?" in text
    assert "Status: active; thoughts: 8;" in text
    assert "\n\nstep 3\n" not in text
    assert text.index("\n\nstep 4\n") < text.index("\n\nstep 8\n")
    assert f"thought-chain://{chain_id}" in text
    assert f'go on with add_thought: chain_id "{chain_id}", thoughtNumber 9.' in text


def test_what_the_prompt_says_to_do_next_can_be_done(ledger):
    async def do_it(client):
        chain_id = await a_chain(client, "one", "two")
        await call(
            client,
            "branch_thought",
            chain_id=chain_id,
            from_thought_number=1,
            branch_id="left",
            thought="b",
        )
        (text,) = await filled(client, "resume_chain", chain_id=chain_id, branch_id="left")
        said = dict(re.findall(r'(branchId|branchFromThought|thoughtNumber) "?(\w+)"?', text))
        number = int(said.pop("thoughtNumber"))
        return text, await add(client, "on", number, chain_id=chain_id, **said)

    text, added = talk(ledger, do_it)

    assert "The last thoughts on branch left:" in text
    assert "\n\ntwo\n" not in text
    assert added["branches"] == ["left"]
    assert "warnings" not in added


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        (["pause"], "The chain is paused: resume it with resume_thought_chain first"),
        (["complete"], "The chain is completed: resume it with resume_thought_chain first"),
        (["abandon"], "The chain is abandoned: resume it with resume_thought_chain first"),
        (["pause", "resume"], "The chain takes thoughts"),
    ],
)
def test_the_next_step_is_that_of_the_chains_status(ledger, moves, words):
    async def move_and_ask(client):
        chain_id = await a_chain(client, "one")
        for move in moves:
            await call(client, f"{move}_thought_chain", chain_id=chain_id)
        return await filled(client, "resume_chain", chain_id=chain_id)

    (text,) = talk(ledger, move_and_ask)

    assert words in text


def test_a_closed_branch_is_not_gone_on_with(ledger):
    async def close_and_ask(client):
        chain_id = await a_chain(client, "one")
        branch = {"chain_id": chain_id, "branch_id": "left"}
        await call(client, "branch_thought", **branch, from_thought_number=1, thought="b")
        await call(client, "close_branch", **branch, outcome="abandoned")
        return await filled(client, "resume_chain", **branch)

    (text,) = talk(ledger, close_and_ask)

    assert "The branch is closed (abandoned)" in text
    assert "go on with add_thought" not in text


@pytest.mark.parametrize(
    ("given_up", "words"),
    [(3, "revise thought 2, the last one that was not given up"), (1, "start another chain")],
)
def test_after_a_dead_end_the_next_step_is_one_that_is_taken(ledger, given_up, words):
    async def give_up_and_ask(client):
        chain_id = await a_chain(client, "one", "two", "three")
        await call(client, "abandon_thought_chain", chain_id=chain_id, thought_number=given_up)
        return await filled(client, "resume_chain", chain_id=chain_id)

    (text,) = talk(ledger, give_up_and_ask)

    assert words in text
    assert "thoughtNumber 4" not in text


@pytest.mark.parametrize("branch", [" lead", "two  blanks", "nl\nx", 'a "quoted" one', "x" * 255])
def test_a_branch_is_named_as_it_is_to_be_sent(ledger, branch):
    async def branch_and_ask(client):
        chain_id = await a_chain(client, "one")
        said = {"branch_id": branch, "from_thought_number": 1, "thought": "b"}
        await call(client, "branch_thought", chain_id=chain_id, **said)
        return await filled(client, "resume_chain", chain_id=chain_id, branch_id=branch)

    (text,) = talk(ledger, branch_and_ask)

    named = json.dumps(branch, ensure_ascii=False)
    assert f"branchId {named}, branchFromThought 1" in text


def test_a_branch_from_nowhere_is_gone_on_with_and_not_the_trunk(ledger):
    async def branch_and_follow(client):
        dangling = {"branchId": "b", "branchFromThought": 99}
        first = await call(client, "sequentialthinking", **thought("one", 1))
        chain_id = first["chain_id"]
        where = {"chain_id": chain_id, **dangling}
        await call(client, "sequentialthinking", **thought("two", 2, **where))
        (text,) = await filled(client, "resume_chain", chain_id=chain_id, branch_id="b")
        origin = int(re.search(r"branchFromThought (\d+)", text)[1])
        followed = {"chain_id": chain_id, "branchId": "b", "branchFromThought": origin}
        await call(client, "add_thought", **thought("three", 3, **followed))
        return await call(client, "get_thought_chain", chain_id=chain_id)

    page = talk(ledger, branch_and_follow)

    assert page["branchMap"] == {"b": [2, 3]}


def test_a_chain_without_thoughts_is_begun(ledger):
    async def start_and_ask(client):
        return await filled(client, "resume_chain", chain_id=await a_chain(client))

    (text,) = talk(ledger, start_and_ask)

    assert "It has no thoughts yet." in text
    assert "thoughtNumber 1." in text


# Only tools that are offered are named


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_no_prompt_names_a_tool_that_is_not_offered(ledger, toolset):
    chain_id = talk(ledger, lambda client: a_chain(client, "one"))
    known = set()
    for other in TOOLSETS:
        known |= set(talk(ledger, tool_names, toolsets=(other,)))

    async def ask(client):
        begun = await filled(client, "think_through", problem="why?", session_id="s")
        begun += await filled(client, "start_session")
        memory = await client.read_resource("thought-ledger://memory")
        resumed = await filled(client, "resume_chain", chain_id=chain_id)
        return [*begun, memory.contents[0].text, *resumed]

    offered = talk(ledger, tool_names, toolsets=(toolset,))
    named = set(re.findall(r"\w+", " ".join(talk(ledger, ask, toolsets=(toolset,))))) & known

    assert named
    assert named <= set(offered)


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (("search_memories",), {"search_memories"}),
        (("add_thought", "record_feedback"), {"record_feedback"}),
        (
            ("search_memories", "record_feedback", "reasoning_patterns"),
            {"search_memories", "record_feedback", "reasoning_patterns"},
        ),
        (("add_thought",), set()),
    ],
)
def test_the_memory_names_those_of_its_tools_that_are_offered(ledger, tools, named):
    async def ask(client):
        memory, _ = await filled(client, "start_session")
        resource = await client.read_resource("thought-ledger://memory")
        return memory, resource.contents[0].text

    memory, resource = talk(ledger, ask, toolsets=TOOLSETS, tools=tools)

    of_memory = {"search_memories", "record_feedback", "reasoning_patterns"}
    assert set(re.findall(r"\w+", resource)) & of_memory == named
    assert memory == resource


def test_the_drop_in_reopens_what_is_completed_and_needs_a_command_for_what_is_paused(ledger):
    async def ask(client):
        answer = await call(client, "sequentialthinking", **thought("one", more=False))
        chain_id = answer["chain_id"]
        (completed,) = await filled(client, "resume_chain", chain_id=chain_id)
        await call(client, "sequentialthinking", **thought("two", 2, chain_id=chain_id))
        run_well("pause", chain_id, data_dir=ledger)
        (paused,) = await filled(client, "resume_chain", chain_id=chain_id)
        return chain_id, completed, paused

    chain_id, completed, paused = talk(ledger, ask, toolsets=("compat",))

    assert "the next thought reopens it: go on with sequentialthinking" in completed
    assert f"resume it with `thought-ledger resume {chain_id}` first" in paused


async def tool_names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


# To doubt one, and to begin one


def test_a_review_puts_the_chain_before_the_agent_as_a_resource(ledger):
    async def think_and_ask(client):
        chain_id = await a_chain(client, "it is the index")
        return chain_id, (await client.get_prompt("review_reasoning", {"chain_id": chain_id}))

    chain_id, result = talk(ledger, think_and_ask)

    questions, chain = [message.content for message in result.messages]
    assert "strongest case against" in questions.text
    assert chain.resource.uri == f"thought-chain://{chain_id}"
    assert chain.resource.mime_type == "text/markdown"
    assert "\n\nit is the index\n" in chain.resource.text


def test_a_problem_is_thought_through_in_numbered_steps(ledger):
    async def ask(client):
        return await filled(client, "think_through", problem="  why?\n", session_id="night shift")

    (text,) = talk(ledger, ask)

    assert "\n\nwhy?\n\n" in text
    assert "1. Record each step with add_thought" in text
    assert 'session_id "night shift"' in text


@pytest.mark.parametrize("name", OF_A_CHAIN)
def test_what_a_prompt_shows_is_bounded(ledger, name):
    async def think_and_ask(client):
        chain_id = await a_chain(client, *("x" * 2**20 for _ in range(3)))
        for number in range(4, 120):
            await add(client, "y" * 2_000, number, chain_id=chain_id)
        return await filled(client, name, chain_id=chain_id)

    texts = talk(ledger, think_and_ask)

    assert sum(map(len, texts)) < PROMPT_CHARACTERS_MAX


# What is refused


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("no_prompt", {}),
        ("x" * 10_000, {}),
        ("resume_chain", {}),
        ("resume_chain", None),
        ("review_reasoning", {}),
        ("think_through", {}),
        ("think_through", {"problem": " "}),
        ("think_through", {"problem": "x" * 100_000}),
        ("think_through", {"problem": "p", "session_id": "s" * 256}),
        ("resume_chain", {"chain_id": ""}),
        ("resume_chain", {"chain_id": "no-uuid"}),
        ("review_reasoning", {"chain_id": str(uuid4())}),
        ("resume_chain", {"chain_id": str(uuid4())}),
    ],
)
def test_a_prompt_that_cannot_be_filled_in_is_refused_with_a_sentence(ledger, era, name, arguments):
    refused = refusal_of(ledger, lambda client: client.get_prompt(name, arguments), era=era)

    assert refused.code == INVALID_PARAMS
    assert is_one_clear_sentence(refused.message)


@pytest.mark.parametrize("name", OF_A_CHAIN)
def test_a_branch_that_is_not_there_is_refused(ledger, name):
    async def ask(client):
        chain_id = await a_chain(client, "one")
        return await client.get_prompt(name, {"chain_id": chain_id, "branch_id": "left"})

    refused = refusal_of(ledger, ask)

    assert refused.code == INVALID_PARAMS
    assert "left" in refused.message


@pytest.mark.parametrize("era", ERAS)
def test_without_a_database_only_what_needs_it_is_refused(era):
    async def ask(client):
        listed = await client.list_prompts()
        return listed.prompts, await filled(client, "think_through", problem="why?")

    prompts, (text,) = talk(NOWHERE, ask, era=era)
    refused = refusal_of(
        NOWHERE,
        lambda client: client.get_prompt("resume_chain", {"chain_id": str(uuid4())}),
        era=era,
    )

    assert len(prompts) == 4
    assert "why?" in text
    assert refused.code == INTERNAL_ERROR
    assert is_one_clear_sentence(refused.message)
