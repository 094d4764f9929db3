"""What one connection is thinking about: its current chain, its history and its branches.

And what takes its place where there are no connections.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from uuid import UUID, uuid4

import anyio

from ledger import reasoning
from ledger.aggregate import Status, ThoughtChain
from ledger.application import Decide, Ledger
from ledger.commands import Receipt
from ledger.header import Context
from mcp_server.inputs import InputError, ThoughtInput, thought_of
from mcp_server.inputs_chains import AddInput, StartInput

# Whose chains the episodes of a session are: the tool's name, as recorded with each.
CRITICAL_SOURCE = "criticalthinking"


class ChainUnnamedError(InputError):
    """A thought that goes on with a chain, and nobody to know which."""

    def __init__(self) -> None:
        problem = (
            "is missing: over HTTP every thought names its chain, only a plain thought 1 "
            "(no revision, no branch) starts one; the answer to thought 1 has the chain_id"
        )
        super().__init__(("chain_id", problem))


class Thinking(Protocol):
    """What takes the drop-in tool's thoughts."""

    async def think(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        """Record what was said and return the drop-in tool's answer."""
        ...


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
        # A chain that was started and has perhaps no thought yet: the next thought 1 is its first.
        self._untouched: UUID | None = None
        # The current chains of the sessions that calls have named.
        self._sessions: dict[str, UUID] = {}
        self.position = 0
        """The last position of what was recorded for this connection, 0 for nothing."""

    @property
    def session_id(self) -> str:
        return self._session_id

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
            await self._follow(ledger, receipt, said.said)
            if said.said.chain_id is None:
                self._move_to(receipt.chain_id, said.session_id)
            return receipt

        return await self._in_turn(ledger, add)

    async def start(self, ledger: Ledger, context: Context, said: StartInput) -> Receipt:
        """Start a chain and make it the current one.  Raises what ``start_chain`` raises."""

        async def start() -> Receipt:
            receipt = await reasoning.start_chain(
                ledger,
                context,
                session_id=said.session_id or self._session_id,
                parent_chain_id=said.parent_chain_id,
                title=said.title,
                said=[said.session_id, said.parent_chain_id, said.title],
            )
            self.note(receipt)
            if receipt.chain_id not in self._chains:
                self._adopt(await ledger.chain(receipt.chain_id))
                self._untouched = receipt.chain_id
                self._move_to(receipt.chain_id, said.session_id)
            return receipt

        return await self._in_turn(ledger, start)

    def note(self, receipt: Receipt) -> None:
        """Remember up to where this connection has written."""
        self.position = max(self.position, receipt.position or 0)

    def note_thought(self, receipt: Receipt, branch_id: str | None) -> None:
        """Count a thought that went into a chain by another door than ``think`` and ``add``."""
        self.note(receipt)
        if receipt.chain_id in self._chains and not receipt.repeated:
            self._count(branch_id)

    async def _in_turn(self, ledger: Ledger, command: Callable[[], Awaitable[Receipt]]) -> Receipt:
        """Take the connection's turn; what has begun in it is finished, whoever is cancelled."""
        async with self._turn:
            receipts: list[Receipt] = []
            with anyio.CancelScope(shield=True):
                await self._restore(ledger)
                receipts.append(await command())
            return receipts[0]

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
        if expected is not None:
            raise InputError(("expectedVersion", "needs the chain_id of the chain it speaks of"))
        session_id = named or self._session_id
        return await reasoning.begin_adding(ledger, context, session_id, thought, answer)

    async def _chain_for(
        self, ledger: Ledger, said: ThoughtInput, current: UUID | None
    ) -> UUID | None:
        """The chain a thought without a chain_id goes to; None when it starts another."""
        if current is None or not _starts_another(said):
            return current
        if current != self._untouched:
            return None
        chain = await ledger.chain(current)
        return current if chain.status is Status.ACTIVE and not chain.thought_count else None

    def _move_to(self, chain_id: UUID, session_id: str | None) -> None:
        self._current = chain_id
        if session_id is not None:
            self._sessions[session_id] = chain_id

    async def _record(self, ledger: Ledger, context: Context, said: ThoughtInput) -> Receipt:
        thought = thought_of(said)
        if said.chain_id is not None:
            return await ledger.think(context, said.chain_id, thought, _answer_of_chain(said))

        def answer(chain: ThoughtChain) -> Mapping[str, Any]:
            branches = list(self._branches | _branch(said.branch_id))
            return _answer(said, branches, self._history_length + 1, chain.id)

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
        chains = [await ledger.chain(i) for i in await ledger.session_chains(self._session_id)]
        # An episode has its own tool, whose thoughts this conversation does not count either.
        chains = [chain for chain in chains if chain.source != CRITICAL_SOURCE]
        for chain in chains:
            self._adopt(chain)
        if chains:
            unfinished = [c for c in chains if c.status in (Status.ACTIVE, Status.PAUSED)]
            self._current = (unfinished or chains)[-1].id
        self._to_restore = False

    def _adopt(self, chain: ThoughtChain) -> None:
        self._chains.add(chain.id)
        self._history_length += chain.thought_count
        self._branches |= dict.fromkeys(chain.branches)


class Stateless(Thinking):
    """Thoughts without a connection: each names its chain, or is the first of a new one.

    Nothing is kept between calls, so it does not matter which process takes the next one.
    """

    async def think(self, ledger: Ledger, context: Context, said: ThoughtInput) -> dict[str, Any]:
        """Record what was said and return the drop-in tool's answer, which speaks of the chain.

        Raises ChainUnnamedError, and what ``Ledger.think`` raises.
        """
        if said.chain_id is None and not _starts_another(said):
            raise ChainUnnamedError
        answer: dict[str, Any] = {}
        with anyio.CancelScope(shield=True):
            receipt = await self._record(ledger, context, said)
            answer |= receipt.answer
        return answer

    async def _record(self, ledger: Ledger, context: Context, said: ThoughtInput) -> Receipt:
        thought, answer = thought_of(said), _answer_of_chain(said)
        if said.chain_id is None:
            return await ledger.begin_thinking(context, None, thought, answer)
        return await ledger.think(context, said.chain_id, thought, answer)


def _answer_of_chain(said: ThoughtInput) -> Callable[[ThoughtChain], Mapping[str, Any]]:
    def answer(chain: ThoughtChain) -> Mapping[str, Any]:
        return _answer(said, chain.branches, chain.thought_count, chain.id)

    return answer


def _answer(
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


def _branch(branch_id: str | None) -> dict[str, None]:
    return {} if branch_id is None else {branch_id: None}


def _starts_another(said: ThoughtInput) -> bool:
    return said.thought_number == 1 and not said.is_revision and said.branch_id is None
