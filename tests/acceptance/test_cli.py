"""The command line: what it prints when all is well, and how it says that it cannot answer."""

import json
from datetime import datetime
from uuid import UUID

import pytest

from tests.acceptance.client import Server
from tests.acceptance.product import (
    READ_MODELS,
    assert_cannot_answer,
    chains,
    count_events,
    database,
    is_one_clear_sentence,
    lines_of,
    replay,
    run,
    run_well,
    texts,
    topics,
)

COMMANDS = [
    ["serve"],
    ["replay"],
    ["chains"],
    ["pause"],
    ["resume"],
    ["complete"],
    ["abandon"],
    ["feedback"],
    ["trust"],
    ["memory"],
    ["import"],
    ["migrate"],
    ["backup"],
    ["restore"],
    ["projections", "run"],
    ["projections", "status"],
    ["projections", "parked"],
    ["projections", "show"],
    ["projections", "retry"],
    ["projections", "skip"],
]
A_CHAIN = "00000000-0000-4000-8000-000000000000"
REPLAYED_FIELDS = {
    "type",
    "version",
    "thought_id",
    "parent_thought_id",
    "text",
    "branch_id",
    "actor",
    "recorded_at",
}


@pytest.fixture(scope="module")
def chain(shared_data_dir):
    """A chain of three thoughts, the last of which is on a branch."""
    with Server(shared_data_dir) as server:
        chain_id = server.think("one", number=1)["chain_id"]
        server.think("two", number=2)
        server.think("left", number=3, branchFromThought=1, branchId="left")
    return chain_id


# When all is well


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_of_each_command_names_where_the_ledger_is(command):
    printed = run_well(*command, "--help")

    assert "--data-dir" in printed
    assert "--database-url" in printed


def test_help_names_each_command():
    printed = run_well("--help")

    assert {command[0] for command in COMMANDS} <= set(printed.replace("│", " ").split())


def test_the_memory_of_a_tenant_of_any_name_is_shown(shared_data_dir):
    printed = run_well("memory", "--tenant", "na\udcffme", data_dir=shared_data_dir)

    assert printed.startswith("Thought ledger: 0 chains")


def test_replay_prints_every_event_in_order_with_who_when_and_what(chain, shared_data_dir):
    events = replay(chain, data_dir=shared_data_dir)

    expected = ["chain.started", "thought.added", "thought.added", "thought.branched"]
    assert topics(events) == expected
    assert texts(events) == ["one", "two", "left"]
    assert [event["version"] for event in events] == [1, 2, 3, 4]
    for event in events:
        assert set(event) >= REPLAYED_FIELDS
        assert event["actor"]
        assert datetime.fromisoformat(event["recorded_at"]).utcoffset() is not None
    ids = [event["thought_id"] for event in events]
    assert ids[0] is None
    assert len({UUID(id_) for id_ in ids[1:]}) == 3
    assert [event["parent_thought_id"] for event in events] == [None, None, ids[1], ids[1]]
    assert [event["branch_id"] for event in events] == [None, None, None, "left"]


def test_replay_at_a_version_shows_the_chain_as_it_was(chain, shared_data_dir):
    assert texts(replay(chain, "--at", 2, data_dir=shared_data_dir)) == ["one"]


def test_replay_for_people_shows_every_thought(chain, shared_data_dir):
    printed = run_well("replay", chain, data_dir=shared_data_dir)

    assert all(text in printed for text in ("one", "two", "left"))


def test_chains_lists_a_chain_with_its_status_and_thoughts(chain, shared_data_dir):
    row = chains(shared_data_dir)[chain]

    assert row["status"] == "active"
    assert row["thoughts"] == 3
    assert "title" in row
    assert chain in run_well("chains", data_dir=shared_data_dir)


def test_the_status_commands_change_the_chain_and_record_why(shared_data_dir):
    with Server(shared_data_dir) as server:
        chain = server.think("one", number=1)["chain_id"]
    expected = {"pause": "paused", "resume": "active", "complete": "completed"}
    seen = {}

    for command in expected:
        run_well(command, chain, "--reason", f"I {command}", data_dir=shared_data_dir)
        seen[command] = chains(shared_data_dir, "--all")[chain]["status"]
    run_well("resume", chain, data_dir=shared_data_dir)
    run_well("abandon", chain, "--reason", "I abandon", data_dir=shared_data_dir)

    assert seen == expected
    assert chains(shared_data_dir, "--all")[chain]["status"] == "abandoned"
    assert topics(replay(chain, data_dir=shared_data_dir))[2:] == [
        "chain.paused",
        "chain.resumed",
        "chain.completed",
        "chain.resumed",
        "chain.abandoned",
    ]


def test_status_of_the_projections_tells_position_and_lag(chain, shared_data_dir):
    run_well("chains", data_dir=shared_data_dir)

    printed = run_well("projections", "status", "--json", data_dir=shared_data_dir)

    status = [json.loads(line) for line in lines_of(printed)]
    assert all(f'"{field}"' in printed for field in ("position", "lag_events", "lag_seconds"))
    status = [row for row in status if row["name"] != "embeddings"]
    assert [row["name"] for row in status] == sorted(READ_MODELS)
    assert all(row["position"] == row["head"] > 0 for row in status)


