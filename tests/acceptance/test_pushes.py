"""Updates that are pushed: to subscribers of both eras, whoever wrote, in whatever process."""

import asyncio
import signal
import time
from contextlib import asynccontextmanager

import pytest
from mcp import Client

from tests.acceptance.client import Server
from tests.acceptance.http_server import MODERN as MODERN_VERSION
from tests.acceptance.http_server import HttpServer
from tests.acceptance.in_memory import (
    INVALID_PARAMS,
    LEGACY,
    SECONDS_MAX,
    a_chain,
    add,
    refusal_of,
    talk,
)
from tests.acceptance.product import (
    database,
    end_postmaster,
    eventually,
    is_one_clear_sentence,
)
from tests.acceptance.test_http import tokens_file

STATUS = "thought-ledger://status"
END_SECONDS_MAX = 5.0
SELECT_LISTENING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE datname = 'thought_ledger' AND usename = 'thought_ledger_reader'
"""


async def next_of(subscription):
    async with asyncio.timeout(SECONDS_MAX):
        return (await anext(aiter(subscription))).uri


# In one process


def test_a_subscriber_is_told_when_a_chain_grows_and_of_nothing_else(ledger):
    async def subscribe_and_think(client):
        mine, other = await a_chain(client, "one"), await a_chain(client, "one")
        uri = f"thought-chain://{mine}"
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            await add(client, "not asked for", 2, chain_id=other)
            await add(client, "two", 2, chain_id=mine)
            first = await next_of(subscription)
            await add(client, "not asked for", 3, chain_id=other)
            await add(client, "three", 3, chain_id=mine)
            second = await next_of(subscription)
        return uri, [first, second]

    uri, told = talk(ledger, subscribe_and_think)

    assert told == [uri, uri]


def test_the_events_and_the_status_are_told_as_well(ledger):
    async def subscribe_and_think(client):
        chain_id = await a_chain(client)
        uris = [f"thought-chain://{chain_id}/events", STATUS]
        async with client.listen(resource_subscriptions=uris) as subscription:
            await add(client, "one", 1, chain_id=chain_id)
            return uris, [await next_of(subscription), await next_of(subscription)]

    uris, told = talk(ledger, subscribe_and_think)

    assert told == uris


def test_only_what_can_come_is_acknowledged(ledger):
    asked = [STATUS, "thinking://current", "test://x", "thought-chain://no-uuid", STATUS]

    async def subscribe(client):
        async with client.listen(
            resource_subscriptions=asked,
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
        ) as subscription:
            return subscription.honored

    honoured = talk(ledger, subscribe)

    assert honoured.resource_subscriptions == [STATUS]
    assert honoured.tools_list_changed is None
    assert honoured.prompts_list_changed is None
    assert honoured.resources_list_changed is None


def test_a_chain_that_is_not_there_yet_can_be_waited_for(ledger):
    """Its id must be known beforehand, as those of imported chains are."""
    uri = "thought-chain://00000000-0000-4000-8000-000000000000"

    async def subscribe(client):
        async with client.listen(resource_subscriptions=[uri]) as subscription:
            return subscription.honored.resource_subscriptions

    assert talk(ledger, subscribe) == [uri]


def test_the_log_is_watched_only_while_somebody_subscribes(ledger):
    async def subscribe_twice(client):
        await add(client)
        async with client.listen(resource_subscriptions=[STATUS]):
            one = await asyncio.to_thread(listening, ledger)
            async with client.listen(resource_subscriptions=[STATUS]):
                two = await asyncio.to_thread(listening, ledger)
        await asyncio.to_thread(eventually, lambda: listening(ledger) == before, SECONDS_MAX)
        return one, two

    before = listening(ledger)

    assert talk(ledger, subscribe_twice) == (before + 1, before + 1)


def listening(data_dir):
    with database(data_dir) as connection:
        return connection.execute(SELECT_LISTENING).fetchone()[0]


# An older client, in one process


def test_an_older_client_subscribes_to_one_resource_at_a_time(ledger):
    told = asyncio.Queue()

    async def on_message(message):
        told.put_nowait(message.params.uri)

    async def subscribe_and_think(client):
        mine, other = await a_chain(client, "one"), await a_chain(client, "one")
        uris = [f"thought-chain://{chain_id}" for chain_id in (mine, other)]
        for uri in [*uris, STATUS]:
            await client.subscribe_resource(uri)
        await add(client, "two", 2, chain_id=mine)
        heard = [await told.get(), await told.get()]
        await client.unsubscribe_resource(uris[0])
        await client.unsubscribe_resource("thought-chain://never-subscribed")
        await add(client, "not told any more", 3, chain_id=mine)
        heard.append(await told.get())
        await add(client, "two", 2, chain_id=other)
        return uris, [*heard, await told.get(), await told.get()]

    uris, heard = talk(ledger, subscribe_and_think, era=LEGACY, on_message=on_message)

    assert heard == [uris[0], STATUS, STATUS, uris[1], STATUS]


@pytest.mark.parametrize("uri", ["thinking://current", "test://x", "thought-chain://no-uuid"])
def test_an_older_client_is_refused_what_would_never_be_told(ledger, uri):
    refused = refusal_of(ledger, lambda client: client.subscribe_resource(uri), era=LEGACY)

    assert (refused.code, refused.data) == (INVALID_PARAMS, {"uri": uri})
    assert is_one_clear_sentence(refused.message)


# Two processes


@asynccontextmanager
async def subscribed(server, *uris):
    """Subscribes over HTTP, of the modern era."""
    async with (
        asyncio.timeout(SECONDS_MAX),
        Client(server.url, mode=MODERN_VERSION) as client,
        client.listen(resource_subscriptions=uris) as subscription,
    ):
        yield subscription


def test_what_another_process_records_is_told_at_once(ledger):
    async def subscribe_here_and_think_there(here, there):
        chain_id = there.think("one")["chain_id"]
        uri = f"thought-chain://{chain_id}"
        async with subscribed(here, uri) as subscription:
            delays = []
            for number in range(2, 12):
                answer = await asyncio.to_thread(there.think, "more", number, 20, chain_id=chain_id)
                answered = time.perf_counter()
                assert answer.outcome == "answered"
                assert await next_of(subscription) == uri
                delays.append((time.perf_counter() - answered) * 1_000)
        return sorted(delays)

    with HttpServer(ledger, "--no-worker") as here, Server(ledger, "--no-worker") as there:
        delays = asyncio.run(subscribe_here_and_think_there(here, there))

    print(f"told after the writer's answer, ms: {[round(delay, 1) for delay in delays]}")


def test_nothing_is_missed_when_the_database_is_killed_meanwhile(data_dir):
    async def subscribe_and_kill(here, there):
        chain_id = there.think("one")["chain_id"]
        uri = f"thought-chain://{chain_id}"
        async with subscribed(here, uri) as subscription:
            await asyncio.to_thread(end_postmaster, data_dir)
            answer = await asyncio.to_thread(there.think, "two", 2, chain_id=chain_id)
            return answer.outcome, uri, await next_of(subscription)

    with HttpServer(data_dir, "--no-worker") as here, Server(data_dir, "--no-worker") as there:
        outcome, uri, told = asyncio.run(subscribe_and_kill(here, there))

    assert (outcome, told) == ("answered", uri)


def test_an_older_client_on_stdio_is_told_of_what_another_process_records(ledger):
    with Server(ledger, "--no-worker") as here, Server(ledger, "--no-worker") as there:
        chain_id = there.think("one")["chain_id"]
        uri = f"thought-chain://{chain_id}"
        assert here.request("resources/subscribe", {"uri": uri})["result"] == {}
        there.think("two", 2, chain_id=chain_id)
        told = first_notification(here)

    assert told["method"] == "notifications/resources/updated"
    assert told["params"]["uri"] == uri


def test_a_server_that_only_reads_tells_as_well(ledger):
    with Server(ledger, "--no-worker", "--read-only") as here, Server(ledger, "--no-worker") as it:
        chain_id = it.think("one")["chain_id"]
        uri = f"thought-chain://{chain_id}"
        here.request("resources/subscribe", {"uri": uri})
        it.think("two", 2, chain_id=chain_id)
        told = first_notification(here)
        (read,) = here.request("resources/read", {"uri": uri})["result"]["contents"]
        named = {"name": "resume_chain", "arguments": {"chain_id": chain_id}}
        (asked,) = here.request("prompts/get", named)["result"]["messages"]

    assert told["params"]["uri"] == uri
    assert "\n\ntwo\n" in read["text"]
    assert "No tool that is offered here goes on with a chain" in asked["content"]["text"]


def test_a_modern_client_on_stdio_listens_and_its_server_still_ends_in_time(ledger):
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {"resourceSubscriptions": [STATUS]}
    with WithoutHandshake(ledger, "--no-worker") as here:
        number = here.send_request("subscriptions/listen", {"notifications": asked, "_meta": meta})
        acknowledged = first_notification(here)
        with Server(ledger, "--no-worker") as there:
            there.think("one")
        told = first_notification(here, 1)
        began = time.monotonic()
    seconds = time.monotonic() - began

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == asked
    assert told["params"]["uri"] == STATUS
    assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
    assert seconds < END_SECONDS_MAX


class WithoutHandshake(Server):
    """As a client of the modern era starts it."""

    def initialize(self):
        pass


def first_notification(server, which=0):
    """The notification of that place, waited for."""
    return eventually(lambda: server.notifications[which:], SECONDS_MAX, "a notification")[0]


# HTTP


def test_a_server_with_a_stream_that_is_open_ends_cleanly(ledger):
    async def subscribe_and_end(server):
        async with subscribed(server, STATUS):
            return await asyncio.to_thread(server.end, signal.SIGTERM)

    with HttpServer(ledger, "--no-worker") as server:
        began = time.monotonic()
        code = asyncio.run(subscribe_and_end(server))
        seconds = time.monotonic() - began
        said = server.stderr()

    assert code == 0
    assert seconds < END_SECONDS_MAX
    assert "Traceback" not in said


def test_a_token_needs_the_scope_read_to_read_and_to_subscribe(ledger, tmp_path):
    chain = {"ref": {"type": "ref/prompt", "name": "resume_chain"}}
    asked = [
        ("resources/list", {}),
        ("resources/read", {"uri": STATUS}),
        ("prompts/get", {"name": "think_through", "arguments": {"problem": "p"}}),
        ("completion/complete", {**chain, "argument": {"name": "chain_id", "value": ""}}),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [STATUS]}}),
    ]
    with HttpServer(ledger, "--no-worker", "--tokens-file", tokens_file(tmp_path)) as server:
        with server.client(token="feeder-secret") as client:
            refused = [client.error_of(*one) for one in asked]
        with server.client(token="reader-secret") as client:
            answered = [client.ask(*one) for one in asked[:-1]]
            streamed = client.listen(asked[-1][1])

    for error in refused:
        assert error["code"] == INVALID_PARAMS
        assert "the token feeder may not read" in error["message"]
    assert all("result" in answer for answer in answered)
    assert streamed["method"] == "notifications/subscriptions/acknowledged"
