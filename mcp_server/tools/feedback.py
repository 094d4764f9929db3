"""The tool ``record_feedback``: whether reasoning proved right, and what that does to its score."""

from typing import Any

from ledger.application import Ledger
from ledger.commands import Receipt
from ledger.header import Context
from ledger.judging import judge
from mcp_server.memory.inputs_feedback import WORDS, FeedbackInput, parse_feedback
from mcp_server.memory.schemas import FEEDBACK
from mcp_server.memory.trust import json_of_chain, json_of_reasons
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.trust.explaining import ChainTrust, Explanation, stream
from projections.trust.policy import level_of, mean, shown

TOLD_BEFORE = "this source has confirmed the chain before, which tells once; nothing has changed"


class RecordFeedback(LedgerTool):
    """Records what somebody says of an outcome, and answers by the log as of that event.

    So a repetition of its request id gets the first answer, whatever came since.
    """

    definition = FEEDBACK

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> FeedbackInput:
        return parse_feedback(arguments)

    async def run(self, ledger: Ledger, context: Context, said: FeedbackInput) -> dict[str, Any]:
        receipt = await judge(ledger, context, said.chain_id, said.feedback)
        self._thinking.note(receipt)
        trust = await _trust_after(ledger, receipt)
        return {
            "success": True,
            "chain_id": str(receipt.chain_id),
            "signal": WORDS[said.feedback.judgement],
            **_effect(trust, receipt),
            **json_of_chain(trust),
            "position": receipt.position,
        }


async def _trust_after(ledger: Ledger, receipt: Receipt) -> ChainTrust:
    """The chain's trust when the feedback had been recorded, and nothing after it."""
    explanation = Explanation(receipt.chain_id)
    at = None
    async for recorded in stream(ledger, receipt.chain_id):
        explanation.add(recorded)
        at = recorded.event.timestamp
        if recorded.position == receipt.position:
            break
    assert at is not None
    return explanation.at(at)


def _effect(trust: ChainTrust, receipt: Receipt) -> dict[str, Any]:
    assert receipt.position is not None
    judged = trust.judged_at(receipt.position)
    if not judged:
        return {"applied_to": 0, "warning": TOLD_BEFORE}
    before = mean([evidence.before for _, evidence in judged])
    after = mean([evidence.after for _, evidence in judged])
    assert before is not None
    assert after is not None
    scores = {
        "score_before": shown(before),
        "score_after": shown(after),
        "level": str(level_of(after)),
    }
    if len(judged) > 1:
        return {"applied_to": len(judged), **scores}
    ((thought, _),) = judged
    return {
        "applied_to": 1,
        "thought_id": str(thought.thought_id),
        "thought_number": thought.thought_number,
        **scores,
        **json_of_reasons(thought),
    }
