"""The MCP Inspector's command line: its lint of schemas, and calls in both eras."""

import json
import sys

import pytest

from mcp_server.choice import TOOLSETS
from tests.acceptance.client import REPOSITORY, thought
from tests.acceptance.http_server import HttpServer
from tests.interop.node import MODULES, run_node

INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
OFFERS = [(), *(("--toolsets", name) for name in TOOLSETS)]
THOUGHT = json.dumps(thought("one", 1))


def inspect(*arguments):
    """What the Inspector prints, which finds nothing to warn of."""
    done = run_node(INSPECTOR, "--cli", *arguments, "--format", "json")
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert done.stderr == ""
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer[-1] if offer else "the default")
def test_every_schema_is_portable(offer, shared_data_dir):
    command = [sys.executable, "-m", "mcp_server", "serve", "--no-worker"]
    command += ["--data-dir", shared_data_dir, *offer, "--cwd", REPOSITORY]

    told = inspect(*command, "--method", "tools/list", "--strict")

    assert told["tools"]


@pytest.fixture(scope="module")
def url(shared_data_dir):
    with HttpServer(shared_data_dir, "--no-worker") as server:
        yield server.url


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_tool_is_called_over_http(era, url):
    told = inspect(
        *(url, "--transport", "http", "--protocol-era", era, "--method", "tools/call"),
        *("--tool-name", "sequentialthinking", "--tool-args-json", THOUGHT),
    )

    assert told["structuredContent"]["thoughtNumber"] == 1
