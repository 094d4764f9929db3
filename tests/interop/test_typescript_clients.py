"""The TypeScript SDKs as clients, over stdio and HTTP: every tool of every toolset."""

import contextlib
import json
import sys

import pytest

from mcp_server.choice import TOOLSETS
from tests.acceptance.client import REPOSITORY, Server, thought
from tests.acceptance.http_server import LEGACY, MODERN, HttpServer
from tests.acceptance.product import wait_until_projected
from tests.interop.node import HERE, run_node

OFFERED = {"stdio": TOOLSETS, "http": TOOLSETS}
SDKS = {"1": LEGACY, "2": MODERN}

# Its text is a transcript for people.
NARRATED = ("criticalthinking",)

CHAIN = "${start_thought_chain.chain_id}"
DOUBTS = {"confidence": 0.5, "assumptions": ["a"], "critique": "c", "counterArgument": "d"}
CALLS = {
    "compat": [("sequentialthinking", thought("one", 1))],
    "chains": [
        ("start_thought_chain", {"title": "which index?"}),
        ("add_thought", thought("one", 1, chain_id=CHAIN, **DOUBTS)),
        ("add_thought", thought("two", 2, chain_id=CHAIN)),
        ("revise_thought", {"chain_id": CHAIN, "thought_number": 1, "revised_thought": "uno"}),
        (
            "branch_thought",
            {"chain_id": CHAIN, "from_thought_number": 1, "branch_id": "b", "thought": "or"},
        ),
        ("close_branch", {"chain_id": CHAIN, "branch_id": "b", "outcome": "kept"}),
        ("pause_thought_chain", {"chain_id": CHAIN, "reason": "lunch"}),
        ("resume_thought_chain", {"chain_id": CHAIN}),
        ("abandon_thought_chain", {"chain_id": CHAIN, "thought_number": 2}),
        ("complete_thought_chain", {"chain_id": CHAIN, "conclusion": "both"}),
        ("get_thought_chain", {"chain_id": CHAIN}),
        ("list_thought_chains", {"limit": 5}),
        ("get_related_chains", {"query": "lunch", "include": ["paused"]}),
    ],
    "critical": [("criticalthinking", thought("one", 1, more=False, **DOUBTS))],
    "kodegen": [
        (
            "sequential_thinking",
            {
                "thought": "one",
                "thought_number": 1,
                "total_thoughts": 1,
                "next_thought_needed": False,
            },
        )
    ],
    "memory": [
        ("search_memories", {"query": "plan", "explain": True}),
        ("record_feedback", {"chain_id": CHAIN, "signal": "confirmed", "note": "works"}),
        ("reasoning_patterns", {"limit": 5}),
        ("related_entities", {"query": "src/plan.py", "kind": "file"}),
    ],
}


@contextlib.contextmanager
def stdio_server(data_dir, toolsets):
    """How a client starts the server."""
    arguments = ["serve", "--no-worker", "--data-dir", str(data_dir), "--toolsets", toolsets]
    yield {
        "command": sys.executable,
        "args": ["-m", "mcp_server", *arguments],
        "cwd": str(REPOSITORY),
    }


@contextlib.contextmanager
def http_server(data_dir, toolsets):
    """Where a client finds the server."""
    with HttpServer(data_dir, "--no-worker", "--toolsets", toolsets) as server:
        yield {"url": server.url}


SERVERS = {"stdio": stdio_server, "http": http_server}


def call(name, arguments):
    return {"method": "callTool", "params": {"name": name, "arguments": arguments}}


def ask(sdk, server, requests):
    """What a client of that SDK gets from the server."""
    asked = {"sdk": sdk, "server": server, "requests": requests}
    done = run_node(HERE / "client.mjs", stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("transport", SERVERS)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_client_calls_every_tool(sdk, transport, shared_data_dir):
    calls = [asked for toolset in OFFERED[transport] for asked in CALLS[toolset]]

    with SERVERS[transport](shared_data_dir, ",".join(OFFERED[transport])) as server:
        told = ask(sdk, server, [call(*asked) for asked in calls])

    assert told["protocol"] == SDKS[sdk]
    assert told["server"]["name"] == "thought-ledger"
    described = {tool["name"]: tool for tool in told["tools"]}
    assert described.keys() == {name for name, _ in calls}
    for (name, _), answer in zip(calls, told["answers"], strict=True):
        assert_answered(described[name], answer)


def assert_answered(tool, answer):
    """It is no error, which it also were if the client found it against the tool's schema."""
    assert "thrown" not in answer, answer["thrown"]
    assert not answer.get("isError"), answer["content"]
    (content,) = answer["content"]
    if tool["name"] in NARRATED:
        assert answer["structuredContent"]
        assert content["text"].startswith("Thought 1 of ")
    else:
        assert json.loads(content["text"]) == answer["structuredContent"]


TEMPLATE = "thought-chain://{chain_id}"

# The older protocol has updates over a connection alone, which there is none of over HTTP.
WATCHING = [("1", "stdio"), ("2", "stdio"), ("2", "http")]


@pytest.fixture(scope="module")
def chain(shared_data_dir):
    """A chain that is in the read models."""
    with Server(shared_data_dir, "--toolsets", "chains") as server:
        chain_id = server.call("start_thought_chain", {"title": "which index?"})["chain_id"]
        added = server.call("add_thought", thought("a b-tree", 1, chain_id=chain_id))
        wait_until_projected(shared_data_dir, added["position"])
    return chain_id


@pytest.mark.parametrize("transport", SERVERS)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_client_reads_resources_and_prompts(sdk, transport, shared_data_dir, chain):
    uri, named = f"thought-chain://{chain}", {"chain_id": chain}
    begun = {
        "ref": {"type": "ref/prompt", "name": "resume_chain"},
        "argument": {"name": "chain_id", "value": chain[:-1]},
    }
    requests = [
        ("listResources", {}),
        ("listResourceTemplates", {}),
        ("readResource", {"uri": uri}),
        ("listPrompts", {}),
        ("getPrompt", {"name": "resume_chain", "arguments": named}),
        ("complete", begun),
    ]

    with SERVERS[transport](shared_data_dir, "chains") as server:
        answers = ask(sdk, server, [{"method": m, "params": params} for m, params in requests])

    listed, templates, read, prompts, prompt, completed = answers["answers"]
    assert uri in {found["uri"] for found in listed["resources"]}
    assert TEMPLATE in {found["uriTemplate"] for found in templates["resourceTemplates"]}
    assert "a b-tree" in read["contents"][0]["text"]
    assert "resume_chain" in {found["name"] for found in prompts["prompts"]}
    assert any("a b-tree" in said["content"]["text"] for said in prompt["messages"])
    assert completed["completion"]["values"] == [chain]


@pytest.mark.parametrize(("sdk", "transport"), WATCHING)
def test_a_client_is_told_that_a_chain_grows(sdk, transport, shared_data_dir):
    uri = f"thought-chain://{CHAIN}"
    requests = [
        call("start_thought_chain", {"title": "which index?"}),
        {"method": "watch", "params": {"uri": uri}},
        call("add_thought", thought("a b-tree", 1, chain_id=CHAIN)),
        {"method": "updated", "params": {"uri": uri}},
    ]

    with SERVERS[transport](shared_data_dir, "chains") as server:
        answers = ask(sdk, server, requests)["answers"]

    assert [answer["thrown"] for answer in answers if "thrown" in answer] == []
