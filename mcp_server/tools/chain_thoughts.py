"""The tools of ``chains`` that record thoughts, and close the branches they are on."""

from collections.abc import Callable
from typing import Any

from ledger import outcomes, reasoning
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Answer
from ledger.header import Context
from mcp_server.chains.inputs import (
    AddInput,
    BranchInput,
    CloseInput,
    ReviseInput,
    parse_add,
    parse_branch,
    parse_close,
    parse_revise,
)
from mcp_server.chains.schemas import ADD_THOUGHT, BRANCH, CLOSE_BRANCH, REVISE
from mcp_server.inputs import ThoughtInput
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool


class AddThought(LedgerTool):
    """Records a thought with its references checked."""

    definition = ADD_THOUGHT

    def __init__(
        self, thinking: Thinking, on_thought: Callable[[ThoughtInput], None] | None
    ) -> None:
        """*on_thought* is told of each thought that was recorded."""
        self._thinking = thinking
        self._on_thought = on_thought

    def parse(self, arguments: dict[str, Any]) -> AddInput:
        return parse_add(arguments)

    async def run(self, ledger: Ledger, context: Context, said: AddInput) -> dict[str, Any]:
        def answer(chain: ThoughtChain) -> Answer:
            return _answer(said, chain)

        receipt = await self._thinking.add(ledger, context, said, answer)
        if self._on_thought is not None:
            self._on_thought(said.said)
        answered = dict(receipt.answer)
        warnings = answered.pop("warnings")
        answered["position"] = receipt.position
        return {**answered, "warnings": warnings} if warnings else answered


class ReviseThought(LedgerTool):
    """Records a better version of a thought."""

    definition = REVISE

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> ReviseInput:
        return parse_revise(arguments)

    async def run(self, ledger: Ledger, context: Context, said: ReviseInput) -> dict[str, Any]:
        receipt = await reasoning.revise(
            ledger, context, said.chain_id, said.reference, text=said.text, reason=said.reason
        )
        # A revision is on the branch of what it revises, which is known already.
        self._thinking.note_thought(receipt, None)
        return {
            "success": True,
            "thought_id": receipt.answer["thought_id"],
            "chain_id": str(receipt.chain_id),
            "thought_number": receipt.answer["thought_number"],
        }


class BranchThought(LedgerTool):
    """Opens a branch, or goes on with it."""

    definition = BRANCH

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> BranchInput:
        return parse_branch(arguments)

    async def run(self, ledger: Ledger, context: Context, said: BranchInput) -> dict[str, Any]:
        receipt = await reasoning.branch(
            ledger, context, said.chain_id, said.reference, said.thought
        )
        self._thinking.note_thought(receipt, said.thought.branch_id)
        return {
            "success": True,
            "thought_id": receipt.answer["thought_id"],
            "chain_id": str(receipt.chain_id),
            "branch_id": receipt.answer["branch_id"],
            "thought_number": receipt.answer["thought_number"],
        }


class CloseBranch(LedgerTool):
    """Ends a branch for good."""

    definition = CLOSE_BRANCH

    def __init__(self, thinking: Thinking) -> None:
        self._thinking = thinking

    def parse(self, arguments: dict[str, Any]) -> CloseInput:
        return parse_close(arguments)

    async def run(self, ledger: Ledger, context: Context, said: CloseInput) -> dict[str, Any]:
        receipt = await outcomes.close_branch(
            ledger,
            context,
            said.chain_id,
            said.branch_id,
            said.outcome,
            conclusion=said.conclusion,
        )
        self._thinking.note(receipt)
        return {"success": True, "chain_id": str(receipt.chain_id), **receipt.answer}


def _answer(said: AddInput, chain: ThoughtChain) -> Answer:
    warnings = list(said.warnings)
    if said.session_id not in (None, chain.session_id):
        warnings.append("session_id was not used: the chain belongs to another session")
    return {
        "thoughtNumber": said.thought.thought_number,
        "totalThoughts": said.thought.total_thoughts,
        "nextThoughtNeeded": said.thought.next_thought_needed,
        "chain_id": str(chain.id),
        "branches": chain.branches,
        "thoughtHistoryLength": chain.thought_count,
        "warnings": warnings,
    }
