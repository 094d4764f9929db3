"""What one connection is thinking about: its current chain, its history and its branches."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from ledger import reasoning
from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.chain_state import Status
from ledger.commands import Decide, Receipt
from ledger.header import Context
from mcp_server.chains.inputs import AddInput, StartInput
from mcp_server.inputs import ThoughtInput, thought_of
from mcp_server.thinking import (
    Thinking,
    answer_of,
    answer_of_chain,
    finished,
    start_said,
    starts_another,
)

# Whose chains the episodes of a session are: the tool's name, as recorded with each.
CRITICAL_SOURCE = "criticalthinking"


class Conversation(Thinking):
    """The thoughts of one connection, taken one after the other until they are recorded.

    The SDK runs calls concurrently; without the turn here two first thoughts would start two
    chains.  A named session goes on where an earlier connection of that name stopped.
    """

    def __init__(self, session_name: str | None = None) -> None:
        self._session_id = session_name or str(uuid4())
        self._to_restore = session_name is not None
        self._turn = asyncio.Lock()
        self._current: UUID | None = None
        self._chains: set[UUID] = set()
        self._history_length = 0
        # A dict for its order: branches by first appearance.
        self._branches: dict[str, None] = {}
        # Chains that perhaps have no thought yet: the next thought 1 there is their first.
        self._untouched: set[UUID] = set()
        # The current chains of the sessions that calls have named.
        self._sessions: dict[str, UUID] = {}
        self._position = 0

    @property
    def session_id(self) -> str:
        return self._session_id

    @property
    def position(self) -> int:
        """The last position of what was recorded for this connection, 0 for nothing."""
        return self._position

    @property
    def busy(self) -> bool:
        """Whether a call has its turn now."""
        return self._turn.locked()

    async def think(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        """Record what was said and return the drop-in tool's answer.

        Cancelled while it waits for its turn it records nothing; afterwards it is finished.
        Raises what ``Ledger.think`` raises.
        """

        async def record() -> Receipt:
            receipt = await self._record(ledger, context, said)
            await self._follow(ledger, receipt, said)
            return receipt

        return (await self._in_turn(ledger, record)).answer

    async def add(
        self, ledger: Ledger, context: Context, said: AddInput, answer: Decide
    ) -> Receipt:
        """Record a thought with its references checked; *answer* is as in ``reasoning.add``.

        As ``think`` where the current chain is concerned.  A session that is named has a current
        chain of its own.  Raises InputError, and what ``reasoning.add`` raises.
        """

        async def add() -> Receipt:
            receipt = await self._add(ledger, context, said, answer)
            # A retry that comes late does not lead back to a chain this connection has left.
            late = receipt.repeated and receipt.chain_id in self._chains
            await self._follow(ledger, receipt, said.said)
            if said.said.chain_id is None and not late:
                self._move_to(receipt.chain_id, said.session_id)
            return receipt

        return await self._in_turn(ledger, add)

    async def start(self, ledger: Ledger, context: Context, said: StartInput) -> Receipt:
        """Start a chain and make it the current one.  Raises what ``start_chain`` raises."""

        async def start() -> Receipt:
            session_id = said.session_id or self._session_id
            receipt = await start_said(ledger, context, said, session_id)
            self.note(receipt)
            if receipt.chain_id not in self._chains:
                self._adopt(await ledger.chain(receipt.chain_id))
                self._move_to(receipt.chain_id, said.session_id)
            return receipt

        return await self._in_turn(ledger, start)

    def note(self, receipt: Receipt) -> None:
        """Remember up to where this connection has written."""
        self._position = max(self._position, receipt.position or 0)

    def note_thought(self, receipt: Receipt, branch_id: str | None) -> None:
        """Count a thought that went into a chain by another door than ``think`` and ``add``."""
        self.note(receipt)
        if receipt.chain_id in self._chains and not receipt.repeated:
            self._count(branch_id)

    async def _in_turn(self, ledger: Ledger, command: Callable[[], Awaitable[Receipt]]) -> Receipt:
        """Take the connection's turn; what has begun in it is finished, whoever is cancelled."""
        async with self._turn:

            async def restored() -> Receipt:
                await self._restore(ledger)
                return await command()

            return await finished(restored)

    async def _add(
        self, ledger: Ledger, context: Context, said: AddInput, answer: Decide
    ) -> Receipt:
        thought, expected = said.thought, said.expected_version
        chain_id = said.said.chain_id
        if chain_id is not None:
            return await reasoning.add(
                ledger, context, chain_id, thought, answer, expected_version=expected
            )
        # Which chain is the current one may have changed since the request was sent first.
        if repeated := await reasoning.added_before(ledger, context, None, thought):
            return repeated
        named = said.session_id
        current = self._current if named is None else self._sessions.get(named)
        chain_id = await self._chain_for(ledger, said.said, current)
        if chain_id is not None:
            return await reasoning.add(
                ledger, context, chain_id, thought, answer, expected_version=expected, named=False
            )
        said.require_chain_for_version()
        session_id = named or self._session_id
        return await reasoning.begin_adding(ledger, context, session_id, thought, answer)

    async def _chain_for(
        self, ledger: Ledger, said: ThoughtInput, current: UUID | None
    ) -> UUID | None:
        """The chain a thought without a chain_id goes to; None when it starts another."""
        if current is None or not starts_another(said):
            return current
        if current not in self._untouched:
            return None
        chain = await ledger.chain(current)
        if chain.thought_count:
            self._untouched.discard(current)
            return None
        return current if chain.status is Status.ACTIVE else None

    def _move_to(self, chain_id: UUID, session_id: str | None) -> None:
        self._current = chain_id
        if session_id is not None:
            self._sessions[session_id] = chain_id

    async def _record(self, ledger: Ledger, context: Context, said: ThoughtInput) -> Receipt:
        thought = thought_of(said)
        if said.chain_id is not None:
            return await ledger.think(context, said.chain_id, thought, answer_of_chain(said))

        def answer(chain: ThoughtChain) -> Mapping[str, Any]:
            branches = list(self._branches | _branch(said.branch_id))
            return answer_of(said, branches, self._history_length + 1, chain.id)

        # Which chain is the current one may have changed since the request was sent first.
        if repeated := await ledger.answered(context, None, thought):
            return repeated
        chain_id = await self._chain_for(ledger, said, self._current)
        if chain_id is None:
            return await ledger.begin_thinking(context, self._session_id, thought, answer)
        return await ledger.think(context, chain_id, thought, answer, named=False)

    async def _follow(self, ledger: Ledger, receipt: Receipt, said: ThoughtInput) -> None:
        """Move on to the chain that was just thought in, and count the thought."""
        self.note(receipt)
        if receipt.chain_id in self._chains:
            if not receipt.repeated:
                self._count(said.branch_id)
            return
        if said.chain_id is not None and self._current is not None:
            return  # a thought for a chain of somebody else; this conversation stays where it is
        self._current = receipt.chain_id
        if said.chain_id is None and not receipt.repeated:
            self._chains.add(receipt.chain_id)
            self._count(said.branch_id)
        else:
            self._adopt(await ledger.chain(receipt.chain_id))

    def _count(self, branch_id: str | None) -> None:
        self._history_length += 1
        self._branches |= _branch(branch_id)

    async def _restore(self, ledger: Ledger) -> None:
        if not self._to_restore:
            return
        chains = await chains_of(ledger, self._session_id)
        for chain in chains:
            self._adopt(chain)
        if chains:
            self._current = current_of(chains).id
        self._to_restore = False

    def _adopt(self, chain: ThoughtChain) -> None:
        self._chains.add(chain.id)
        if not chain.thought_count:
            self._untouched.add(chain.id)
        self._history_length += chain.thought_count
        self._branches |= dict.fromkeys(chain.branches)


async def chains_of(ledger: Ledger, session_id: str) -> list[ThoughtChain]:
    """The chains of a session, oldest first."""
    chains = [await ledger.chain(i) for i in await ledger.session_chains(session_id)]
    # An episode has its own tool, whose thoughts the others do not count either.
    return [chain for chain in chains if chain.source != CRITICAL_SOURCE]


def current_of(chains: Sequence[ThoughtChain]) -> ThoughtChain:
    """The chain a session goes on with: its latest that is not ended, else its latest."""
    unfinished = [c for c in chains if c.status in (Status.ACTIVE, Status.PAUSED)]
    return (unfinished or chains)[-1]


def _branch(branch_id: str | None) -> dict[str, None]:
    return {} if branch_id is None else {branch_id: None}
