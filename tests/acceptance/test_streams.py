"""The command line on streams that are closed, full or of another encoding."""

import subprocess

import pytest

from tests.acceptance.client import REPOSITORY, clean_environment
from tests.acceptance.product import (
    COMMAND_SECONDS_MAX,
    chains,
    command_line,
    database,
    is_one_clear_sentence,
    run,
    run_well,
)

TRACE = """\
{"chain": "c", "op": "start", "content": "日本 → ü"}
{"chain": "c", "op": "append", "n": 1, "content": "日本 → ü"}
"""


@pytest.fixture
def imported(data_dir, tmp_path):
    """The id of a chain with letters of all sorts."""
    path = tmp_path / "trace.jsonl"
    path.write_text(TRACE, encoding="utf-8")
    run_well("import", path, data_dir=data_dir)
    (chain_id,) = chains(data_dir)
    return chain_id


def commands(chain_id):
    listings = [["replay", chain_id], ["chains"], ["projections", "status"]]
    return [*listings, *([*listing, "--json"] for listing in listings)]


def shell(redirected, arguments, data_dir):
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", *command_line(*arguments, data_dir=data_dir)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=clean_environment(),
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )


def test_letters_the_terminal_does_not_know_are_shown_some_other_way(imported, data_dir):
    for command in commands(imported):
        done = run(*command, data_dir=data_dir, env={"PYTHONIOENCODING": "ascii"})
        assert (done.returncode, done.stderr) == (0, ""), command


def test_a_closed_output_is_no_crash(imported, data_dir):
    for command in commands(imported):
        done = shell(">&-", command, data_dir)
        assert (done.returncode, done.stderr) == (0, ""), command


def test_with_a_closed_stderr_nothing_of_it_gets_into_the_output(data_dir):
    done = shell("2>&-", ["import", "/no/such/file"], data_dir)

    assert (done.returncode, done.stdout) == (2, "")


def test_a_server_whose_output_is_a_file_and_whose_stderr_is_a_pipe_starts(data_dir, tmp_path):
    for nowhere in ("/dev/null", tmp_path / "output"):
        done = shell(f"</dev/null >{nowhere}", ["serve", "--no-worker"], data_dir)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_under_the_output_is_said_in_one_sentence(imported, data_dir):
    for command in commands(imported):
        done = shell(">/dev/full", command, data_dir)
        assert done.returncode == 2, command
        assert is_one_clear_sentence(done.stderr), done.stderr


def test_a_database_that_forbids_writing_is_said_in_one_sentence(data_dir):
    with database(data_dir) as connection:
        connection.execute("CREATE DATABASE forbidden")
        connection.execute("ALTER DATABASE forbidden SET default_transaction_read_only = on")
        url = f"host={data_dir}/run port=5432 user=postgres dbname=forbidden"
        done = run("migrate", "--database-url", url)

    assert done.returncode == 2
    assert is_one_clear_sentence(done.stderr), done.stderr
