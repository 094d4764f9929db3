"""An operator rebuilds, compares, switches, goes back, drops and checks, by the command line."""

import json
import signal
import subprocess

import pytest

from tests.acceptance.client import REPOSITORY, Server, clean_environment
from tests.acceptance.product import (
    READ_MODELS,
    command_line,
    database,
    eventually,
    is_one_clear_sentence,
    lines_of,
    run,
    run_well,
    runner,
    wait_until_projected,
)

THOUGHTS = 12


@pytest.fixture
def filled(data_dir):
    """A ledger of one chain whose read models are up to date; a worker keeps them so."""
    with Server(data_dir, "--no-worker") as server:
        first = server.think("the first", number=1)
        for number in range(2, THOUGHTS + 1):
            server.think(f"number {number}", number=number, chain_id=first["chain_id"])
        with runner(data_dir):
            wait_until_projected(data_dir, THOUGHTS)
            yield data_dir


def projections(data_dir, *arguments):
    printed = run_well("projections", *arguments, "--json", data_dir=data_dir)
    return [json.loads(line) for line in lines_of(printed)]


def states(data_dir, name="thoughts"):
    rows = projections(data_dir, "status")
    return {row["generation"]: row["state"] for row in rows if row["name"] == name}


def test_a_read_model_is_rebuilt_compared_switched_switched_back_and_dropped(filled):
    (built,) = projections(filled, "rebuild", "thoughts")
    assert (built["generation"], built["events"]) == (2, THOUGHTS + 1)
    assert states(filled) == {1: "live", 2: "building"}

    (compared,) = projections(filled, "diff", "thoughts")
    assert compared["equal"]
    assert compared["live"]["position"] == compared["other"]["position"] == THOUGHTS + 1

    (promoted,) = projections(filled, "promote", "thoughts")
    assert (promoted["generation"], promoted["replaced"]) == (2, 1)
    assert states(filled) == {1: "kept", 2: "live"}

    (rolled_back,) = projections(filled, "rollback", "thoughts")
    assert (rolled_back["generation"], rolled_back["replaced"]) == (1, 2)
    assert states(filled) == {1: "live", 2: "kept"}

    (retired,) = projections(filled, "retire", "thoughts")
    assert retired == {"name": "thoughts", "retired": 2}
    assert states(filled) == {1: "live"}


def test_people_read_what_was_done_and_what_is_next(filled):
    built = run_well("projections", "rebuild", "thoughts", "terms", "--promote", data_dir=filled)
    compared = run_well("projections", "diff", "thoughts", data_dir=filled)
    checked = run_well("projections", "check", "terms", data_dir=filled)

    for words in ("thoughts_g2", "terms_g2", f"{THOUGHTS + 1} events", "rollback thoughts"):
        assert words in built
    assert "no row and no column differs" in compared
    assert checked.count("equal") == 3


def test_a_dry_run_shows_what_would_change_and_leaves_nothing(filled):
    with database(filled) as connection:
        connection.execute("UPDATE live.thoughts SET total_thoughts = 99 WHERE sequence = 2")

    (compared,) = projections(filled, "rebuild", "thoughts", "--dry-run")

    changed = {table["table"]: table["changed"] for table in compared["tables"]}
    assert changed == {"memories": 0, "thought_chains": 0, "thoughts": 1}
    assert states(filled) == {1: "live"}


def test_a_read_model_that_is_not_what_the_log_says_is_found(filled):
    assert [row["equal"] for row in projections(filled, "check", "thoughts")] == [True]
    with database(filled) as connection:
        connection.execute("UPDATE live.memories SET text = 'something else' WHERE position = 3")

    done = run("projections", "check", "thoughts", "--json", data_dir=filled)

    assert done.returncode == 3
    digests, differences = (json.loads(line) for line in lines_of(done.stdout))
    assert [row["live"]["table"] for row in digests["tables"] if row["live"] != row["fresh"]] == [
        "memories"
    ]
    (sample,) = next(t for t in differences["tables"] if t["table"] == "memories")["samples"]
    assert (sample["live"]["text"], sample["other"]["text"]) == ("something else", "number 2")
    assert "rebuild thoughts --fresh --promote" in done.stderr
    assert states(filled) == {1: "live"}


