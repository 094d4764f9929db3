"""``thought-ledger doctor`` as an operator runs it."""

import json

from tests.acceptance.product import assert_cannot_answer, database, lines_of, run, run_well

FIELDS = {"check", "state", "fact", "todo"}


def test_it_makes_no_ledger_where_there_is_none(data_dir):
    said = assert_cannot_answer(run("doctor", data_dir=data_dir))

    assert "migrate" in said
    assert list(data_dir.iterdir()) == []


def test_without_a_database_it_cannot_answer(data_dir):
    assert_cannot_answer(run("doctor", "--database-url", "postgresql://nobody@127.0.0.1:1/none"))


def test_it_tells_facts_and_what_to_do_and_fails_when_something_has(data_dir):
    run_well("chains", data_dir=data_dir)
    facts = [json.loads(line) for line in lines_of(run_well("doctor", "--json", data_dir=data_dir))]
    assert all(fact.keys() == FIELDS for fact in facts)
    assert [fact["check"] for fact in facts if fact["state"] != "ok"] == ["backup"]

    with database(data_dir) as connection:
        connection.execute("ALTER TABLE ledger.events DISABLE TRIGGER refuse_change")
    done = run("doctor", data_dir=data_dir)

    assert done.returncode == 3
    (failed,) = (line for line in lines_of(done.stdout) if line.startswith("failed"))
    assert "ledger.events is disabled" in failed
    assert "to do: " in done.stdout
