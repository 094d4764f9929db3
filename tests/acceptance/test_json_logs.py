"""``serve`` and its worker write every line as JSON when asked to, and nothing beside it."""

import contextlib
import json
import re
import subprocess

import pytest

from tests.acceptance.client import (
    EXIT_SECONDS_MAX,
    REPOSITORY,
    Server,
    clean_environment,
    thought,
)
from tests.acceptance.http_server import HttpServer
from tests.acceptance.product import (
    READ_MODELS,
    assert_cannot_answer,
    command_line,
    database,
    eventually,
    lines_of,
    run,
    run_well,
)

JSON = ["--log-format", "json"]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
TAMPER = """
    UPDATE ledger.events
       SET state = state || 'x'
     WHERE originator_id = %s AND topic = 'thought.added'
"""
SELECT_LEADERS = """
    SELECT pg_terminate_backend(pid)
      FROM pg_locks
     WHERE locktype = 'advisory' AND classid = 74110003 AND granted
"""


def told(stderr):
    """Every line, each of which has to be an object with what all have."""
    objects = [json.loads(line) for line in lines_of(stderr)]
    for each in objects:
        assert list(each)[:4] == ["time", "level", "logger", "message"]
        assert TIME.fullmatch(each["time"])
    return objects


def of(event, objects):
    return [each for each in objects if each.get("event") == event]


class JsonServer(HttpServer):
    """Says where it listens within an object."""

    def _listening(self):
        self.wait_for('"listening"')
        (said,) = of("listening", told(self.stderr()))
        return said["url"]


def damage(data_dir, chain):
    """Change the log behind its back, so that the chain cannot be applied."""
    with database(data_dir) as connection:
        connection.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
        connection.execute(TAMPER, [chain])


def test_a_server_and_its_worker_say_everything_in_json(data_dir):
    with JsonServer(data_dir, "--no-worker", *JSON) as server, server.client() as client:
        chain = client.think(thought("one"))["chain_id"]
    damage(data_dir, chain)

    with JsonServer(data_dir, *JSON) as server, database(data_dir) as connection:
        server.wait_for('"parked"')
        eventually(lambda: len(of("leads", told(server.stderr()))) == len(READ_MODELS))
        connection.execute(SELECT_LEADERS)
        eventually(lambda: len(of("leads", told(server.stderr()))) == 2 * len(READ_MODELS))
        assert server.end() == 0
        objects = told(server.stderr())

    assert {each["logger"] for each in objects} == {"thought-ledger", "projections"}
    assert {each["read_model"] for each in of("leads", objects)} == READ_MODELS
    assert {each["generation"] for each in of("leads", objects)} == {1}
    assert all(each["error"] for each in of("database_failed", objects))
    assert len(of("database_failed", objects)) == len(READ_MODELS)
    parked = of("parked", objects)
    assert {each["chain_id"] for each in parked} == {chain}
    assert all(each["position"] and "Tampered" in each["error"] for each in parked)


def test_a_worker_alone_does_so_by_its_environment(data_dir):
    with HttpServer(data_dir) as server, server.client() as client:
        client.think(thought("one"))
        eventually(lambda: leaders(data_dir) == len(READ_MODELS))  # those of the server's worker
        with worker(data_dir, {"THOUGHT_LEDGER_LOG_FORMAT": "json"}) as process:
            objects = told("".join(process.stderr.readline() for _ in READ_MODELS))

    assert {each["read_model"] for each in of("stands_by", objects)} == READ_MODELS


@contextlib.contextmanager
def worker(data_dir, env):
    process = subprocess.Popen(
        command_line("projections", "run", data_dir=data_dir),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        env=clean_environment(env),
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(EXIT_SECONDS_MAX) == 0


def leaders(data_dir):
    rows = map(json.loads, lines_of(run_well("projections", "status", "--json", data_dir=data_dir)))
    return sum(row.get("leader_pid") is not None for row in rows)


def test_over_stdio_too(data_dir):
    url = ["--database-url", "postgresql://nobody@127.0.0.1:1/none"]
    with Server(data_dir, *JSON, *url, exit_code=2) as server:
        assert server.think().outcome == "isError"
        server.close()
        (said,) = told(server.stderr())

    assert (said["event"], said["level"]) == ("database_unavailable", "error")


def test_a_refusal_before_it_serves_is_an_object(data_dir):
    done = run("serve", "--transport", "http", "--host", "192.0.2.1", *JSON, data_dir=data_dir)

    (said,) = told(done.stderr)
    assert (done.returncode, said["event"]) == (2, "refused")


def test_a_form_that_there_is_not_is_refused(data_dir):
    env = {"THOUGHT_LEDGER_LOG_FORMAT": "xml"}

    assert "xml" in assert_cannot_answer(run("projections", "run", data_dir=data_dir, env=env))


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_boxes_are_no_json(data_dir, transport):
    arguments = ["serve", "--transport", transport, "--echo-thoughts", *JSON]

    assert run(*arguments, data_dir=data_dir).returncode == 2
