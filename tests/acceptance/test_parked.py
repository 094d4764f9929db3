"""The operators' door to parked chains: seen, shown, retried and skipped by command."""

import json

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import (
    READ_MODELS,
    assert_cannot_answer,
    database,
    lines_of,
    run,
    run_well,
    temporary_data_dir,
)

A_CHAIN = "00000000-0000-4000-8000-000000000000"
INSERT_EVENT = """
    INSERT INTO ledger.events (
        originator_id, originator_version, topic, state, recorded_at, actor
    ) VALUES (%s, 4, 'thought.added', 'no header', now(), 'mallory')
"""


@pytest.fixture(scope="module")
def parked():
    """A data directory and a chain in it whose fourth event cannot be read, parked."""
    with temporary_data_dir() as data_dir, database(data_dir) as admin:
        with Server(data_dir) as server:
            chain = server.think("one", number=1)["chain_id"]
            server.think("two", number=2)
        admin.execute(INSERT_EVENT, [chain])
        run_well("chains", data_dir=data_dir)
        yield data_dir, chain


@pytest.fixture
def data_dir(parked):
    return parked[0]


@pytest.fixture
def chain(parked):
    return parked[1]


def listed(data_dir, *arguments):
    printed = run_well("projections", "parked", *arguments, "--json", data_dir=data_dir)
    return [json.loads(line) for line in lines_of(printed)]


def test_what_is_parked_is_listed_with_why_and_since_when(data_dir, chain):
    rows = listed(data_dir)
    printed = run_well("projections", "parked", "terms", data_dir=data_dir)

    assert [row["name"] for row in rows] == sorted(READ_MODELS)
    for row in rows:
        assert (row["kind"], row["chain_id"], row["version"]) == ("parked", chain, 4)
        assert (row["generation"], row["waiting"]) == (1, 0)
        assert row["error"].startswith("TamperedEventError")
        assert row["parked_at"]
    assert chain in printed
    assert len(lines_of(printed)) == 2


def test_a_parked_chain_is_shown_with_what_to_do(data_dir, chain):
    printed = run_well("projections", "show", "thoughts", chain, data_dir=data_dir)
    told = json.loads(
        run_well("projections", "show", "thoughts", chain, "--json", data_dir=data_dir)
    )

    assert "TamperedEventError" in printed
    assert f"projections retry thoughts {chain}" in printed
    assert f"projections skip thoughts {chain}" in printed
    assert told["parked"]["chain_id"] == chain
    assert told["event"]["unreadable"]
    assert told["waiting_positions"] == []


@pytest.mark.parametrize("which", ["one", "all"])
def test_a_retry_that_fails_again_says_so_and_loses_nothing(data_dir, chain, which):
    before = listed(data_dir)

    done = run(
        "projections", "retry", "thoughts", chain if which == "one" else "--all", data_dir=data_dir
    )

    assert done.returncode == 3
    assert chain in done.stdout
    assert "TamperedEventError" in done.stdout
    assert listed(data_dir) == before


def test_a_skipped_event_is_kept_in_mind_with_who_and_why(data_dir, chain):
    done = run(
        "projections",
        "skip",
        "terms",
        chain,
        "--reason",
        "never an event",
        "--json",
        data_dir=data_dir,
        env={"THOUGHT_LEDGER_ACTOR": "ada"},
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["parked"] is None
    (row,) = listed(data_dir, "terms")
    assert (row["kind"], row["chain_id"], row["version"]) == ("skipped", chain, 4)
    assert (row["reason"], row["skipped_by"]) == ("never an event", "ada")
    assert "never an event" in run_well("projections", "parked", data_dir=data_dir)
    nothing = run("projections", "retry", "terms", "--all", data_dir=data_dir)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    for command in (["retry"], ["show"], ["skip", "--reason", "again"]):
        done = run("projections", command[0], "terms", chain, *command[1:], data_dir=data_dir)
        assert chain in assert_cannot_answer(done)


@pytest.mark.parametrize(
    "arguments",
    [
        ["parked", "nonsense"],
        ["show", "nonsense", A_CHAIN],
        ["show", "thoughts", A_CHAIN],
        ["retry", "nonsense", "--all"],
        ["retry", "thoughts", A_CHAIN],
        ["skip", "thoughts", A_CHAIN, "--reason", "why"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_one_sentence(data_dir, arguments):
    assert_cannot_answer(run("projections", *arguments, data_dir=data_dir))


@pytest.mark.parametrize(
    "arguments",
    [
        ["retry", "thoughts"],
        ["retry", "thoughts", A_CHAIN, "--all"],
        ["retry", "thoughts", "not-a-uuid"],
        ["skip", "thoughts", A_CHAIN],
        ["skip", "thoughts", A_CHAIN, "--reason", " "],
    ],
    ids=" ".join,
)
def test_bad_arguments_are_refused(data_dir, arguments):
    done = run("projections", *arguments, data_dir=data_dir)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_where_nothing_is_parked_that_is_the_answer():
    with temporary_data_dir() as empty:
        done = run("projections", "parked", data_dir=empty)

    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing is parked" in done.stderr
