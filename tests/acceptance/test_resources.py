"""What can be read by address: chains, their events, the status; listed, paged, and refused."""

import json
import re
from uuid import uuid4

import pytest
from mcp_types import Resource

from tests.acceptance.client import Server, thought
from tests.acceptance.http_server import LEGACY as LEGACY_VERSION
from tests.acceptance.http_server import MODERN as MODERN_VERSION
from tests.acceptance.http_server import HttpServer
from tests.acceptance.in_memory import (
    ERAS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY,
    MODERN,
    NOWHERE,
    a_chain,
    add,
    call,
    refusal_of,
    talk,
    text_of,
)
from tests.acceptance.product import (
    READ_MODELS,
    chains,
    database,
    is_one_clear_sentence,
    replay,
)

LONG_CHAIN_THOUGHTS = 510
READ_CHARACTERS_MAX = 100_000


@pytest.fixture(scope="module")
def long_chain(ledger):
    """The id of a chain of many thoughts."""

    async def think(client):
        chain_id = await a_chain(client)
        for number in range(1, LONG_CHAIN_THOUGHTS + 1):
            await add(client, f"step {number}", number, chain_id=chain_id)
        return chain_id

    return talk(ledger, think)


# A chain


@pytest.mark.parametrize("era", ERAS)
def test_a_chain_can_be_read_as_text_with_its_shape(ledger, era):
    async def think_and_read(client):
        chain_id = await a_chain(client, "the query", "the index")
        named = {"chain_id": chain_id}
        await call(
            client, "revise_thought", **named, thought_number=2, revised_thought="no, the cache"
        )
        await call(
            client,
            "branch_thought",
            **named,
            from_thought_number=1,
            branch_id="stream",
            thought="stream the rows",
        )
        await call(client, "close_branch", **named, branch_id="stream", outcome="merged")
        await add(client, "sure?", 3, **named, confidence=0.25, assumptions=["cold"], critique="c")
        await call(client, "abandon_thought_chain", **named, thought_number=3)
        return chain_id, await text_of(client, f"thought-chain://{chain_id}")

    chain_id, text = talk(ledger, think_and_read, era=era)

    assert text.startswith(f"# which index?\n\n- Chain: {chain_id}\n- Status: active; thoughts: 5;")
    assert "- Branches: stream (1, closed: merged)\n" in text
    assert "## [1] Thought 1 of 3\n" in text
    assert "## [2] Thought 2 of 3; revised by [3]\n" in text
    assert "a revision of [2]\n" in text
    assert "on branch stream; branches from [1]\n" in text
    assert "## [5] Thought 3 of 3 (confidence 0.25); a dead end\n" in text
    assert "Assumptions:\n\n- cold\n\nCritique: c\n" in text
    order = [text.index(f"\n\n{said}\n") for said in ("the query", "the index", "no, the cache")]
    assert order == sorted(order)


def test_of_a_long_chain_the_last_thoughts_are_shown_and_the_rest_is_counted(ledger, long_chain):
    text = talk(ledger, lambda client: text_of(client, f"thought-chain://{long_chain}"))

    assert text.count("\n## [") == 100
    assert "(410 earlier thoughts are not shown; the tool get_thought_chain" in text
    assert "\n\nstep 410\n" not in text
    assert text.index("\n\nstep 411\n") < text.index("\n\nstep 510\n")


def test_a_thought_that_is_too_long_is_cut_and_says_how_to_read_it(ledger):
    async def think_and_read(client):
        chain_id = await a_chain(client, "a" * 2**20, "b" * 2**20)
        await add(client, "short", 3, chain_id=chain_id, critique="c" * 50_000)
        return await text_of(client, f"thought-chain://{chain_id}")

    text = talk(ledger, think_and_read)

    assert len(text) < READ_CHARACTERS_MAX
    assert "\nshort\n" in text
    assert "get_thought_chain with from 3 and limit 1 reads it" in text


