"""Embedding beside a real server: started when needed, gone with it, seen by operators."""

import json
import os
import signal
import subprocess
import sys

from projections.embeddings import status
from tests.acceptance.client import REPOSITORY, Server, clean_environment
from tests.acceptance.product import database, eventually, lines_of, run, run_well

SECONDS_MAX = 30
MODEL = {"THOUGHT_LEDGER_EMBEDDING_MODEL": "hashing:32"}
HEAVY = {"torch", "sentence_transformers", "transformers", "numpy"}
IMPORT_ALL = """
import importlib, pkgutil, sys
import ledger, mcp_server, projections
for package in (ledger, mcp_server, projections):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name.rpartition(".")[2] not in ("sentence", "__main__"):
            importlib.import_module(module.name)
print(*sys.modules)
"""


def embedded(connection, thoughts):
    """Waits until so many thoughts have vectors; what is said then."""

    def is_done():
        found = status.look(connection)
        return found if found.thoughts == thoughts and not found.behind else None

    return eventually(is_done, SECONDS_MAX, f"{thoughts} vectors")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(found):
    return int(found.process.partition("@")[0])


def test_thoughts_are_embedded_beside_a_server_by_a_process_that_comes_and_goes_with_it(data_dir):
    with Server(data_dir, env=MODEL) as server, database(data_dir) as connection:
        server.think("we moved the schema without downtime")
        found = embedded(connection, 1)
        assert (found.state, found.model, found.space) == ("ready", "hashing:32", 1)

        os.kill(pid_of(found), signal.SIGKILL)
        server.think("and then the data", number=2)
        again = embedded(connection, 2)
        assert pid_of(again) != pid_of(found)

        listed = json.loads(run_well("projections", "vectors", "list", "--json", data_dir=data_dir))
        assert (listed["state"], listed["thoughts"], listed["dimensions"]) == ("live", 2, 32)
        assert "hashing:32" in run_well("projections", "status", data_dir=data_dir)
        findings = map(json.loads, lines_of(run("doctor", "--json", data_dir=data_dir).stdout))
        (checked,) = [finding for finding in findings if finding["check"] == "embeddings"]
        assert checked["state"] == "ok"

        server.kill()
        eventually(lambda: not is_running(pid_of(again)), SECONDS_MAX, "its end")


def test_a_wrong_dimension_keeps_nothing_but_embedding_and_is_said(data_dir):
    wrong = MODEL | {"THOUGHT_LEDGER_EMBEDDING_DIMENSIONS": "384"}
    with Server(data_dir, env=wrong) as server, database(data_dir) as connection:
        assert server.think("one")["thoughtHistoryLength"] == 1
        eventually(lambda: status.look(connection).state == "failed", SECONDS_MAX, "a refusal")
        found = status.look(connection)
        assert server.think("two", number=2)["thoughtHistoryLength"] == 2

    assert "384" in found.reason
    assert found.space is None


def test_switched_off_nothing_is_started_and_status_says_so(server, shared_data_dir):
    server.think("one")
    with database(shared_data_dir) as connection:
        eventually(lambda: status.look(connection).state == "off", SECONDS_MAX, "a word of it")
        assert status.look(connection).process is None

    done = run("projections", "vectors", "rollback", data_dir=shared_data_dir)

    assert done.returncode == 2
    assert "vectors list" in done.stderr


def test_no_module_but_one_imports_what_models_need():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=REPOSITORY,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )

    assert not HEAVY & set(done.stdout.split())
