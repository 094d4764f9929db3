"""Conversations by the names of their sessions, with a connection and without."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakValueDictionary

from ledger.aggregate import ThoughtChain
from ledger.application import Ledger
from ledger.commands import Answer, Receipt
from ledger.header import Context
from mcp_server.conversation import Conversation, chains_of, current_of
from mcp_server.inputs import InputError, ThoughtInput, thought_of
from mcp_server.thinking import answer_of, finished, starts_another

# How many sessions are remembered; any other one is read from the log when it is named again.
SESSIONS_MAX = 1_000


class SessionUnnamedError(InputError):
    """A thought that goes on with a session, and nobody to know which."""

    def __init__(self) -> None:
        problem = (
            "is missing: over HTTP every thought names its session, only a plain thought 1 "
            "(no revision, no branch) begins one; the answer to thought 1 has the session_id"
        )
        super().__init__(("session_id", problem))


class Sessions(Protocol):
    """What takes the thoughts of named sessions, which do not see each other."""

    async def think(
        self, ledger: Ledger, context: Context, session_id: str | None, said: ThoughtInput
    ) -> tuple[str, dict[str, Any]]:
        """The session's name, and the drop-in's answer, which speaks of the session.

        Raises InputError, and what ``Ledger.think`` raises.
        """
        ...


class ConnectionSessions(Sessions):
    """The sessions a client has named, and the connection's own for calls that name none."""

    def __init__(self, own: Conversation) -> None:
        self._own = own
        self._named: OrderedDict[str, Conversation] = OrderedDict()

    async def think(
        self, ledger: Ledger, context: Context, session_id: str | None, said: ThoughtInput
    ) -> tuple[str, dict[str, Any]]:
        conversation = self._get(session_id)
        return conversation.session_id, await conversation.think(ledger, context, said)

    def _get(self, session_id: str | None) -> Conversation:
        """The conversation of a session; one not seen before is read from the log."""
        if session_id is None or session_id == self._own.session_id:
            return self._own
        conversation = self._named.pop(session_id, None) or Conversation(session_id)
        self._named[session_id] = conversation
        if len(self._named) > SESSIONS_MAX:
            self._forget_one()
        return conversation

    def _forget_one(self) -> None:
        for session_id, conversation in self._named.items():
            if not conversation.busy:
                del self._named[session_id]
                return


class StatelessSessions(Sessions):
    """Each call reads its session from the log: another process may have gone on with it."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def think(
        self, ledger: Ledger, context: Context, session_id: str | None, said: ThoughtInput
    ) -> tuple[str, dict[str, Any]]:
        """As promised; raises SessionUnnamedError as well."""
        if session_id is None:
            if not starts_another(said):
                raise SessionUnnamedError
            session_id = str(uuid4())
        turn = self._turns.setdefault(session_id, asyncio.Lock())
        async with turn:
            receipt = await finished(partial(_think, ledger, context, session_id, said))
        return session_id, receipt.answer


async def _think(ledger: Ledger, context: Context, session_id: str, said: ThoughtInput) -> Receipt:
    chains = await chains_of(ledger, session_id)
    current = current_of(chains) if chains else None
    if current is not None and starts_another(said) and current.thought_count:
        current = None
    others = [chain for chain in chains if chain is not current]
    length = sum(chain.thought_count for chain in others)
    branches = dict.fromkeys(branch for chain in others for branch in chain.branches)

    # Of the chain as it is after the thought: another process may have thought in it meanwhile.
    def answer(chain: ThoughtChain) -> Answer:
        named = list(branches | dict.fromkeys(chain.branches))
        return answer_of(said, named, length + chain.thought_count, chain.id)

    thought = thought_of(said)
    if current is None:
        return await ledger.begin_thinking(context, session_id, thought, answer)
    return await ledger.think(context, current.id, thought, answer)
