"""What a batch of events does to the read model, without a database."""

from uuid import uuid4, uuid5

from ledger.aggregate import ThoughtChain
from ledger.events import ChainRecalled
from ledger.header import Context
from ledger.serialization import decode, store
from ledger.thought import Thought
from projections.identity import MEMORY_NAMESPACE, memory_id_of
from projections.projection import Copy, Statement
from projections.text import shown
from projections.thoughts import UPDATE_ABANDONED, UPDATE_REVISED, Thoughts


def recorded(*events):
    context = Context(actor="ada")
    return [decode(position, store(event, context)) for position, event in enumerate(events, 1)]


def thought(**fields):
    return Thought(
        text="because", thought_number=1, total_thoughts=2, next_thought_needed=True, **fields
    )


def chain_of(*thought_ids):
    chain = ThoughtChain.start(uuid4(), title="t")
    for thought_id in thought_ids:
        chain.add_thought(thought_id, thought())
    return chain


def test_a_chain_told_whole_is_three_copies_and_no_statement():
    changes = list(Thoughts().changes(recorded(*chain_of(uuid4(), uuid4()).collect())))

    assert [type(change) for change in changes] == [Copy, Copy, Copy]
    assert [change.table for change in changes] == ["thought_chains", "thoughts", "memories"]
    assert [len(change.rows) for change in changes] == [1, 2, 2]


def test_many_events_of_one_chain_are_one_change_of_its_row():
    chain = chain_of(uuid4())
    chain.collect()
    for _ in range(5):
        chain.pause()
        chain.resume()

    (change,) = Thoughts().changes(recorded(*chain.collect()))

    assert isinstance(change, Statement)
    assert change.parameters["versions"] == [12]
    assert change.parameters["statuses"] == ["active"]


def test_only_parents_from_before_the_batch_are_asked_about():
    first, second, third = uuid4(), uuid4(), uuid4()
    started, added, *later = chain_of(first, second, third).collect()

    statements = [
        change.parameters
        for change in Thoughts().changes(recorded(*later))
        if isinstance(change, Statement) and change.statement == UPDATE_ABANDONED
    ]

    assert statements == [{"given_up": [], "parents": [first]}]
    assert started.title == "t"
    assert added.thought_id == first


def test_of_several_revisions_in_a_batch_the_latest_counts():
    chain = chain_of(first := uuid4())
    chain.collect()
    latest = uuid4()
    for thought_id in (uuid4(), latest):
        chain.add_thought(thought_id, thought(is_revision=True, revises_thought_number=1))
        chain.steps.numbers[1] = [1]  # so that the next one revises the first as well

    (revised,) = (
        change.parameters
        for change in Thoughts().changes(recorded(*chain.collect()))
        if isinstance(change, Statement) and change.statement == UPDATE_REVISED
    )

    assert revised == {"ids": [first], "by_ids": [latest]}


def test_a_revision_in_the_same_batch_needs_no_statement():
    chain = chain_of(uuid4())
    revision = uuid4()
    chain.add_thought(revision, thought(is_revision=True, revises_thought_number=1))

    (_, thoughts, _) = Thoughts().changes(recorded(*chain.collect()))

    column = list(thoughts.columns).index("revised_by_thought_id")
    assert [row[column] for row in thoughts.rows] == [revision, None]


def test_a_recall_changes_nothing():
    chain_id = uuid4()
    recall = ChainRecalled(
        originator_id=uuid4(),
        originator_version=1,
        timestamp=ThoughtChain.start(chain_id, title="t").created_on,
        chain_id=chain_id,
        tool="recall",
        thought_ids=[],
    )

    assert list(Thoughts().changes(recorded(recall))) == []


def test_the_same_batch_twice_is_the_same_changes():
    batch = recorded(*chain_of(uuid4(), uuid4()).collect())

    assert list(Thoughts().changes(batch)) == list(Thoughts().changes(batch))


def test_a_memorys_id_is_the_version_5_uuid_of_its_thought():
    thought_id = uuid4()

    assert memory_id_of(thought_id) == uuid5(MEMORY_NAMESPACE, str(thought_id))


def test_a_null_character_is_shown_as_the_replacement_character():
    assert shown("a\0b\0") == "a\ufffdb\ufffd"
