"""What takes an agent's thoughts, whatever it is connected by, and what it answers to each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from uuid import UUID

import anyio

from ledger import reasoning
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Decide, Receipt
from ledger.header import Context
from mcp_server.chains.inputs import AddInput, StartInput
from mcp_server.inputs import ThoughtInput


class Thinking(Protocol):
    """What takes thoughts, and knows which chain each of them goes to."""

    @property
    def position(self) -> int:
        """Up to where a reader here has written, so that lists have it; 0 for nothing."""
        ...

    async def think(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        """Record what was said and return the drop-in tool's answer.

        Raises InputError, and what ``Ledger.think`` raises.
        """
        ...

    async def add(
        self, ledger: Ledger, context: Context, said: AddInput, answer: Decide
    ) -> Receipt:
        """Record a thought with its references checked; *answer* is as in ``reasoning.add``.

        Raises InputError, and what ``reasoning.add`` raises.
        """
        ...

    async def start(self, ledger: Ledger, context: Context, said: StartInput) -> Receipt:
        """Start a chain without thoughts.  Raises what ``reasoning.start_chain`` raises."""
        ...

    def note(self, receipt: Receipt) -> None:
        """Be told of what was recorded by another door than the three above."""
        ...

    def note_thought(self, receipt: Receipt, branch_id: str | None) -> None:
        """The same for a thought."""
        ...


async def finished(command: Callable[[], Awaitable[Receipt]]) -> Receipt:
    """Run a command to its end, also when the caller is cancelled meanwhile."""
    receipts: list[Receipt] = []
    with anyio.CancelScope(shield=True):
        receipts.append(await command())
    return receipts[0]


async def start_said(
    ledger: Ledger, context: Context, said: StartInput, session_id: str | None
) -> Receipt:
    """Start the chain that was asked for, in a session.  Raises what ``start_chain`` raises."""
    return await reasoning.start_chain(
        ledger,
        context,
        session_id=session_id,
        parent_chain_id=said.parent_chain_id,
        title=said.title,
        said=[said.session_id, said.parent_chain_id, said.title],
    )


def starts_another(said: ThoughtInput) -> bool:
    """Whether it is a plain thought 1, with which a chain begins."""
    return said.thought_number == 1 and not said.is_revision and said.branch_id is None


def answer_of_chain(said: ThoughtInput) -> Callable[[ThoughtChain], Mapping[str, Any]]:
    """The drop-in's answer to a thought, which speaks of the chain it went to."""

    def answer(chain: ThoughtChain) -> Mapping[str, Any]:
        return answer_of(said, chain.branches, chain.thought_count, chain.id)

    return answer


def answer_of(
    said: ThoughtInput, branches: list[str], history_length: int, chain_id: UUID
) -> dict[str, Any]:
    """The five fields of the original, in its order, and the chain."""
    return {
        "thoughtNumber": said.thought_number,
        "totalThoughts": said.total_thoughts,
        "nextThoughtNeeded": said.next_thought_needed,
        "branches": branches,
        "thoughtHistoryLength": history_length,
        "chain_id": str(chain_id),
    }