def test_trust_is_shown_with_what_it_rests_on_and_as_it_was(shared_data_dir):
    with Server(shared_data_dir, "--no-worker") as server:
        chain_id = server.think("one", more=False)["chain_id"]
    said = run_well(
        *("feedback", chain_id, "--corrected", "--note", "off by one", "--json"),
        data_dir=shared_data_dir,
    )
    position = json.loads(said)["position"]

    told = run_well("trust", chain_id, "--json", data_dir=shared_data_dir)
    chain, thought = map(json.loads, told.splitlines())
    before = run_well(
        *("trust", chain_id, "--as-of", str(position - 1), "--json"), data_dir=shared_data_dir
    )
    for_people = run_well("trust", chain_id, "--thought", "1", data_dir=shared_data_dir)
    early = run("trust", chain_id, "--at", "2001-01-01", data_dir=shared_data_dir)

    assert (chain["score"], chain["level"]) == (0.4, "medium")
    assert [(each["signal"], each["after"]) for each in thought["evidence"]] == [
        ("agent_used", 0.55),
        ("user_corrected", 0.4),
    ]
    assert thought["evidence"][-1]["position"] == position
    assert json.loads(before.splitlines()[0])["score"] == 0.55
    assert "feedback.given (user_corrected)" in for_people
    assert (early.returncode, early.stdout) == (3, "")
    assert is_one_clear_sentence(early.stderr)


def test_migrating_twice_is_as_good_as_once(data_dir):
    run_well("migrate", data_dir=data_dir)
    run_well("migrate", data_dir=data_dir)

    assert chains(data_dir) == {}


def test_the_data_directory_may_come_from_the_environment(chain, shared_data_dir):
    printed = run_well(
        "replay", chain, "--json", env={"THOUGHT_LEDGER_DATA_DIR": str(shared_data_dir)}
    )

    assert len(lines_of(printed)) == 4


# Arguments that make no sense


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["replay"],
        ["replay", "--nonsense", A_CHAIN],
        ["replay", A_CHAIN, "--at", "yesterday"],
        ["replay", A_CHAIN, "--at", "-1"],
        ["pause"],
        ["import"],
        ["projections", "nonsense"],
        ["serve", "--nonsense"],
        ["serve", "--toolsets", "nonsense"],
    ],
    ids=" ".join,
)
def test_bad_arguments_end_with_2_and_no_traceback(shared_data_dir, arguments):
    done = run(*arguments, data_dir=shared_data_dir)

    assert done.returncode == 2
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["replay", "pause", "resume", "complete", "abandon", "trust"])
@pytest.mark.parametrize(
    "chain_id", [A_CHAIN, "not-a-uuid", ""], ids=["unknown", "malformed", "empty"]
)
def test_a_chain_that_is_not_there_is_one_sentence(shared_data_dir, command, chain_id):
    done = run(command, chain_id, data_dir=shared_data_dir)

    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "Traceback" not in said
    assert chain_id in said


def test_a_chain_cannot_be_paused_twice(shared_data_dir):
    with Server(shared_data_dir) as server:
        chain = server.think("one", number=1)["chain_id"]
    run_well("pause", chain, data_dir=shared_data_dir)

    again = run("pause", chain, data_dir=shared_data_dir)

    assert_cannot_answer(again)
    assert topics(replay(chain, data_dir=shared_data_dir)).count("chain.paused") == 1


def test_importing_what_is_not_there_is_one_sentence(shared_data_dir, tmp_path):
    done = run("import", tmp_path / "nothing.jsonl", data_dir=shared_data_dir)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "nothing.jsonl" in "".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.jsonl", b"this is no JSON\n"),
        ("list.jsonl", b"[1, 2]\n"),
        ("other.jsonl", b'{"chain": "c", "op": "dance", "src": "s"}\n'),
        ("bytes.jsonl", b"\xff\xfe\x00"),
        ("no.jsonl.gz", b"this is no gzip"),
    ],
)
def test_importing_something_else_is_one_sentence_and_adds_nothing(
    data_dir, tmp_path, name, content
):
    other = tmp_path / name
    other.write_bytes(content)

    done = run("import", other, data_dir=data_dir)

    assert_cannot_answer(done)
    assert chains(data_dir, "--all") == {}


# Too much


def test_a_text_of_2_mib_is_refused_with_the_limit_and_nothing_is_recorded(data_dir):
    with Server(data_dir) as server:
        server.think("a thought before it", number=1)
        with database(data_dir) as connection:
            before = count_events(connection)

            refused = server.think("a" * (2 << 20), number=2)

            assert refused.outcome == "isError"
            assert is_one_clear_sentence(refused.text)
            assert "1 MiB" in refused.text or "1048576" in refused.text.replace(",", "")
            assert count_events(connection) == before
