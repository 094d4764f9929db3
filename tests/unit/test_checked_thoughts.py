"""What a chain allows where references are checked: the rules of the toolset ``chains``."""

from uuid import UUID, uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.chain_state import Status
from ledger.errors import (
    BranchClosedError,
    ChainNotActiveError,
    StaleVersionError,
    ThoughtAbandonedError,
    ThoughtNotFoundError,
)
from ledger.events import ChainCompleted, Outcome, ThoughtBranched, ThoughtRevised
from ledger.thought import Thought
from tests.histories import start

MOVES = {
    Status.PAUSED: ThoughtChain.pause,
    Status.COMPLETED: ThoughtChain.complete,
    Status.ABANDONED: ThoughtChain.abandon,
}


def a_thought(number=1, *, more=True, **said):
    return Thought(
        text="t", thought_number=number, total_thoughts=9, next_thought_needed=more, **said
    )


def add(chain, number=1, **said):
    thought_id = uuid4()
    chain.add_checked_thought(thought_id, a_thought(number, **said))
    return thought_id


def revising(**said):
    return {"is_revision": True, **said}


@pytest.fixture
def chain():
    chain = start()
    for number in (1, 2, 3):
        add(chain, number)
    chain.collect()
    return chain


@pytest.mark.parametrize("status", [Status.PAUSED, Status.COMPLETED, Status.ABANDONED])
def test_only_an_active_chain_takes_a_new_thought(chain, status):
    MOVES[status](chain)

    with pytest.raises(ChainNotActiveError) as refusal:
        add(chain, 4)

    assert refusal.value.status == status


def test_a_completed_chain_takes_a_revision_and_stays_completed(chain):
    chain.complete()
    chain.collect()

    add(chain, 2, more=False, **revising(revises_thought_number=2))

    (event,) = chain.collect()
    assert isinstance(event, ThoughtRevised)
    assert chain.status is Status.COMPLETED


def test_a_revision_of_nothing_is_a_new_thought_to_a_completed_chain(chain):
    chain.complete()

    with pytest.raises(ChainNotActiveError):
        add(chain, 2, **revising())


@pytest.mark.parametrize("status", [Status.PAUSED, Status.ABANDONED])
def test_a_paused_or_abandoned_chain_takes_no_revision(chain, status):
    MOVES[status](chain)

    with pytest.raises(ChainNotActiveError):
        add(chain, 2, **revising(revises_thought_number=2))


@pytest.mark.parametrize(
    "reference",
    [
        {"revises_thought_number": 99, "is_revision": True},
        {"revises_thought_id": UUID(int=99), "is_revision": True},
        {"branch_from_thought_number": 99, "branch_id": "b"},
        {"branch_from_thought_id": UUID(int=99), "branch_id": "b"},
    ],
)
def test_a_reference_to_a_thought_that_is_not_there_is_refused(chain, reference):
    with pytest.raises(ThoughtNotFoundError):
        add(chain, 4, **reference)

    assert chain.collect() == []


def test_a_number_means_the_latest_live_thought_on_the_trunk():
    chain = start()
    add(chain, 1)
    second = add(chain, 2)
    dead = add(chain, 2)
    chain.abandon_thought(dead)
    add(chain, 2, branch_id="b", branch_from_thought_number=1)

    assert chain.find_thought(2) == second


def test_a_number_that_is_not_on_the_trunk_means_the_latest_anywhere(chain):
    add(chain, 7, branch_id="a", branch_from_thought_number=1)
    latest = add(chain, 7, branch_id="b", branch_from_thought_number=1)

    assert chain.find_thought(7) == latest


def test_an_id_is_exact(chain):
    older = chain.steps.recorded[1].thought_id
    add(chain, 2)
    chain.collect()

    add(chain, 3, **revising(revises_thought_id=older, revises_thought_number=2))
    add(chain, 3, branch_id="b", branch_from_thought_id=older, branch_from_thought_number=2)

    revised, branched = chain.collect()
    assert isinstance(revised, ThoughtRevised)
    assert revised.revises_thought_id == older
    assert isinstance(branched, ThoughtBranched)
    assert branched.branch_from_thought_id == branched.parent_thought_id == older


def test_a_closed_branch_takes_neither_thoughts_nor_revisions(chain):
    on_branch = {"branch_id": "b", "branch_from_thought_number": 1}
    add(chain, 2, **on_branch)
    chain.close_branch("b", Outcome.MERGED)

    for said in (on_branch, on_branch | revising(revises_thought_number=1)):
        with pytest.raises(BranchClosedError):
            add(chain, 3, **said)


def test_nothing_hangs_under_a_dead_end(chain):
    chain.abandon_thought(chain.find_thought(2))

    with pytest.raises(ThoughtAbandonedError):
        add(chain, 4)
    with pytest.raises(ThoughtAbandonedError):
        add(chain, 4, branch_id="b", branch_from_thought_number=3)


def test_a_branch_from_a_live_thought_goes_on_beside_a_dead_end(chain):
    chain.abandon_thought(chain.find_thought(2))

    thought_id = add(chain, 2, branch_id="b", branch_from_thought_number=1)

    assert not chain.steps.is_abandoned(thought_id)


def test_a_revision_of_a_live_thought_takes_the_trunk_out_of_a_dead_end(chain):
    first = chain.find_thought(1)
    chain.abandon_thought(chain.find_thought(2))

    revision = add(chain, 1, **revising(revises_thought_number=1))
    after = add(chain, 2)

    assert chain.steps.of(revision).parent_thought_id == first
    assert not chain.steps.is_abandoned(after)


def test_the_last_thought_of_the_trunk_completes_the_chain(chain):
    add(chain, 4, more=False)

    assert isinstance(chain.collect()[-1], ChainCompleted)


def test_the_last_thought_of_a_branch_does_not(chain):
    add(chain, 4, more=False, branch_id="b", branch_from_thought_number=1)

    assert chain.status is Status.ACTIVE


def test_a_stale_version_is_refused_with_the_current_one(chain):
    chain.require_version(None)
    chain.require_version(chain.version)

    with pytest.raises(StaleVersionError) as refusal:
        chain.require_version(chain.version - 1)

    assert refusal.value.current == chain.version
    assert str(chain.version) in str(refusal.value)
