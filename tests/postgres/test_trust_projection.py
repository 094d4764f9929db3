"""The read model ``trust``: its views say what the policy says, whenever they are asked."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.events import ChainRecalled, Judgement, Scope
from ledger.log import head, read
from projections.projection import Read
from projections.sampling import sampled
from projections.trust.explaining import explain
from projections.trust.policy import mean
from projections.trust.projection import Trust
from projections.trust.reads import SELECT_CHAINS
from tests import trust_by_hand as by_hand
from tests.acceptance.product import read_log
from tests.postgres.histories import Histories, steps
from tests.postgres.projecting import catch_up, follow, record, record_chain, thought

SELECT_SCORES = """
    SELECT memory.thought_id, memory.chain_id,
           trust_g1.score_at(
               memory.value_millionths, memory.clock, chain.paused, chain.paused_since, %(at)s
           )
      FROM trust_g1.trust_memories AS memory
      JOIN trust_g1.trust_chains AS chain USING (chain_id)
"""

SELECT_NOW = """
    SELECT now(), thought_id, score_millionths, score, level, archived, counts, recalls
      FROM live.memory_trust
     WHERE chain_id = ANY (%(chains)s)
"""

SELECT_CHAINS_NOW = """
    SELECT now(), chain_id, score_millionths, level, counting, thoughts
      FROM live.chain_trust
     WHERE chain_id = ANY (%(chains)s)
"""

SELECT_AGENTS_NOW = "SELECT now(), agent, score_millionths, chains FROM live.agent_trust"


def folded(connection, at):
    """Each chain's trust at a moment, by the log from its first event."""
    chains: dict[UUID, list] = {}
    for recorded in read(connection, after=0, limit=10_000):
        event = recorded.event
        is_recall = isinstance(event, ChainRecalled)
        chains.setdefault(event.chain_id if is_recall else event.originator_id, []).append(recorded)
    return {chain_id: explain(chain_id, events, at) for chain_id, events in chains.items()}


@pytest.fixture
def follower(projector):
    leader = follow(projector, Trust())
    # Between two of its turns others have theirs.
    projector.execute("SET idle_session_timeout = 0")
    return leader


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    history=st.lists(steps(), min_size=8, max_size=30),
    limit=st.integers(1, 40),
    days=st.lists(st.floats(0, 2_000), min_size=1, max_size=5),
)
def test_scores_are_those_of_the_policy_at_any_time(writer, admin, follower, history, limit, days):
    histories = Histories(writer)
    histories.play(history)
    catch_up(follower, limit)
    ends = histories.now

    for day in days:
        at = ends + timedelta(days=day)
        expected = {
            thought.thought_id: thought.score
            for trust in folded(writer, at).values()
            for thought in trust.thoughts
        }
        found = admin.execute(SELECT_SCORES, {"at": at}).fetchall()
        assert {thought_id: score for thought_id, _, score in found} == expected


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=st.lists(steps(), min_size=8, max_size=30), day=st.floats(0, 2_000))
def test_scores_are_those_of_a_fold_by_hand_at_the_end_and_at_any_time_before(
    writer, admin, follower, history, day
):
    histories = Histories(writer)
    histories.play(history)
    catch_up(follower)
    at = histories.now + timedelta(days=day)
    chains = {chain.id for chain in histories.chains.values()}
    events = by_hand.by_chain(read_log(admin))

    found = {
        str(thought_id): score
        for thought_id, chain_id, score in admin.execute(SELECT_SCORES, {"at": at})
        if chain_id in chains
    }
    expected = [by_hand.scores(events[str(chain_id)], at) for chain_id in chains]
    assert found == {id_: score for scores, _ in expected for id_, score in scores.items()}

    recorded = read(writer, after=0, limit=10_000)
    for chain_id in chains:
        for event in events[str(chain_id)][::3]:
            then = by_hand.moment(event)
            known = [
                one
                for one in recorded
                if one.event.originator_id == chain_id and one.event.timestamp <= then
            ]
            trust = explain(chain_id, known, then)
            scores, score = by_hand.scores(events[str(chain_id)], then)
            assert {str(one.thought_id): one.score for one in trust.thoughts} == scores
            assert trust.score == score


def test_the_live_views_are_of_now(writer, projector, reader):
    histories = Histories(writer)
    histories.play(
        [
            (0, "think", (thought("one", 1), 0)),
            (0, "think", (thought("two", 2), 0)),
            (0, "recall", (None, 0)),
            (0, "complete", (None, 400)),
            (0, "give up", (None, 1)),
            (1, "think", (thought("three", 1), 0)),
        ]
    )
    catch_up(follow(projector, Trust()))
    chains = [chain.id for chain in histories.chains.values()]

    rows = reader.execute(SELECT_NOW, {"chains": chains}).fetchall()
    expected = {
        one.thought_id: one
        for trust in folded(writer, rows[0][0]).values()
        for one in trust.thoughts
    }

    assert len(rows) == len(expected) == 3
    for _, thought_id, millionths, score, level, archived, counts, recalls in rows:
        one = expected[thought_id]
        assert (millionths, level, counts, recalls) == (
            one.score,
            one.level,
            one.counts,
            one.recalls,
        )
        assert f"{score:.4f}" == f"{one.score / 1_000_000:.4f}"
        assert archived == (one.score < 200_000)
    assert sorted(row[-1] for row in rows) == [0, 1, 2]
    found = reader.execute(SELECT_CHAINS_NOW, {"chains": chains}).fetchall()
    trusts = folded(writer, found[0][0])
    assert {row[1]: row[2:4] for row in found} == {
        chain_id: (trust.score, trust.level) for chain_id, trust in trusts.items()
    }
    assert sorted(row[4:] for row in found) == [(1, 1), (1, 2)]
    ((at, agent, score, count),) = reader.execute(SELECT_AGENTS_NOW).fetchall()
    means = [trust.score for trust in folded(writer, at).values()]
    assert (agent, score, count) == ("ada", mean(means), 2)


def test_a_sample_covers_recalls_and_confirmations(connector, writer, projector):
    histories = Histories(writer)
    confirmed = (Judgement.CONFIRMED, False, Scope.CHAIN)
    histories.play(
        [
            (0, "think", (thought("one"), 0)),
            (0, "recall", (None, 0)),
            (0, "judge", ((confirmed, "ada"), 0)),
        ]
    )
    catch_up(follow(projector, Trust()))

    with sampled(connector, Trust(), 10) as sample:
        differences = sample.comparison.differences(5)

    assert len(sample.chains) == 2
    assert all(table.is_equal for table in differences)
    assert sample.uncovered == []


def reads_of(batch) -> list[Read]:
    """What the projection asks for, of a read model without rows."""
    steps = Trust().changes(batch)
    asked = []
    rows = None
    try:
        while True:
            step = steps.send(rows)
            rows = None
            if isinstance(step, Read):
                asked.append(step)
                rows = []
    except StopIteration:
        return asked


def test_an_append_to_a_chain_reads_none_of_its_thoughts(writer):
    chain = record_chain(writer, *map(str, range(20)))
    before = head(writer)
    chain.add_thought(UUID(int=1), thought("more", 21))
    record(writer, chain)

    (read_chain,) = reads_of(read(writer, after=before, limit=10))

    assert read_chain.statement == SELECT_CHAINS
    assert reads_of(read(writer, after=0, limit=10)) == []
