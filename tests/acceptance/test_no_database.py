"""What each door says when there is no database, or one that this program does not know."""

import contextlib
import socket

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import (
    assert_cannot_answer,
    count_events,
    database,
    is_one_clear_sentence,
    run,
    run_well,
    temporary_data_dir,
)

A_CHAIN = "00000000-0000-4000-8000-000000000000"
ASKING = [
    ["replay", A_CHAIN],
    ["chains"],
    ["memory"],
    ["pause", A_CHAIN],
    ["resume", A_CHAIN],
    ["complete", A_CHAIN],
    ["abandon", A_CHAIN],
    ["migrate"],
    ["projections", "run"],
    ["projections", "status"],
]
# A newer program's row, whatever else the table asks for.
INSERT_NEWER_MIGRATION = """
    INSERT INTO ledger.migrations
    SELECT (jsonb_populate_record(known, '{"name": "9999_from_the_future.sql"}')).*
    FROM ledger.migrations AS known
    ORDER BY name DESC
    LIMIT 1
"""


def name_of(command):
    return " ".join(part for part in command if part != A_CHAIN)


@pytest.mark.parametrize("below", ["", "inside"], ids=["a file", "below a file"])
def test_a_data_directory_that_cannot_be_made_is_one_sentence(tmp_path, below):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")

    done = run("chains", data_dir=in_the_way / below)

    assert_cannot_answer(done)
    assert in_the_way.read_text() == "not a directory"


def test_a_data_directory_where_nobody_may_write_is_one_sentence():
    assert_cannot_answer(run("chains", data_dir="/proc/thought-ledger"))


@pytest.mark.parametrize("command", ASKING, ids=name_of)
def test_a_database_that_refuses_connections_is_one_sentence(command):
    url = f"postgresql://someone:s3cret@127.0.0.1:{unused_port()}/ledger"

    said = assert_cannot_answer(run(*command, "--database-url", url))

    assert "s3cret" not in said


def test_a_database_that_never_answers_is_one_sentence():
    with listening() as port:
        url = f"postgresql://someone:s3cret@127.0.0.1:{port}/ledger"

        said = assert_cannot_answer(run("chains", env={"THOUGHT_LEDGER_DATABASE_URL": url}))

    assert "s3cret" not in said


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/x", "postgresql://[broken"])
def test_what_is_no_database_url_is_one_sentence(url):
    assert_cannot_answer(run("chains", "--database-url", url))


def test_a_server_without_a_database_shakes_hands_and_says_so_in_each_call(tmp_path):
    url = f"postgresql://someone:s3cret@127.0.0.1:{unused_port()}/ledger"

    with Server(tmp_path, database_url=url, exit_code=2) as server:
        tools = server.request("tools/list")["result"]["tools"]
        answer = server.think("one", number=1, timeout=60)

    assert "sequentialthinking" in [tool["name"] for tool in tools]
    assert answer.outcome == "isError"
    assert is_one_clear_sentence(answer.text), answer.text
    assert "s3cret" not in answer.text


@pytest.fixture(scope="module")
def newer_data_dir():
    """A ledger that a newer program has migrated."""
    with temporary_data_dir() as path:
        run_well("migrate", data_dir=path)
        with database(path) as connection:
            connection.execute(INSERT_NEWER_MIGRATION)
        yield path


@pytest.mark.parametrize("command", ASKING, ids=name_of)
def test_a_database_of_a_newer_program_is_refused_by_every_command(newer_data_dir, command):
    assert_cannot_answer(run(*command, data_dir=newer_data_dir))


def test_a_database_of_a_newer_program_takes_no_import(newer_data_dir, tmp_path):
    traces = tmp_path / "traces.jsonl"
    traces.write_text('{"chain": "c", "content": "a title", "op": "start", "src": "s"}\n')

    done = run("import", traces, data_dir=newer_data_dir)

    assert_cannot_answer(done)
    with database(newer_data_dir) as connection:
        assert count_events(connection) == 0


def test_a_database_of_a_newer_program_takes_no_thoughts(newer_data_dir):
    with Server(newer_data_dir, exit_code=2) as server:
        refused = server.think("one", number=1)

        assert refused.outcome == "isError"
        assert is_one_clear_sentence(refused.text), refused.text
        with database(newer_data_dir) as connection:
            assert count_events(connection) == 0


def unused_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def listening():
    """A port that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield silent.getsockname()[1]