def test_the_title_and_names_of_strangers_stay_on_their_line(ledger):
    async def think_and_read(client):
        answer = await call(client, "sequentialthinking", **thought("t", 1))
        chain_id = answer["chain_id"]
        named = {"chain_id": chain_id, "branchFromThought": 1, "branchId": "x\n## y"}
        await call(client, "sequentialthinking", **thought("u", 2, **named))
        titled = await call(client, "start_thought_chain", title="a\n# b\n" + "c" * 10_000)
        other = await text_of(client, f"thought-chain://{titled['chain_id']}")
        return await text_of(client, f"thought-chain://{chain_id}"), other

    text, other = talk(ledger, think_and_read)

    assert "## [2] Thought 2 of 3 on branch x ## y; branches from [1]\n" in text
    assert "\n## y" not in text
    assert other.startswith("# a # b ccc")
    assert len(other.split("\n")[0]) < 300


def test_a_chain_without_thoughts_can_be_read(ledger):
    async def start_and_read(client):
        return await text_of(client, f"thought-chain://{await a_chain(client)}")

    text = talk(ledger, start_and_read)

    assert "thoughts: 0" in text


# Its events


@pytest.mark.parametrize("era", ERAS)
def test_the_events_of_a_chain_are_those_that_replay_prints(ledger, era):
    async def think_and_read(client):
        chain_id = await a_chain(client, "one \u2028 \0")
        await add(client, "two", 2, chain_id=chain_id, requestId=str(uuid4()))
        return chain_id, await text_of(client, f"thought-chain://{chain_id}/events")

    chain_id, text = talk(ledger, think_and_read, era=era)

    told = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    replayed = replay(chain_id, data_dir=ledger)
    for event in replayed:
        del event["request_id"]
    assert told == [{k: v for k, v in event.items() if v is not None} for event in replayed]
    assert [event["type"] for event in told] == ["chain.started", "thought.added", "thought.added"]
    assert {"version", "recorded_at", "actor", "client"} <= told[0].keys()


def test_of_many_events_the_first_are_told_and_a_note_says_how_to_go_on(ledger, long_chain):
    text = talk(ledger, lambda client: text_of(client, f"thought-chain://{long_chain}/events"))

    *told, note = [json.loads(line) for line in text.splitlines()]
    assert [event["version"] for event in told] == list(range(1, len(told) + 1))
    assert len(told) <= 500
    assert note["type"] == "note"
    assert (note["next_version"], note["last_version"]) == (len(told) + 1, LONG_CHAIN_THOUGHTS + 1)
    assert f"thought-ledger replay {long_chain}" in note["text"]


# The status


def test_the_status_says_how_far_the_log_is_and_what_the_read_model_knows_of_it(data_dir):
    async def think_and_read(client):
        chain_id = await a_chain(client, "one")
        await call(client, "pause_thought_chain", chain_id=chain_id)
        return json.loads(await text_of(client, "thought-ledger://status"))

    async def read(client):
        return json.loads(await text_of(client, "thought-ledger://status"))

    unbuilt = talk(data_dir, think_and_read)
    chains(data_dir)
    current = talk(data_dir, read)
    behind = talk(data_dir, think_and_read)

    assert (unbuilt["product"], unbuilt["position"]) == ("thought-ledger", 3)
    assert (unbuilt["chains"], unbuilt["stale"]) == (None, True)
    assert current["chains"] == {"active": 0, "paused": 1, "completed": 0, "abandoned": 0}
    assert current["stale"] is False
    level = {"position": 3, "stale": False, "lag_events": 0, "lag_seconds": 0.0}
    assert current["read_models"] == dict.fromkeys(READ_MODELS, level)
    assert (behind["position"], behind["stale"]) == (6, True)
    assert [model["lag_events"] for model in behind["read_models"].values()] == [3] * len(
        READ_MODELS
    )


def test_the_status_is_stale_while_only_search_is_behind(data_dir):
    async def read(client):
        return json.loads(await text_of(client, "thought-ledger://status"))

    talk(data_dir, lambda client: a_chain(client, "one"))
    chains(data_dir)
    with database(data_dir) as connection:
        connection.execute("UPDATE terms_g1.checkpoint SET position = 1")
        told = talk(data_dir, read)

    lags = {name: model["lag_events"] for name, model in told["read_models"].items()}
    assert lags == dict.fromkeys(READ_MODELS, 0) | {"terms": 1}
    assert told["stale"] is True


# Lists


