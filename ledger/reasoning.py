"""The use cases of agents that think in named chains, with their references checked."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.chain_state import Status
from ledger.commands import Answer, Decide, Receipt, title_of
from ledger.errors import BranchOriginMissingError, ChainNotFoundError
from ledger.header import Context
from ledger.limits import INTEGER_MAX
from ledger.thought import Thought

TITLE_DEFAULT = "untitled"

# A thought by its id, which is exact, or by its number (``Steps.find``).
Reference = UUID | int


@dataclass(frozen=True, kw_only=True, slots=True)
class BranchThought:
    """A thought on a branch; what is None follows from the thought it leaves from."""

    text: str
    branch_id: str
    thought_number: int | None = None
    total_thoughts: int | None = None
    next_thought_needed: bool = True


async def add(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    thought: Thought,
    answer: Decide,
    *,
    expected_version: int | None = None,
    named: bool = True,
) -> Receipt:
    """Record a thought (``ThoughtChain.add_checked_thought``) in a chain of that version.

    *answer* is given the chain as it is after the thought.  Raises StaleVersionError,
    ThoughtNotFoundError, ThoughtAbandonedError, and what ``Ledger.think`` raises.
    """

    def decide(chain: ThoughtChain) -> Answer:
        chain.require_version(expected_version)
        return _added(chain, thought, answer)

    return await ledger.change(context, chain_id, "add", decide, said=asdict(thought), named=named)


async def begin_adding(
    ledger: Ledger, context: Context, session_id: str | None, thought: Thought, answer: Decide
) -> Receipt:
    """Start a chain, titled by its first thought, with that thought; see ``add``."""
    chain = ThoughtChain.start(uuid4(), title=title_of(thought.text), session_id=session_id)
    answered = _added(chain, thought, answer)
    return await ledger.begin(context, chain, answered, name="add", said=asdict(thought))


async def added_before(
    ledger: Ledger, context: Context, chain_id: UUID | None, thought: Thought
) -> Receipt | None:
    """The first receipt of a thought added before under the context's request id."""
    return await ledger.answered_change(context, chain_id, "add", asdict(thought))


async def start_chain(
    ledger: Ledger,
    context: Context,
    *,
    session_id: str | None,
    parent_chain_id: UUID | None,
    title: str | None,
    said: object,
) -> Receipt:
    """Start a chain without thoughts.  *said* is what a request id stands for.

    Raises ChainNotFoundError for a parent that is not there.
    """
    if parent_chain_id is not None and not await ledger.events(parent_chain_id, after=0, limit=1):
        raise ChainNotFoundError(parent_chain_id)
    chain = ThoughtChain.start(
        uuid4(),
        title=title or TITLE_DEFAULT,
        session_id=session_id,
        parent_chain_id=parent_chain_id,
    )
    answer = {
        "chain_id": str(chain.id),
        "session_id": session_id,
        "status": str(chain.status),
        "created_at": chain.created_on.isoformat(timespec="microseconds"),
    }
    return await ledger.begin(context, chain, answer, name="start", said=said)


async def revise(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    reference: Reference,
    *,
    text: str,
    reason: str | None = None,
) -> Receipt:
    """Record a revision of a thought, with its number and on its branch.

    Raises ThoughtNotFoundError, ThoughtAbandonedError, and what ``Ledger.think`` raises.
    """

    def decide(chain: ThoughtChain) -> Answer:
        step = chain.steps.of(chain.find_thought(reference))
        thought = Thought(
            text=text,
            thought_number=step.thought_number,
            total_thoughts=max(_estimate(chain), step.thought_number),
            next_thought_needed=chain.status is Status.ACTIVE,
            branch_id=step.branch_id,
            is_revision=True,
            revises_thought_number=step.thought_number,
            revises_thought_id=step.thought_id,
            reason=reason,
        )
        return _added(chain, thought, _place)

    return await ledger.change(
        context, chain_id, "revise", decide, said=[str(reference), text, reason]
    )


async def branch(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    reference: Reference | None,
    said: BranchThought,
) -> Receipt:
    """Open a branch at a thought with its first thought, or go on with a branch that is there.

    Raises BranchOriginMissingError, ThoughtNotFoundError, ThoughtAbandonedError, and what
    ``Ledger.think`` raises.
    """

    def decide(chain: ThoughtChain) -> Answer:
        origin = None if reference is None else chain.steps.of(chain.find_thought(reference))
        head = chain.steps.heads.get(said.branch_id)
        before = origin if head is None else chain.steps.of(head)
        if before is None:
            raise BranchOriginMissingError(chain_id, said.branch_id)
        number = said.thought_number or min(before.thought_number + 1, INTEGER_MAX)
        thought = Thought(
            text=said.text,
            thought_number=number,
            total_thoughts=max(said.total_thoughts or _estimate(chain), number),
            next_thought_needed=said.next_thought_needed,
            branch_id=said.branch_id,
            branch_from_thought_number=origin and origin.thought_number,
            branch_from_thought_id=origin and origin.thought_id,
        )
        return {**_added(chain, thought, _place), "branch_id": said.branch_id}

    return await ledger.change(
        context, chain_id, "branch", decide, said=[str(reference or ""), asdict(said)]
    )


def _added(chain: ThoughtChain, thought: Thought, answer: Decide) -> dict[str, Any]:
    thought_id = uuid4()
    chain.add_checked_thought(thought_id, thought)
    return {**answer(chain), "thought_id": str(thought_id), "version": chain.version}


def _place(chain: ThoughtChain) -> Answer:
    return {"thought_number": chain.steps.recorded[-1].thought_number}


def _estimate(chain: ThoughtChain) -> int:
    return chain.steps.recorded[-1].total_thoughts