def test_a_check_takes_nothing_for_granted_that_was_begun_before(filled):
    run_well("projections", "rebuild", "thoughts", data_dir=filled)
    with database(filled) as connection:
        for schema in ("thoughts_g1", "thoughts_g2"):
            connection.execute(f"UPDATE {schema}.thoughts SET thought = 'forged'")

    checked = run("projections", "check", "thoughts", data_dir=filled)
    mended = run("projections", "rebuild", "thoughts", "--fresh", "--promote", data_dir=filled)

    assert (checked.returncode, mended.returncode) == (3, 0)
    assert [row["equal"] for row in projections(filled, "check", "thoughts")] == [True]
    assert states(filled) == {1: "kept", 3: "live"}


@pytest.mark.parametrize("command", [("check",), ("rebuild", "--dry-run")], ids=" ".join)
def test_nobody_reads_what_it_says_and_nothing_is_left(filled, command):
    with subprocess.Popen(
        command_line("projections", *command, "thoughts", data_dir=filled),
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        env=clean_environment({}),
    ) as process:
        process.stdout.close()
        process.wait(30)

    assert states(filled) == {1: "live"}


def test_when_all_is_current_there_is_nothing_to_rebuild(filled):
    done = run("projections", "rebuild", data_dir=filled)

    assert done.returncode == 0
    assert is_one_clear_sentence(done.stderr)
    assert states(filled) == {1: "live"}


def test_without_a_worker_it_is_said_that_nobody_keeps_it_up(data_dir):
    with Server(data_dir, "--no-worker") as server:
        server.think("one", number=1)
    run_well("chains", data_dir=data_dir)

    done = run("projections", "rebuild", "thoughts", "--promote", data_dir=data_dir)

    assert done.returncode == 0
    assert "projections run" in done.stderr


def test_what_cannot_be_is_refused_and_changes_nothing(filled):
    for arguments in (
        ("rebuild", "nothing"),
        ("diff", "thoughts"),
        ("promote", "thoughts"),
        ("promote", "thoughts", "--generation", "7"),
        ("rollback", "thoughts"),
        ("retire", "thoughts", "--generation", "1"),
        ("rebuild", "thoughts", "--rate", "0"),
        ("rebuild", "thoughts", "--dry-run", "--promote"),
        ("check", "nothing"),
    ):
        done = run("projections", *arguments, data_dir=filled)

        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr
        assert done.stderr
    assert states(filled) == {1: "live"}


def test_interrupted_it_goes_on_where_it_stopped(filled):
    command = command_line(*("projections", "rebuild", "thoughts", "--rate", "5"), data_dir=filled)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        env=clean_environment({}),
        text=True,
    ) as slow:
        assert "from position 0" in slow.stdout.readline()
        with database(filled) as connection:
            query = "SELECT position > 0 FROM thoughts_g2.checkpoint"
            eventually(lambda: connection.execute(query).fetchone()[0], 10, "it has begun")
        slow.send_signal(signal.SIGINT)
        assert slow.wait(10) == 130

    (built,) = projections(filled, "rebuild", "thoughts")

    assert built["generation"] == 2
    assert 0 < built["events"] < THOUGHTS + 1
    assert built["position"] == THOUGHTS + 1


def test_status_is_watched(filled):
    command = command_line(
        *("projections", "status", "--watch", "--every", "0.1", "--json"), data_dir=filled
    )
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=REPOSITORY, env=clean_environment({}), text=True
    ) as watching:
        rows = [json.loads(watching.stdout.readline()) for _ in range(3 * (len(READ_MODELS) + 1))]
        rows = [row for row in rows if row["name"] in READ_MODELS]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 130

    assert [row["name"] for row in rows] == sorted(READ_MODELS) * 3
    assert all(row["leader"] for row in rows)


def test_a_watch_whose_session_is_ended_connects_again_and_goes_on(filled):
    command = command_line(
        *("projections", "status", "--watch", "--every", "0.1", "--json"), data_dir=filled
    )
    with (
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            env=clean_environment({}),
            text=True,
        ) as watching,
        database(filled) as connection,
    ):
        assert watching.stdout.readline()
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = 'thought_ledger_reader'"
        )
        said = watching.stderr.readline()
        rows = [json.loads(watching.stdout.readline()) for _ in range(40)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 130
        rest = watching.stderr.read()

    assert "ended the session" in said
    assert is_one_clear_sentence(said)
    assert rest == ""
    assert {row["name"] for row in rows} >= READ_MODELS


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300", "0", "-1"])
def test_a_pace_that_nobody_can_keep_is_refused(seconds, tmp_path):
    refused = run("projections", "status", "--watch", f"--every={seconds}", data_dir=tmp_path)

    assert refused.returncode == 2
    assert "--every" in refused.stderr
    assert "Traceback" not in refused.stderr