@pytest.mark.parametrize("era", ERAS)
def test_the_fixed_ones_are_listed_first_and_then_all_chains_page_by_page(data_dir, era):
    async def start_many(client):
        return [await a_chain(client) for _ in range(103)]

    async def pages(client):
        page = await client.list_resources()
        found = [page]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            found.append(page)
        return found

    started = talk(data_dir, start_many)
    chains(data_dir)
    listed = talk(data_dir, pages, era=era, toolsets=("critical", "chains"))

    uris = [[resource.uri for resource in page.resources] for page in listed]
    assert [len(page) for page in uris] == [53, 50, 3]
    fixed = ["thought-ledger://status", "thought-ledger://memory", "thinking://current"]
    assert uris[0][:3] == fixed
    found = [uri for page in uris for uri in page]
    assert found[3:] == [f"thought-chain://{chain_id}" for chain_id in reversed(started)]
    latest = listed[0].resources[3]
    assert (latest.title, latest.mime_type) == ("which index?", "text/markdown")
    assert latest.annotations.last_modified is not None


def test_the_status_and_chains_do_not_depend_on_toolsets(ledger):
    async def list_all(client):
        templates = await client.list_resource_templates()
        return await client.list_resources(), templates.resource_templates

    listed, templates = talk(ledger, list_all, toolsets=("compat",))

    assert listed.resources[0].uri == "thought-ledger://status"
    assert "thinking://current" not in [resource.uri for resource in listed.resources]
    assert [template.uri_template for template in templates] == [
        "thought-chain://{chain_id}",
        "thought-chain://{chain_id}/events",
    ]
    for one in [*templates, listed.resources[0]]:
        assert one.title
        assert one.description
        assert one.mime_type


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "cursor", ["", "x", "W10=", "bnVsbA==", "é", "WyIyMDI2LTAxLTAxIiwgIngiXQ=="]
)
@pytest.mark.parametrize("listing", ["list_resources", "list_resource_templates", "list_prompts"])
def test_a_cursor_that_is_none_of_ours_is_refused(ledger, era, cursor, listing):
    refused = refusal_of(ledger, lambda client: getattr(client, listing)(cursor=cursor), era=era)

    assert refused.code == INVALID_PARAMS
    assert is_one_clear_sentence(refused.message)


# What is not there


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "uri",
    [
        "thought-chain://00000000-0000-4000-8000-000000000000",
        "thought-chain://00000000-0000-4000-8000-000000000000/events",
        "thought-chain://no-uuid",
        "thought-chain://no-uuid/events",
        "thought-chain://",
        "thought-chain:///events",
        "thought-chain://{chain_id}",
        "thought-chain://00000000000040008000000000000000",
        "thought-ledger://nothing",
        "thinking://current",
        "file:///etc/passwd",
        "x" * 10_000,
    ],
)
def test_what_is_not_there_is_refused_as_the_protocol_says_it(ledger, era, uri):
    refused = refusal_of(ledger, lambda client: client.read_resource(uri), era=era)

    assert (refused.code, refused.data) == (INVALID_PARAMS, {"uri": uri})
    assert is_one_clear_sentence(refused.message)


@pytest.mark.parametrize("path", ["/", "/event", "/events/", "/events/1", "?x", "#x"])
def test_of_a_chain_that_is_there_only_two_things_can_be_read(ledger, path):
    chain_id = talk(ledger, a_chain)

    refused = refusal_of(
        ledger, lambda client: client.read_resource(f"thought-chain://{chain_id}{path}")
    )

    assert refused.code == INVALID_PARAMS


def test_an_address_may_be_written_in_capitals(ledger):
    async def start_and_read(client):
        chain_id = await a_chain(client)
        return chain_id, await text_of(client, f"thought-chain://{chain_id.upper()}")

    chain_id, text = talk(ledger, start_and_read)

    assert f"- Chain: {chain_id}\n" in text


@pytest.mark.parametrize("era", ERAS)
def test_what_a_bug_says_stays_in_the_servers_log(ledger, era, caplog):
    class Broken:
        definition = Resource(uri="test://broken", name="broken")

        async def read(self, ledger, context):
            raise RuntimeError("a secret")

    refused = refusal_of(
        ledger, lambda client: client.read_resource("test://broken"), era=era, resources=[Broken()]
    )

    assert refused.code == INTERNAL_ERROR
    assert is_one_clear_sentence(refused.message)
    assert "secret" not in refused.message
    error_id = re.search(r"error (\w+),", refused.message)[1]
    assert f"error {error_id} in resources/read" in caplog.text
    assert "a secret" in caplog.text


