"""Real reasoning traces, imported through the command line and compared with their input."""

import contextlib
import json
import signal
import subprocess
from collections import Counter
from datetime import timedelta

import pytest

from tests import trust_by_hand
from tests.acceptance.client import REPOSITORY, clean_environment
from tests.acceptance.product import (
    THOUGHTS,
    command_line,
    count_events,
    database,
    eventually,
    read_log,
    replay,
    run_well,
    runner,
    temporary_data_dir,
    texts,
    wait_until_projected,
)
from tests.acceptance.read_models import (
    folded_chains,
    folded_thoughts,
    live_chains,
    live_thoughts,
)
from tests.acceptance.traces import TRACES, read_operations, trees_of, with_descendants

IMPORT_SECONDS_MAX = 300
CHAINS_COUNT, OPERATIONS_COUNT, DEAD_ENDS_COUNT = 2_727, 48_051, 6_175

pytestmark = pytest.mark.timeout(2 * IMPORT_SECONDS_MAX)


# What the product made of it.


@pytest.fixture(scope="module")
def operations():
    return read_operations()


@pytest.fixture(scope="module")
def trees(operations):
    return trees_of(operations)


@pytest.fixture(scope="module")
def imported(operations):
    """A data directory into which all traces were imported once."""
    with temporary_data_dir() as path:
        run_well("import", TRACES, data_dir=path, timeout=IMPORT_SECONDS_MAX)
        yield path


@pytest.fixture(scope="module")
def log(imported):
    with database(imported) as connection:
        return list(read_log(connection))


@pytest.fixture(scope="module")
def projected(imported, log):
    """The same directory with its read models caught up."""
    with runner(imported):
        wait_until_projected(imported, log[-1].position, IMPORT_SECONDS_MAX)
    return imported


def chains_by_key(log):
    """The imported chains: from the key of the input to the chain's events."""
    events, keys = {}, {}
    for event in log:
        events.setdefault(event.chain, []).append(event)
        if event.topic == "chain.started":
            keys[event.chain] = json.loads(event.payload["metadata"])["chain"]
    assert len(set(keys.values())) == len(keys), "a chain was imported twice"
    return {key: events[chain] for chain, key in keys.items()}


def tree_of(events):
    """A tree like those of ``trees_of``, from a chain's stored events."""
    title = events[0].payload["title"]
    tree = {"title": title, "status": folded_chains(events)[events[0].chain]["status"]}
    thoughts = tree["thoughts"] = {}
    number_of = {None: None}
    for event in events:
        fact = event.payload
        if event.topic == "thought.abandoned":
            thoughts[number_of[fact["thought_id"]]]["dead_end"] = True
        if event.topic not in THOUGHTS:
            continue
        number = number_of[fact["thought_id"]] = fact["thought_number"]
        thoughts[number] = {
            "text": fact["text"],
            "parent": number_of[fact["parent_thought_id"]],
            "branch": fact.get("branch_id"),
            "revises": number_of[fact.get("revises_thought_id")],
            "dead_end": False,
        }
    return tree


def test_the_input_is_the_one_the_other_tests_expect(operations, trees):
    kinds = Counter(operation["op"] for operation in operations)
    thoughts = [thought for tree in trees.values() for thought in tree["thoughts"].values()]

    assert len(trees) == CHAINS_COUNT
    assert len(operations) == OPERATIONS_COUNT
    assert sum(thought["dead_end"] for thought in thoughts) == DEAD_ENDS_COUNT
    assert len(thoughts) == kinds["append"] + kinds["branch"] + kinds["revise"] == 36_422
    assert sum(thought["branch"] is None for thought in thoughts) == 28_718
    assert Counter(tree["status"] for tree in trees.values()) == {
        "completed": 2_636,
        "abandoned": 91,
    }


def test_every_imported_chain_is_the_tree_of_its_input(trees, log):
    chains = chains_by_key(log)

    stored = {key: tree_of(events) for key, events in chains.items()}

    assert stored.keys() == trees.keys()
    assert [key for key in trees if stored[key] != trees[key]] == []
    # Equal dicts may differ in order, and the order of thoughts is part of the promise.
    assert [
        key for key in trees if list(stored[key]["thoughts"]) != list(trees[key]["thoughts"])
    ] == []


