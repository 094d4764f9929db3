"""The toolsets over HTTP: no connection to go on with, tokens, and other processes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.client import thought
from tests.acceptance.http_server import LEGACY, MODERN, HttpServer
from tests.acceptance.product import is_one_clear_sentence, replay, texts

ALL = ("--toolsets", "compat,chains,critical,kodegen,memory")
TOKENS = """
alice  read,write  alices-secret
bob    read,write  bobs-own-secret
reader read        readers-secret
"""


@pytest.fixture(scope="module")
def open_server(shared_data_dir):
    with HttpServer(shared_data_dir, *ALL) as server:
        yield server


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(TOKENS)
    path.chmod(0o600)
    return ("--tokens-file", str(path))


@pytest.fixture(scope="module")
def guarded(shared_data_dir, tokens):
    with HttpServer(shared_data_dir, *ALL, *tokens) as server:
        yield server


@pytest.fixture
def agent(open_server):
    with open_server.client() as client:
        yield client


# chains


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_chain_is_added_to_by_its_id(open_server, shared_data_dir, era):
    with open_server.client(era=era) as client:
        first = client.call("add_thought", thought("one", 1, session_id="http-session"))
        chain = first["chain_id"]
        second = client.call("add_thought", thought("two", 2, chain_id=chain))
        revised = client.call(
            "revise_thought", {"chain_id": chain, "thought_number": 1, "revised_thought": "1"}
        )
        read = client.call("get_thought_chain", {"chain_id": chain})

    assert (first["version"], second["version"]) == (2, 3)
    assert revised["success"] is True
    assert read["session_id"] == "http-session"
    assert texts(replay(chain, data_dir=shared_data_dir)) == ["one", "two", "1"]


@pytest.mark.parametrize(
    "said",
    [
        thought("two", 2),
        thought("revision", 1, isRevision=True, revisesThought=1),
        thought("branch", 1, branchFromThought=1, branchId="b"),
        thought("two of a session", 2, session_id="any"),
        thought("of which version?", 1, expectedVersion=3),
    ],
)
def test_a_thought_that_goes_on_must_name_its_chain(agent, said):
    refused = agent.call("add_thought", said)

    assert refused.outcome == "isError"
    assert is_one_clear_sentence(refused.text)


def test_two_clients_without_chain_ids_never_mix(open_server, shared_data_dir):
    with open_server.client() as one, open_server.client() as other:
        for name in ("sequentialthinking", "add_thought"):
            mine = one.call(name, thought("mine", 1))["chain_id"]
            yours = other.call(name, thought("yours", 1))["chain_id"]
            one.call(name, thought("mine again", 2, chain_id=mine))
            other.call(name, thought("yours again", 2, chain_id=yours))

            assert texts(replay(mine, data_dir=shared_data_dir)) == ["mine", "mine again"]
            assert texts(replay(yours, data_dir=shared_data_dir)) == ["yours", "yours again"]


def test_a_list_has_what_was_just_recorded(agent):
    started = agent.call("start_thought_chain", {"session_id": "listed-session", "title": "T"})
    agent.call("add_thought", thought("in it", 1, chain_id=started["chain_id"]))

    listed = agent.call("list_thought_chains", {"session_id": "listed-session"})

    assert [(c["chain_id"], c["thought_count"]) for c in listed["chains"]] == [
        (started["chain_id"], 1)
    ]


def test_a_search_has_what_was_just_recorded(agent):
    chain = agent.call("add_thought", thought("the hurdy-gurdy is out of tune", 1))["chain_id"]

    related = agent.call("get_related_chains", {"query": "hurdy-gurdy"})

    assert [found["chain_id"] for found in related["chains"]] == [chain]


def test_a_chain_started_by_nobody_in_particular_has_no_session(agent):
    started = agent.call("start_thought_chain", {})

    read = agent.call("get_thought_chain", {"chain_id": started["chain_id"]})

    assert "session_id" not in read.structured


def test_a_token_that_reads_may_read_and_not_write(guarded):
    with guarded.client(token="alices-secret") as alice:
        chain = alice.call("add_thought", thought("hers", 1))["chain_id"]

    with guarded.client(token="readers-secret") as reader:
        read = reader.call("get_thought_chain", {"chain_id": chain})
        refused = reader.call("add_thought", thought("his", 2, chain_id=chain))

    assert read["thoughts"][0]["agent"] == "alice"
    assert refused.outcome == "isError"
    assert "write" in refused.text


# critical


def test_an_episode_is_found_within_its_token(guarded):
    with (
        guarded.client(token="alices-secret") as alice,
        guarded.client(token="bobs-own-secret") as bob,
    ):
        lengths = [
            [client.call("criticalthinking", doubted(n))["thoughtHistoryLength"] for n in (1, 2)]
            for client in (alice, bob)
        ]

    assert lengths == [[1, 2], [1, 2]]


def test_the_current_episode_of_a_token_is_read_through_another_process(
    guarded, shared_data_dir, tokens
):
    with guarded.client(token="bobs-own-secret") as bob:
        bob.call("criticalthinking", doubted(1, text="first episode", episodeId="first"))
        bob.call("criticalthinking", doubted(1, text="latest episode", episodeId="latest"))

    with HttpServer(shared_data_dir, *ALL, *tokens) as other:
        with other.client(token="bobs-own-secret") as bob:
            his = current_thinking(bob)
        with other.client(token="readers-secret") as reader:
            nothing = current_thinking(reader)

    assert "# Episode latest" in his
    assert "latest episode" in his
    assert "latest episode" not in nothing


def test_without_tokens_an_episode_is_found_by_the_name_in_its_answer(agent, open_server):
    mine = agent.call("criticalthinking", doubted(1))
    with open_server.client() as other:
        yours = other.call("criticalthinking", doubted(1))
    again = agent.call("criticalthinking", doubted(2, episodeId=mine["episodeId"]))
    unnamed = agent.call("criticalthinking", doubted(2))

    assert mine["episodeId"] != yours["episodeId"]
    assert again["thoughtHistoryLength"] == 2
    assert unnamed.outcome == "isError"
    assert "episodeId" in unnamed.text
    assert "No episode" in current_thinking(agent)


def test_a_first_critical_thought_sent_again_is_recorded_once(agent):
    first, again = (
        agent.call("criticalthinking", doubted(1, requestId="the-same-request")) for _ in range(2)
    )

    assert again.structured == first.structured


def test_who_asks_for_the_current_episode_of_a_list_that_is_behind_is_told_so(data_dir, tokens):
    with (
        HttpServer(data_dir, *ALL, *tokens, "--no-worker") as server,
        server.client(token="alices-secret") as alice,
    ):
        alice.call("criticalthinking", doubted(1, episodeId="plan"))
        answer = alice.ask("resources/read", {"uri": "thinking://current"})

    assert is_one_clear_sentence(answer["error"]["message"])


# kodegen


def test_a_session_goes_on_in_another_process(open_server, shared_data_dir):
    with open_server.client() as client:
        first = client.call("sequential_thinking", snake("one", 1))

    with HttpServer(shared_data_dir, *ALL) as other, other.client() as client:
        second = client.call("sequential_thinking", snake("two", 2, session_id=first["session_id"]))
    with open_server.client() as client:
        third = client.call(
            "sequential_thinking", snake("three", 3, session_id=first["session_id"])
        )

    assert (second["thought_history_length"], third["thought_history_length"]) == (2, 3)
    assert texts(replay(first["chain_id"], data_dir=shared_data_dir)) == ["one", "two", "three"]


def test_calls_on_one_session_over_two_servers_count_each_thought_once(
    open_server, shared_data_dir
):
    def think(server, number, session_id):
        with server.client() as client:
            return client.call("sequential_thinking", snake("t", number, session_id=session_id))

    with HttpServer(shared_data_dir, *ALL) as other:
        session = think(open_server, 1, None)["session_id"]
        with ThreadPoolExecutor(8) as threads:
            servers = [open_server, other] * 10
            answers = threads.map(lambda server: think(server, 2, session), servers)
            lengths = sorted(answer["thought_history_length"] for answer in answers)

    assert lengths == [*range(2, 22)]


def test_sessions_without_a_name_do_not_mix(agent):
    one, other = (agent.call("sequential_thinking", snake("one", 1)) for _ in range(2))

    unnamed = agent.call("sequential_thinking", snake("two", 2))

    assert one["session_id"] != other["session_id"]
    assert unnamed.outcome == "isError"
    assert "session_id" in unnamed.text


def current_thinking(client):
    answer = client.ask("resources/read", {"uri": "thinking://current"})
    return answer["result"]["contents"][0]["text"]


def doubted(number, text="t", **others):
    doubts = {
        "confidence": 0.5,
        "assumptions": [],
        "critique": "weak",
        "counterArgument": "not so",
        "nextStepRationale": "to see",
    }
    return {**thought(text, number), **doubts, **others}


def snake(text, number, **others):
    return {
        "thought": text,
        "thought_number": number,
        "total_thoughts": 3,
        "next_thought_needed": True,
        **others,
    }
