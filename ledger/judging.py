"""The use case of feedback: somebody says whether an outcome was right."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Receipt
from ledger.events import Judgement, Scope
from ledger.header import Context
from ledger.reasoning import Reference


@dataclass(frozen=True, kw_only=True, slots=True)
class Feedback:
    """What is said of a chain.

    Without a *reference* and a *scope* the policy of trust says which thought is meant.  *source*
    is who judged, by default who records it.
    """

    judgement: Judgement
    reference: Reference | None = None
    scope: Scope | None = None
    source: str | None = None
    note: str | None = None


async def judge(ledger: Ledger, context: Context, chain_id: UUID, feedback: Feedback) -> Receipt:
    """Record feedback, whatever the chain's status.

    Raises ThoughtNotFoundError, NothingToJudgeError, FeedbackError, LimitExceededError, and what
    ``Ledger.think`` raises.
    """

    def decide(chain: ThoughtChain) -> dict[str, Any]:
        reference = feedback.reference
        chain.judge(
            feedback.judgement,
            source=feedback.source or context.actor,
            thought_id=None if reference is None else chain.find_thought(reference),
            scope=feedback.scope,
            note=feedback.note,
        )
        return {"signal": str(feedback.judgement), "version": chain.version}

    said = [
        str(feedback.judgement),
        feedback.reference and str(feedback.reference),
        feedback.scope,
        feedback.source,
        feedback.note,
    ]
    return await ledger.change(context, chain_id, "judge", decide, said=said)
