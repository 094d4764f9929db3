"""Thoughts where there is no connection: each names its chain, or is the first of a new one."""

from functools import partial
from typing import Any

from ledger import reasoning
from ledger.application import Ledger
from ledger.commands import Decide, Receipt
from ledger.header import Context
from mcp_server.chains.inputs import AddInput, StartInput
from mcp_server.inputs import InputError, ThoughtInput, thought_of
from mcp_server.thinking import Thinking, answer_of_chain, finished, start_said, starts_another


class ChainUnnamedError(InputError):
    """A thought that goes on with a chain, and nobody to know which."""

    def __init__(self) -> None:
        problem = (
            "is missing: over HTTP every thought names its chain, only a plain thought 1 "
            "(no revision, no branch) starts one; the answer to thought 1 has the chain_id"
        )
        super().__init__(("chain_id", problem))


class Stateless(Thinking):
    """Takes thoughts without keeping anything that the next call needs.

    So it does not matter which process takes it.  The position is of this process: a list that is
    asked of another one may be a moment behind.
    """

    def __init__(self) -> None:
        self._position = 0

    @property
    def position(self) -> int:
        return self._position

    async def think(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        """Record what was said; the answer speaks of the chain.

        Raises ChainUnnamedError, and what ``Ledger.think`` raises.
        """
        _require_chain(said)
        thought, answer = thought_of(said), answer_of_chain(said)

        async def record() -> Receipt:
            if said.chain_id is None:
                return await ledger.begin_thinking(context, None, thought, answer)
            return await ledger.think(context, said.chain_id, thought, answer)

        receipt = await finished(record)
        self.note(receipt)
        return receipt.answer

    async def add(
        self, ledger: Ledger, context: Context, said: AddInput, answer: Decide
    ) -> Receipt:
        """As ``think``, with references checked; a new chain belongs to the session it names."""
        chain_id = said.said.chain_id
        _require_chain(said.said)
        said.require_chain_for_version()

        async def record() -> Receipt:
            if chain_id is None:
                return await reasoning.begin_adding(
                    ledger, context, said.session_id, said.thought, answer
                )
            return await reasoning.add(
                ledger,
                context,
                chain_id,
                said.thought,
                answer,
                expected_version=said.expected_version,
            )

        receipt = await finished(record)
        self.note(receipt)
        return receipt

    async def start(self, ledger: Ledger, context: Context, said: StartInput) -> Receipt:
        """Start a chain, of the session it names, if any."""
        receipt = await finished(partial(start_said, ledger, context, said, said.session_id))
        self.note(receipt)
        return receipt

    def note(self, receipt: Receipt) -> None:
        self._position = max(self._position, receipt.position or 0)

    def note_thought(self, receipt: Receipt, branch_id: str | None) -> None:  # noqa: ARG002 - no history to count it in
        self.note(receipt)


def _require_chain(said: ThoughtInput) -> None:
    if said.chain_id is None and not starts_another(said):
        raise ChainUnnamedError
