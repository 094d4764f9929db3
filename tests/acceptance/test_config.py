"""The snippet for a client starts a server that answers."""

import json
import subprocess

import pytest

from tests.acceptance.client import REPOSITORY, START_SECONDS_MAX, clean_environment
from tests.acceptance.product import run, run_well

CLIENTS = ["claude-code", "claude-desktop", "cursor", "vscode"]


def told(client, *options):
    """The one server of a snippet."""
    snippet = json.loads(run_well("config", client, *options))
    ((_, servers),) = snippet.items()
    ((name, server),) = servers.items()
    assert name == "sequential-thinking"
    return server


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_snippet_starts_is_a_server_that_shakes_hands(client, data_dir):
    server = told(client, "--session", "s", "--data-dir", str(data_dir))
    client_info = {"name": "t", "version": "0"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}

    done = subprocess.run(
        [server["command"], *server["args"]],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=START_SECONDS_MAX,
        cwd=REPOSITORY,
        env=clean_environment(),
        check=True,
    )

    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "thought-ledger"


def test_what_the_environment_says_is_told_to_a_client_that_does_not_have_it(tmp_path):
    env = {"THOUGHT_LEDGER_DATA_DIR": str(tmp_path), "THOUGHT_LEDGER_ACTOR": "eve"}

    done = run("config", "claude-desktop", env=env)

    (server,) = json.loads(done.stdout)["mcpServers"].values()
    assert server["args"] == ["serve", "--actor", "eve", "--data-dir", str(tmp_path)]


def test_a_database_url_of_the_environment_is_not_printed():
    done = run("config", "cursor", env={"THOUGHT_LEDGER_DATABASE_URL": "postgresql://u:pw@h/d"})

    assert "pw" not in done.stdout + done.stderr
    assert "THOUGHT_LEDGER_DATABASE_URL" in done.stderr


def test_vscode_calls_its_servers_by_another_key():
    assert set(json.loads(run_well("config", "vscode"))) == {"servers"}
    assert set(json.loads(run_well("config", "cursor"))) == {"mcpServers"}


def test_a_client_nobody_knows_is_refused():
    done = run("config", "clippy")

    assert done.returncode == 2
    assert "clippy" in done.stderr