@pytest.mark.parametrize("era", ERAS)
def test_without_a_database_what_is_fixed_is_told_and_the_rest_is_refused(era):
    async def templates(client):
        return (await client.list_resource_templates()).resource_templates

    told = talk(NOWHERE, templates, era=era)
    refused = [
        refusal_of(NOWHERE, ask, era=era)
        for ask in (
            lambda client: client.list_resources(),
            lambda client: client.read_resource("thought-ledger://status"),
        )
    ]

    assert len(told) == 2
    for error in refused:
        assert error.code == INTERNAL_ERROR
        assert is_one_clear_sentence(error.message)


# What a client is told about all this


def test_the_modern_era_is_told_what_may_be_kept_and_by_whom(ledger):
    async def all_of_them(client):
        return {
            "tools": await client.list_tools(),
            "prompts": await client.list_prompts(),
            "templates": await client.list_resource_templates(),
            "resources": await client.list_resources(),
            "status": await client.read_resource("thought-ledger://status"),
        }

    told = talk(ledger, all_of_them)

    scopes = {name: (result.cache_scope, result.ttl_ms > 0) for name, result in told.items()}
    assert scopes == {
        "tools": ("public", True),
        "prompts": ("public", True),
        "templates": ("public", True),
        "resources": ("private", False),
        "status": ("private", False),
    }


@pytest.mark.parametrize("era", ERAS)
def test_nothing_is_promised_that_does_not_come(ledger, era):
    async def capabilities(client):
        return client.server_capabilities

    told = talk(ledger, capabilities, era=era)

    assert told.logging is None
    assert told.completions is not None
    assert told.tools.list_changed is False
    assert told.prompts.list_changed is False
    assert (told.resources.subscribe, told.resources.list_changed) == (True, False)


def test_a_client_is_told_in_a_few_words_what_this_is(ledger):
    async def instructions(client):
        return client.instructions

    for era in (MODERN, LEGACY):
        assert "thought-chain://CHAIN_ID" in talk(ledger, instructions, era=era)


# The real transports


def test_over_stdio(ledger):
    with Server(ledger, "--no-worker") as server:
        chain_id = server.think("over a pipe")["chain_id"]
        uri = f"thought-chain://{chain_id}"
        (read,) = server.request("resources/read", {"uri": uri})["result"]["contents"]
        missing = server.request("resources/read", {"uri": f"thought-chain://{uuid4()}"})["error"]

    assert read["mimeType"] == "text/markdown"
    assert "\n\nover a pipe\n" in read["text"]
    assert missing["code"] == INVALID_PARAMS
    assert missing["data"]["uri"].startswith("thought-chain://")


@pytest.mark.parametrize("version", [LEGACY_VERSION, MODERN_VERSION])
def test_over_http(ledger, version):
    with HttpServer(ledger, "--no-worker") as server, server.client(era=version) as client:
        chain_id = client.think(thought("over a socket"))["chain_id"]
        uri = f"thought-chain://{chain_id}"
        (read,) = client.ask("resources/read", {"uri": f"{uri}/events"})["result"]["contents"]
        listed = client.ask("resources/list", {})["result"]["resources"]
        asked = {
            "ref": {"type": "ref/resource", "uri": "thought-chain://{chain_id}"},
            "argument": {"name": "chain_id", "value": chain_id[:8]},
        }
        completed = client.ask("completion/complete", asked)["result"]["completion"]
        named = {"name": "resume_chain", "arguments": {"chain_id": chain_id}}
        prompt = client.ask("prompts/get", named)["result"]["messages"]

    assert "over a socket" in read["text"]
    assert listed[0]["uri"] == "thought-ledger://status"
    assert completed["total"] == len(completed["values"])
    assert "over a socket" in prompt[0]["content"]["text"]


def test_over_stateless_http_an_older_client_is_promised_no_subscriptions(ledger):
    with HttpServer(ledger, "--no-worker") as server:
        with server.client(era=LEGACY_VERSION) as client:
            older = client.initialize()["capabilities"]["resources"]
        with server.client() as client:
            modern = client.ask("server/discover", {})["result"]["capabilities"]["resources"]

    assert older["subscribe"] is False
    assert modern["subscribe"] is True