def test_versions_and_sequences_of_imported_chains_are_dense(log):
    for key, events in chains_by_key(log).items():
        sequences = [e.payload["sequence"] for e in events if e.topic in THOUGHTS]

        assert [e.version for e in events] == list(range(1, len(events) + 1)), key
        assert sequences == list(range(1, len(sequences) + 1)), key


def test_one_event_is_recorded_for_each_operation(log, operations):
    # A completed or abandoned chain ends by its operation, so nothing is reopened on the way.
    assert len(log) == len(operations)


def test_source_and_metadata_are_kept(log, operations):
    chains = chains_by_key(log)

    for key, start in {o["chain"]: o for o in operations if o["op"] == "start"}.items():
        assert chains[key][0].payload["source"] == start["src"], key
    for operation in operations:
        if operation["op"] in ("append", "branch", "revise") and "meta" in operation:
            kept = thought_of(chains[operation["chain"]], operation["n"])["metadata"]
            assert contains(json.loads(kept), operation["meta"]), operation


def thought_of(events, number):
    return next(e.payload for e in events if e.payload.get("thought_number") == number)


def contains(kept, meta):
    return kept == meta or kept.get("meta") == meta or meta.items() <= kept.items()


def test_replay_shows_an_imported_chain_as_it_was_given(trees, log, imported):
    chains = chains_by_key(log)
    handful = {events[0].payload["source"]: key for key, events in chains.items()}

    for key in handful.values():
        events = replay(chains[key][0].chain, data_dir=imported)

        expected = trees[key]["thoughts"]
        ids = [event["thought_id"] for event in thoughts_among(events)]
        number_of = dict(zip(ids, expected, strict=True)) | {None: None}
        assert texts(events) == [thought["text"] for thought in expected.values()]
        assert [number_of[e["parent_thought_id"]] for e in thoughts_among(events)] == [
            thought["parent"] for thought in expected.values()
        ]
        assert [e["branch_id"] for e in thoughts_among(events)] == [
            thought["branch"] for thought in expected.values()
        ]
        assert {number_of[e["thought_id"]] for e in events if e["type"] == "thought.abandoned"} == {
            number for number, thought in expected.items() if thought["dead_end"]
        }


def thoughts_among(events):
    return [event for event in events if event["type"] in THOUGHTS]


def test_importing_again_adds_nothing(imported, log):
    run_well("import", TRACES, data_dir=imported, timeout=IMPORT_SECONDS_MAX)

    with database(imported) as connection:
        assert count_events(connection) == len(log)


def test_live_thoughts_are_those_of_the_input(trees, log, projected):
    key_of = {events[0].chain: key for key, events in chains_by_key(log).items()}
    with database(projected) as connection:
        rows = live_thoughts(connection)

    shown = {key: {} for key in trees}
    number_of = {id_: row["thought_number"] for id_, row in rows.items()} | {None: None}
    for row in sorted(rows.values(), key=lambda row: (row["chain_id"], row["sequence"])):
        shown[key_of[row["chain_id"]]][row["thought_number"]] = {
            "text": row["thought"],
            "parent": number_of[row["parent_thought_id"]],
            "branch": row["branch_id"],
            "revises": number_of[row["revises_thought_id"]],
            "revised_by": number_of[row["revised_by_thought_id"]],
            "abandoned": row["abandoned"],
        }
    wrong = [key for key, tree in trees.items() if shown[key] != expected_rows(tree)]
    assert wrong == []
    assert rows == folded_thoughts(log)


def expected_rows(tree):
    dead = with_descendants(tree["thoughts"])
    revised_by = {t["revises"]: number for number, t in tree["thoughts"].items() if t["revises"]}
    return {
        number: {
            "text": thought["text"],
            "parent": thought["parent"],
            "branch": thought["branch"],
            "revises": thought["revises"],
            "revised_by": revised_by.get(number),
            "abandoned": number in dead,
        }
        for number, thought in tree["thoughts"].items()
    }


def test_live_chains_are_those_of_the_input(trees, log, projected):
    chains = chains_by_key(log)
    with database(projected) as connection:
        rows = live_chains(connection)

    for key, tree in trees.items():
        row = rows[chains[key][0].chain]
        assert row["title"] == tree["title"], key
        assert row["status"] == tree["status"], key
        assert row["thought_count"] == len(tree["thoughts"]), key
    assert rows == folded_chains(log)


