"""The use cases of agents that end what they began, or take it up again, in named chains."""

from collections.abc import Iterable
from typing import cast
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Answer, Receipt, moved
from ledger.events import Outcome, ThoughtRecorded
from ledger.header import Context
from ledger.reasoning import Reference
from ledger.steps import Step

LAST_THOUGHT_BYTES_MAX = 1
NAMED_MAX = 20


async def close_branch(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    branch_id: str,
    outcome: Outcome,
    *,
    conclusion: str | None = None,
) -> Receipt:
    """Close a branch.  Raises BranchNotFoundError, BranchClosedError, ChainNotActiveError."""

    def decide(chain: ThoughtChain) -> Answer:
        chain.close_branch(branch_id, outcome, conclusion=conclusion)
        return {"branch_id": branch_id, "outcome": str(outcome)}

    said = [branch_id, str(outcome), conclusion]
    return await ledger.change(context, chain_id, "close_branch", decide, said=said)


async def complete(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    reason: str | None = None,
    conclusion: str | None = None,
) -> Receipt:
    """Complete a chain, with what came of it.  Raises TransitionError."""

    def decide(chain: ThoughtChain) -> Answer:
        previous = chain.status
        chain.complete(reason=reason, conclusion=conclusion)
        return moved(previous, chain)

    return await ledger.change(
        context, chain_id, "complete_with", decide, said=[reason, conclusion]
    )


async def abandon_thought(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    reference: Reference,
    reason: str | None = None,
) -> Receipt:
    """Give a thought up as a dead end, and with it what hangs under it, which is answered too.

    Raises ThoughtNotFoundError, ChainNotActiveError.
    """

    def decide(chain: ThoughtChain) -> Answer:
        thought_id = chain.find_thought(reference)
        before = chain.steps.abandoned()
        chain.abandon_thought(thought_id, reason=reason)
        under = chain.steps.abandoned() - before - {thought_id}
        return {
            **moved(chain.status, chain),
            "thought_id": str(thought_id),
            **_given_up_with(step for step in chain.steps.recorded if step.thought_id in under),
        }

    said = [str(reference), reason]
    return await ledger.change(context, chain_id, "abandon_thought", decide, said=said)


async def resume(
    ledger: Ledger,
    context: Context,
    chain_id: UUID,
    reason: str | None = None,
    *,
    tool: str,
) -> Receipt:
    """Take a chain up again; answers with its last thought, which *tool* recalls by that.

    Raises TransitionError.
    """
    last = await _last_thought(ledger, chain_id)

    def decide(chain: ThoughtChain) -> Answer:
        previous = chain.status
        chain.resume(reason=reason)
        answer = {**moved(previous, chain), "thought_count": chain.thought_count}
        return answer if last is None else {**answer, "last_thought": last.text}

    receipt = await ledger.change(context, chain_id, "resume_with", decide, said=reason)
    if last is not None and not receipt.repeated:
        ledger.recalled(context, chain_id, tool, [last.thought_id])
    return receipt


def _given_up_with(steps: Iterable[Step]) -> Answer:
    numbers = [step.thought_number for step in steps]
    if not numbers:
        return {}
    named = ", ".join(map(str, numbers[:NAMED_MAX])) + ", ..." * (len(numbers) > NAMED_MAX)
    warning = (
        f"given up as well, for it hangs under it: {named}; think again what of it still holds, "
        "under a thought that was not given up; where a thought is only wrong, revise it"
    )
    return {"also_given_up": len(numbers), "warnings": [warning]}


async def _last_thought(ledger: Ledger, chain_id: UUID) -> ThoughtRecorded | None:
    # A chain that may be resumed takes no new thoughts, so it is the last one also when decided;
    # a revision that slips in between is in the chain, and only not yet in this answer.
    chain = await ledger.chain(chain_id)
    if not chain.steps.recorded:
        return None
    versions = [chain.steps.recorded[-1].version]
    (recorded,) = await ledger.recorded(chain_id, versions, bytes_max=LAST_THOUGHT_BYTES_MAX)
    return cast("ThoughtRecorded", recorded.event)
