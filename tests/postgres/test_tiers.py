"""The tiers, from the log through trust: what is promoted, what is avoided, and what is neither."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.database import Role
from ledger.events import ChainRecalled, Judgement, Outcome, Scope
from ledger.header import Context
from ledger.recalls import recalls_of
from ledger.recorder import repository
from projections.catalogue import ALL
from projections.live import LiveConnections
from projections.tiers.tiers import Summary, Tiers
from projections.workers import catch_up_all
from tests.postgres.projecting import SECONDS_MAX, record, thought


@pytest.fixture
def tiers(database):
    """Asks one of the tiers, once all that is recorded is in the read models."""

    def ask(question, *, caught_up=True):
        if caught_up:
            assert catch_up_all(database.connector(Role.PROJECTOR), ALL, SECONDS_MAX) == []

        async def asking():
            connections = LiveConnections(lambda: database.connector(Role.READER))
            try:
                return await question(Tiers(connections))
            finally:
                await connections.close()

        return asyncio.run(asking())

    return ask


def chain_of(*texts, title, session_id=None):
    chain = ThoughtChain.start(uuid4(), title=title, session_id=session_id)
    for number, text in enumerate(texts, 1):
        chain.add_thought(uuid4(), thought(text, number))
    return chain


def confirm(chain, sources):
    for source in sources:
        chain.judge(Judgement.CONFIRMED, scope=Scope.CHAIN, source=source)


def recall(writer, chain, thought_id, *, version):
    recalled = ChainRecalled(
        originator_id=recalls_of(chain.id),
        originator_version=version,
        timestamp=datetime.now(UTC),
        chain_id=chain.id,
        tool="get_thought_chain",
        thought_ids=[str(thought_id)],
    )
    repository(writer, Context(actor="ada")).event_store.put([recalled])


def record_ago(writer, chain, days):
    """Record what the chain decided as if it had been so many days ago."""
    then = datetime.now(UTC) - timedelta(days=days)
    events = [replace(event, timestamp=then) for event in chain.collect()]
    repository(writer, Context(actor="ada")).event_store.put(events)


def patterns(tiers, **narrowed):
    return tiers(lambda all_of_them: all_of_them.summary("default", **narrowed)).patterns


def test_a_chain_is_promoted_at_0_8_and_not_before(writer, tiers):
    chain = chain_of("look", "add an index", title="The export is slow", session_id="S1")
    chain.complete()
    confirm(chain, ["ada", "bob"])
    record(writer, chain)
    assert patterns(tiers) == []

    confirm(chain, ["eve"])
    record(writer, chain)

    (found,) = patterns(tiers)
    assert (found.kind, found.chain_id, found.session_id) == ("solved", chain.id, "S1")
    assert (found.title, found.approach) == ("The export is slow", "add an index")
    assert found.trust == pytest.approx(0.85, abs=1e-4)
    assert found.positions == [2, 3]
    text = tiers(lambda all_of_them: all_of_them.summary("default")).text
    assert 'Solved "The export is slow" via "add an index" approach (session S1' in text
    assert "## Memories" in text


@pytest.mark.parametrize(
    ("begun", "paused", "resumed", "promoted"),
    [
        (18, None, None, True),
        (23, None, None, False),
        (400, 400, None, True),
        (400, 400, 23, False),
    ],
)
def test_what_is_promoted_sinks_in_time_but_not_while_it_is_paused(
    writer, tiers, begun, paused, resumed, promoted
):
    """0.9 is 0.8 after 20 days; the numbers are days ago."""
    chain = chain_of("look", title="The export is slow")
    confirm(chain, ["ada", "bob", "eve", "dan"])
    record_ago(writer, chain, begun)
    if paused is not None:
        chain.pause()
        record_ago(writer, chain, paused)
    if resumed is not None:
        chain.resume()
        record_ago(writer, chain, resumed)

    summary = tiers(lambda all_of_them: all_of_them.summary("default"))

    assert [found.chain_id for found in summary.patterns] == [chain.id] * promoted
    assert ("## Memories" in summary.text) == promoted


def test_a_dead_end_is_avoided_once_it_was_read_twice(writer, tiers):
    chain = chain_of("look", "drop the table", title="The export is slow", session_id="S2")
    dead_end = chain.steps.recorded[1].thought_id
    chain.abandon_thought(dead_end)
    record(writer, chain)
    recall(writer, chain, dead_end, version=1)
    assert patterns(tiers) == []

    recall(writer, chain, dead_end, version=2)

    (found,) = patterns(tiers)
    assert (found.kind, found.approach, found.recalls) == ("avoided", "drop the table", 2)
    assert found.positions == [3]
    assert patterns(tiers, session_id="S2") == [found]
    assert patterns(tiers, session_id="S1") == []
    assert patterns(tiers, agent="nobody") == []


def test_a_dead_end_is_told_by_what_was_given_up_not_by_what_was_read_under_it(writer, tiers):
    chain = chain_of("look", "blame the cache", "and its size", "add an index", title="")
    given_up, last = chain.steps.recorded[1].thought_id, chain.steps.recorded[3].thought_id
    chain.abandon_thought(given_up)
    record(writer, chain)
    recall(writer, chain, last, version=1)
    recall(writer, chain, last, version=2)

    (found,) = patterns(tiers)

    assert (found.approach, found.positions, found.recalls) == ("blame the cache", [3], 2)


def test_a_branch_that_was_given_up_is_a_dead_end(writer, tiers):
    chain = chain_of("look", title="The export is slow")
    branched, kept = uuid4(), uuid4()
    chain.add_thought(branched, thought("drop the table", 2, branch_id="left"))
    chain.add_thought(kept, thought("add an index", 2, branch_id="right"))
    chain.close_branch("left", Outcome.ABANDONED)
    chain.close_branch("right", Outcome.KEPT)
    record(writer, chain)
    for version in (1, 3):
        recall(writer, chain, branched, version=version)
        recall(writer, chain, kept, version=version + 1)

    (found,) = patterns(tiers)

    assert (found.kind, found.approach, found.recalls) == ("avoided", "drop the table", 2)


def test_a_limit_holds_for_every_kind_and_what_is_left_out_is_counted(writer, tiers):
    for number in range(3):
        solved = chain_of("look", title=f"problem {number}")
        confirm(solved, ["ada", "bob", "eve"])
        given_up = chain_of("drop the table", title=f"problem {number}")
        given_up.abandon()
        record(writer, solved, given_up)
        for version in (1, 2):
            recall(writer, given_up, given_up.steps.recorded[0].thought_id, version=version)

    summary = tiers(lambda all_of_them: all_of_them.summary("default", limit=1))

    assert [found.kind for found in summary.patterns] == ["solved", "avoided"]
    assert summary.total == 6
    for left_out in ("- and 2 more solved", "- and 2 more dead ends", "- and 2 more memories"):
        assert left_out in summary.text.splitlines()
    assert len(summary.text.splitlines()) == 9


def test_an_abandoned_chain_is_never_solved(writer, tiers):
    chain = chain_of("look", title="The export is slow")
    confirm(chain, ["ada", "bob", "eve", "dan"])
    chain.abandon()
    record(writer, chain)

    assert patterns(tiers) == []


def test_tenants_do_not_see_each_other(writer, tiers):
    theirs = chain_of("look", title="Theirs")
    confirm(theirs, ["ada", "bob", "eve"])
    repository(writer, Context(actor="ada", tenant="other")).event_store.put(theirs.collect())

    assert patterns(tiers) == []
    assert len(tiers(lambda all_of_them: all_of_them.summary("other")).patterns) == 1
    assert "0 chains" in tiers(lambda all_of_them: all_of_them.identity("default"))


def test_the_identity_says_what_the_latest_trusted_work_is_about(writer, tiers):
    chain, doubted = chain_of("look", title="The export"), chain_of("look", title="Nonsense")
    chain.complete()
    doubted.judge(Judgement.CORRECTED, source="ada")
    record(writer, chain, doubted)

    said = tiers(lambda all_of_them: all_of_them.identity("default"))

    assert said == (
        "Thought ledger: 2 chains of reasoning, 2 thoughts, 0 sessions by ada lately: The export."
    )


def test_before_anything_is_built_there_is_nothing_and_it_is_said(database, tiers):
    summary = tiers(lambda all_of_them: all_of_them.summary("default"), caught_up=False)

    assert summary == Summary(stale=True)
    assert (summary.text, summary.patterns, summary.total, summary.position) == ("", (), 0, 0)
    assert "0 chains" in tiers(lambda all_of_them: all_of_them.identity("d"), caught_up=False)