def test_what_hangs_under_a_dead_end_is_shown_as_abandoned_too(data_dir, tmp_path):
    common = {"chain": "c", "src": "s"}
    operations = [
        {**common, "op": "start", "content": "which way?"},
        {**common, "op": "append", "n": 1, "content": "left"},
        {**common, "op": "append", "n": 2, "content": "further left"},
        {**common, "op": "branch", "n": 3, "parent": 2, "content": "a side street"},
        {**common, "op": "branch", "n": 4, "parent": 0, "content": "right"},
        {**common, "op": "abandon", "n": 1},
    ]
    traces = written(operations, tmp_path / "traces.jsonl")

    run_well("import", traces, data_dir=data_dir)

    with database(data_dir) as connection, runner(data_dir):
        log = list(read_log(connection))
        wait_until_projected(data_dir, log[-1].position)
        rows = live_thoughts(connection).values()
    assert {row["thought"] for row in rows if row["abandoned"]} == {
        "left",
        "further left",
        "a side street",
    }
    assert sum(event.topic == "thought.abandoned" for event in log) == 1, "the rest is derived"


SELECT_TRUST_SCHEMAS = """
    SELECT schema_name
      FROM projections.generations
     WHERE name = 'trust' AND state IN ('live', 'building')
     ORDER BY state DESC
"""

SELECT_SCORES = """
    SELECT memory.thought_id::text,
           {schema}.score_at(
               memory.value_millionths, memory.clock, chain.paused, chain.paused_since, %s
           )
      FROM {schema}.trust_memories AS memory
      JOIN {schema}.trust_chains AS chain USING (chain_id)
"""

SELECT_CHAIN_SCORES = "SELECT now(), chain_id::text, score_millionths FROM live.chain_trust"


def test_trust_is_that_of_a_fold_by_hand_now_and_later_and_after_a_rebuild(projected, log):
    run_well(*("projections", "rebuild", "trust"), data_dir=projected, timeout=IMPORT_SECONDS_MAX)
    by_chain = trust_by_hand.by_chain(log)
    later = trust_by_hand.moment(log[-1]) + timedelta(days=77.7)

    with database(projected) as connection:
        live, rebuilt = (name for (name,) in connection.execute(SELECT_TRUST_SCHEMAS))
        scores = [
            dict(connection.execute(SELECT_SCORES.format(schema=schema), [later]).fetchall())
            for schema in (live, rebuilt)
        ]
        means = connection.execute(SELECT_CHAIN_SCORES).fetchall()

    folded = [trust_by_hand.scores(events, later)[0] for events in by_chain.values()]
    assert scores == [{id_: score for chain in folded for id_, score in chain.items()}] * 2
    now = means[0][0]
    assert {chain: score for _, chain, score in means} == {
        chain: trust_by_hand.scores(events, now)[1] for chain, events in by_chain.items()
    }


def test_an_import_killed_in_the_middle_is_completed_by_the_next(operations, data_dir, tmp_path):
    every_third = set(list(trees_of(operations))[::3])
    some = [o for o in operations if o["chain"] in every_third]
    plain = written(some, tmp_path / "some.jsonl")
    run_well("migrate", data_dir=data_dir)

    with database(data_dir) as connection:
        with killed_at_the_end("import", plain, data_dir=data_dir):
            eventually(lambda: count_events(connection) > 0, what="the first imported event")
        half = count_events(connection)
        run_well("import", plain, data_dir=data_dir, timeout=IMPORT_SECONDS_MAX)
        log = list(read_log(connection))

    assert 0 < half < len(some)
    assert len(log) == len(some)
    assert {key: tree_of(events) for key, events in chains_by_key(log).items()} == trees_of(some)


def written(operations, path):
    lines = (json.dumps(operation, ensure_ascii=False) + "\n" for operation in operations)
    path.write_text("".join(lines), "utf-8")
    return path


@contextlib.contextmanager
def killed_at_the_end(*arguments, data_dir):
    """A command in the background that ends by ``kill -9``, if it did not end before."""
    process = subprocess.Popen(
        command_line(*arguments, data_dir=data_dir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=REPOSITORY,
        env=clean_environment(),
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(IMPORT_SECONDS_MAX)
