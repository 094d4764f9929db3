"""Feedback: who may say what of a chain, whatever its status."""

from uuid import uuid4

import pytest

from ledger.aggregate import ThoughtChain
from ledger.audit import sentence
from ledger.chain_state import Status
from ledger.errors import (
    FeedbackError,
    LimitExceededError,
    NothingToJudgeError,
    ThoughtNotFoundError,
)
from ledger.events import Judgement, Scope
from ledger.header import Context
from ledger.limits import ID_CHARACTERS_MAX, TEXT_BYTES_MAX
from ledger.serialization import decode, store
from ledger.thought import Thought

MOVES = {
    Status.ACTIVE: None,
    Status.PAUSED: "pause",
    Status.COMPLETED: "complete",
    Status.ABANDONED: "abandon",
}


@pytest.fixture
def chain():
    chain = ThoughtChain.start(uuid4(), title="t")
    chain.add_thought(
        uuid4(), Thought(text="t", thought_number=1, total_thoughts=1, next_thought_needed=True)
    )
    chain.collect()
    return chain


@pytest.mark.parametrize("status", MOVES)
def test_a_chain_is_judged_in_every_status_and_keeps_it(chain, status):
    if move := MOVES[status]:
        getattr(chain, move)()
    version = chain.version

    chain.judge(Judgement.CONFIRMED, source="ada", note="it worked")

    assert (chain.status, chain.version) == (status, version + 1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"thought_id": uuid4()}, ThoughtNotFoundError),
        ({"source": "s" * (ID_CHARACTERS_MAX + 1)}, LimitExceededError),
        ({"note": "n" * (TEXT_BYTES_MAX + 1)}, LimitExceededError),
        ({"scope": Scope.CHAIN, "judgement": Judgement.CORRECTED}, FeedbackError),
    ],
)
def test_what_makes_no_sense_is_refused(chain, fields, error):
    said = {"judgement": Judgement.CONFIRMED, "source": "ada"} | fields

    with pytest.raises(error):
        chain.judge(said.pop("judgement"), **said)

    assert chain.collect() == []


def test_a_whole_chain_is_not_one_thought(chain):
    thought_id = chain.steps.recorded[0].thought_id

    with pytest.raises(FeedbackError):
        chain.judge(Judgement.CONFIRMED, source="a", thought_id=thought_id, scope=Scope.CHAIN)


def test_a_chain_without_thoughts_cannot_be_judged():
    chain = ThoughtChain.start(uuid4(), title="t")

    with pytest.raises(NothingToJudgeError):
        chain.judge(Judgement.CONFIRMED, source="ada")


@pytest.mark.parametrize(
    ("judgement", "scope", "note", "said"),
    [
        (Judgement.CONFIRMED, None, None, "confirmed by ada"),
        (Judgement.CONFIRMED, Scope.CHAIN, "it works", "confirmed as a whole by ada (it works)"),
        (Judgement.CORRECTED, None, "off by one", "corrected by ada (off by one)"),
    ],
)
def test_a_replay_says_who_judged_and_why(chain, judgement, scope, note, said):
    chain.judge(judgement, source="ada", scope=scope, note=note)
    (event,) = chain.collect()

    assert sentence(decode(1, store(event, Context(actor="bob")))) == said
