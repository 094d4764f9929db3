"""The toolset ``memory``: feedback, and what it does to scores."""

import json
from uuid import uuid4

import pytest

from tests.acceptance.in_memory import a_chain, call, talk
from tests.acceptance.product import is_one_clear_sentence, run_well

TOOLSETS = ("chains", "memory")


def converse(ledger, conversation):
    return talk(ledger, conversation, toolsets=TOOLSETS)


def test_a_confirmation_says_what_it_was_applied_to_and_why_the_score_is_what_it_is(ledger):
    async def conversation(client):
        chain_id = await a_chain(client, "one", "two")
        await call(client, "complete_thought_chain", chain_id=chain_id)
        return chain_id, await call(
            client, "record_feedback", chain_id=chain_id, signal="confirmed", note="it held"
        )

    chain_id, answer = converse(ledger, conversation)

    assert answer["success"] is True
    assert answer["chain_id"] == chain_id
    assert answer["signal"] == "confirmed"
    assert (answer["applied_to"], answer["thought_number"]) == (1, 2)
    assert (answer["score_before"], answer["score_after"], answer["level"]) == (
        0.55,
        0.65,
        "medium",
    )
    assert (answer["chain_score"], answer["chain_level"]) == (0.6, "medium")
    used, confirmed = answer["because"]
    assert (used["type"], used["signal"]) == ("chain.completed", "agent_used")
    assert (used["delta"], used["before"], used["after"]) == (0.05, 0.5, 0.55)
    assert (confirmed["type"], confirmed["signal"]) == ("feedback.given", "user_confirmed")
    assert confirmed["position"] == answer["position"] > used["position"]
    assert (confirmed["source"], confirmed["note"]) == (confirmed["by"], "it held")
    assert not {"source", "note"} & used.keys()


def test_a_thought_is_named_by_number_or_id_and_a_correction_lets_it_sink(ledger):
    async def conversation(client):
        chain_id = await a_chain(client, "one", "two")
        read = await call(client, "get_thought_chain", chain_id=chain_id)
        first = read["thoughts"][0]["thought_id"]
        by_id = await call(
            client, "record_feedback", chain_id=chain_id, signal="Corrected", thought_id=first
        )
        by_number = await call(
            client, "record_feedback", chain_id=chain_id, signal="user_corrected", thoughtNumber="1"
        )
        return first, by_id, by_number

    first, by_id, by_number = converse(ledger, conversation)

    assert (by_id["thought_id"], by_id["score_after"]) == (first, 0.35)
    assert (by_number["thought_id"], by_number["score_after"]) == (first, 0.2)
    assert by_number["level"] == "low"


def test_a_whole_chain_is_confirmed_once_by_each_source(ledger):
    async def conversation(client):
        chain_id = await a_chain(client, "one", "two")
        said = {"chain_id": chain_id, "signal": "confirmed", "scope": "chain", "source": "ci"}
        return [await call(client, "record_feedback", **said) for _ in range(2)]

    first, again = converse(ledger, conversation)

    assert (first["applied_to"], first["score_after"], first["chain_score"]) == (2, 0.6, 0.6)
    assert (again["applied_to"], again["chain_score"]) == (0, 0.6)
    assert is_one_clear_sentence(again["warning"])


def test_a_retry_gets_the_first_answer_whatever_came_since(ledger):
    request_id = str(uuid4())

    async def conversation(client):
        chain_id = await a_chain(client, "one")
        said = {"chain_id": chain_id, "signal": "confirmed", "requestId": request_id}
        first = await call(client, "record_feedback", **said)
        await call(client, "record_feedback", chain_id=chain_id, signal="corrected")
        return first, await call(client, "record_feedback", **said)

    first, again = converse(ledger, conversation)

    assert again == first


def test_a_chain_is_judged_whatever_its_status(ledger):
    async def conversation(client):
        chain_id = await a_chain(client, "one")
        answers = []
        for verb in ("pause", "resume", "complete", "resume", "abandon"):
            await call(client, f"{verb}_thought_chain", chain_id=chain_id)
            said = {"chain_id": chain_id, "signal": "confirmed"}
            answers.append((await call(client, "record_feedback", **said))["score_after"])
        return answers

    assert converse(ledger, conversation) == [0.6, 0.7, 0.85, 0.95, 1.0]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"signal": "great"}, "signal must be one of confirmed, corrected"),
        ({}, "signal is missing"),
        ({"signal": "confirmed", "thought_number": 9}, "has no thought 9"),
        ({"signal": "corrected", "scope": "chain"}, "only a confirmation"),
        ({"signal": "confirmed", "scope": "chain", "thought_number": 1}, "only a confirmation"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(ledger, said, words):
    async def conversation(client):
        chain_id = await a_chain(client, "one")
        return await client.call_tool("record_feedback", {"chain_id": chain_id, **said})

    result = converse(ledger, conversation)

    assert result.is_error
    assert words in result.content[0].text
    assert is_one_clear_sentence(result.content[0].text)


def test_a_chain_without_thoughts_has_nothing_to_judge(ledger):
    async def conversation(client):
        chain_id = await a_chain(client)
        said = {"chain_id": chain_id, "signal": "confirmed"}
        return await client.call_tool("record_feedback", said)

    result = converse(ledger, conversation)

    assert result.is_error
    assert "no thoughts yet" in result.content[0].text


def test_what_proved_good_is_a_pattern_and_is_there_at_the_start_of_a_session(data_dir):
    async def conversation(client):
        chain_id = await a_chain(client, "one", "add an index")
        await call(client, "complete_thought_chain", chain_id=chain_id)
        for source in "abc":
            await call(
                client,
                "record_feedback",
                chain_id=chain_id,
                signal="confirmed",
                scope="chain",
                source=source,
            )
        return chain_id

    async def begin(client):
        patterns = await call(client, "reasoning_patterns", limit=5)
        prompt = await client.get_prompt("start_session", {"session_id": "s"})
        resource = await client.read_resource("thought-ledger://memory")
        return patterns, prompt.messages, resource.contents[0].text

    nothing = converse(data_dir, lambda client: call(client, "reasoning_patterns"))
    chain_id = converse(data_dir, conversation)
    printed = run_well("memory", data_dir=data_dir)
    told = json.loads(run_well("memory", "--json", data_dir=data_dir))
    elsewhere = run_well("memory", "--tenant", "elsewhere", data_dir=data_dir)
    patterns, (memory, advice), text = converse(data_dir, begin)

    assert (nothing["count"], nothing["stale"]) == (0, True)
    (row,) = patterns["patterns"]
    assert (row["kind"], row["chain_id"], row["approach"]) == ("solved", chain_id, "add an index")
    assert row["trust"] == pytest.approx(0.85, abs=1e-3)
    assert f"[chain {chain_id}, events" in patterns["text"]
    assert memory.content.resource.text == text
    assert text.startswith("Thought ledger: 1 chain of reasoning, 2 thoughts")
    assert "## Reasoning Patterns" in text
    assert 'session_id "s"' in advice.content.text
    assert text.startswith(printed)
    assert (told["tenant"], told["total"], told["stale"]) == ("default", 1, False)
    assert printed == f"{told['identity']}\n\n{told['text']}\n"
    assert [found["chain_id"] for found in told["patterns"]] == [chain_id]
    assert elsewhere == "Thought ledger: 0 chains of reasoning, 0 thoughts, 0 sessions.\n"
