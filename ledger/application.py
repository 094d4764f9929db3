"""The use cases: the only way to write to the log."""

from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from ledger.aggregate import ThoughtChain
from ledger.appender import Appender
from ledger.chains import Chains
from ledger.commands import Answer, Decide, Receipt, command_of, moved, title_of
from ledger.database import Database, Role
from ledger.episodes import Episode
from ledger.errors import ChainExistsError, ChainNotFoundError
from ledger.events import ChainEvent
from ledger.execution import Execution
from ledger.header import Context
from ledger.log import SELECT_HEAD
from ledger.reader import Reader
from ledger.recalls import Recalls
from ledger.serialization import Recorded
from ledger.thought import Thought

SELECT_SESSION_CHAINS = """
    SELECT originator_id
      FROM ledger.events
     WHERE session_id = %(session_id)s
     ORDER BY notification_id
"""


class Ledger:
    """What a caller can ask of the log.  Everything that is written is written here.

    One object a process: it holds two connections, one that appends and one that reads.
    Every method may raise DatabaseUnavailableError.  Every method that writes takes the request id
    of its context: sent again, it records nothing and returns the first receipt, or raises
    RequestMismatchError when the command is another one.  A cancelled caller's command is recorded
    whole or not at all.
    """

    def __init__(self, database: Database, role: Role = Role.WRITER) -> None:
        """*database* has been opened; who only reads may do so as a READER."""
        connector = database.connector(role)
        self._reader = Reader(connector)
        self._appender = Appender(connector)
        self._chains = Chains(self._reader)
        self._execution = Execution(self._reader, self._appender, self._chains)
        # Who only reads leaves no trace.
        self._recalls = Recalls(self._reader, self._appender) if role is Role.WRITER else None

    # -- Writing ----------------------------------------------------------------------------------

    async def begin(
        self,
        context: Context,
        chain: ThoughtChain,
        answer: Answer,
        *,
        name: str = "begin",
        said: object = None,
    ) -> Receipt:
        """Record a chain just started, with all it has decided since, in one save.

        A request id stands for *name* and what was *said*, by default the answer.  Raises
        ChainExistsError.
        """
        command = command_of(context, name, None, answer if said is None else said)
        if known := await self._execution.known(command):
            return known
        return await self._execution.begin(chain, answer, command)

    async def begin_thinking(
        self, context: Context, session_id: str | None, thought: Thought, answer: Decide
    ) -> Receipt:
        """Start a chain, titled by its first thought, with that thought; see ``think``."""
        command = command_of(context, "think", None, thought)
        chain = ThoughtChain.start(uuid4(), title=title_of(thought.text), session_id=session_id)
        chain.think(uuid4(), thought)
        return await self._execution.begin(chain, answer(chain), command)

    async def think(
        self,
        context: Context,
        chain_id: UUID,
        thought: Thought,
        answer: Decide,
        *,
        named: bool = True,
    ) -> Receipt:
        """Record a thought as the drop-in tool means it (``ThoughtChain.think``).

        *answer* is given the chain as it is after the thought.  *named*: the caller named the
        chain; else it is the caller's current one, which is not part of what a request id stands
        for.

        Raises ChainNotFoundError, ChainNotActiveError, BranchClosedError, LimitExceededError,
        ConcurrentAppendError, and what ``Appender.append`` raises.
        """

        def decide(chain: ThoughtChain) -> Answer:
            chain.think(uuid4(), thought)
            return answer(chain)

        command = command_of(context, "think", chain_id if named else None, thought)
        return await self._execution.execute(chain_id, decide, command)

    async def think_in_episode(
        self, context: Context, episode: Episode, thought: Thought, answer: Decide
    ) -> Receipt:
        """Record a thought (``ThoughtChain.think_in_range``) in an episode, which it may begin.

        A request id stands for the episode's name and the thought, not for the session.  Raises
        ReferenceOutOfRangeError, and what ``think`` raises.
        """

        def decide(chain: ThoughtChain) -> Answer:
            chain.think_in_range(uuid4(), thought)
            return answer(chain)

        said = {"episode": episode.name, "thought": asdict(thought)}
        command = command_of(context, episode.source, None, said)
        try:
            return await self._execution.execute(episode.chain_id, decide, command)
        except ChainNotFoundError:
            chain = episode.start(thought.text)
            first_answer = decide(chain)
        try:
            return await self._execution.begin(chain, first_answer, command)
        except ChainExistsError:  # another process began it meanwhile
            return await self._execution.execute(episode.chain_id, decide, command)

    async def change(
        self,
        context: Context,
        chain_id: UUID,
        name: str,
        decide: Decide,
        *,
        said: object = None,
        named: bool = True,
    ) -> Receipt:
        """Run commands on one chain and record what they decided, in one save.

        A request id stands for *name*, what was *said*, and the chain if it was *named*.  Raises
        what the commands raise, and what ``think`` raises.
        """
        command = command_of(context, name, chain_id if named else None, said)
        return await self._execution.execute(chain_id, decide, command)

    async def pause(self, context: Context, chain_id: UUID, reason: str | None = None) -> Receipt:
        return await self._move(context, chain_id, "pause", reason)

    async def resume(self, context: Context, chain_id: UUID, reason: str | None = None) -> Receipt:
        return await self._move(context, chain_id, "resume", reason)

    async def complete(
        self, context: Context, chain_id: UUID, reason: str | None = None
    ) -> Receipt:
        return await self._move(context, chain_id, "complete", reason)

    async def abandon(self, context: Context, chain_id: UUID, reason: str | None = None) -> Receipt:
        return await self._move(context, chain_id, "abandon", reason)

    def recalled(
        self, context: Context, chain_id: UUID, tool: str, thought_ids: Sequence[UUID]
    ) -> None:
        """Note that *tool* returned these thoughts: it is recorded in the background, or never.

        A reader's ledger notes nothing.
        """
        if self._recalls is not None:
            self._recalls.note(context, chain_id, tool, thought_ids)

    # -- Reading ----------------------------------------------------------------------------------

    async def chain(self, chain_id: UUID) -> ThoughtChain:
        """The chain as it is in the log now; not to be changed.  Raises ChainNotFoundError."""
        async with self._chains.turn(chain_id) as turn:
            return await turn.refresh()

    async def events(self, chain_id: UUID, *, after: int, limit: int) -> list[ChainEvent]:
        """Up to *limit* events of a chain after a version; none when there is no such chain."""
        return await self._chains.events(chain_id, after, limit)

    async def session_chains(self, session_id: str) -> list[UUID]:
        """The chains started under a session, oldest first."""
        rows = await self._reader.fetch(SELECT_SESSION_CHAINS, {"session_id": session_id})
        return [chain_id for (chain_id,) in rows]

    async def position(self) -> int:
        """The position of the last event of the log, 0 when there is none."""
        ((position,),) = await self._reader.fetch(SELECT_HEAD, {})
        return position

    @property
    def appends(self) -> int:
        """How many commands this object has recorded; recalls are none."""
        return self._appender.stored - (self._recalls.stored if self._recalls else 0)

    async def answered(
        self, context: Context, chain_id: UUID | None, thought: Thought
    ) -> Receipt | None:
        """The first receipt of a thought sent before under the context's request id.

        *chain_id* is the chain the caller named, if any.
        """
        return await self._execution.known(command_of(context, "think", chain_id, thought))

    async def answered_change(
        self, context: Context, chain_id: UUID | None, name: str, said: object
    ) -> Receipt | None:
        """The first receipt of a ``change`` or ``begin`` sent before, as ``answered``."""
        return await self._execution.known(command_of(context, name, chain_id, said))

    async def chain_at(self, chain_id: UUID, version: int) -> ThoughtChain:
        """The chain as it was.  Raises ChainNotFoundError, VersionNotFoundError."""
        return await self._chains.read_at(chain_id, version)

    async def recorded(
        self, chain_id: UUID, versions: list[int], *, bytes_max: int
    ) -> list[Recorded]:
        """The events at some versions of a chain, in order, verified.

        The first, and as many more as *bytes_max* allows.
        """
        return await self._chains.recorded(chain_id, versions, bytes_max)

    async def close(self) -> None:
        """Finish the appends in flight and let the connections go."""
        if self._recalls is not None:
            await self._recalls.close()
        await self._appender.close()
        await self._reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- Helpers ----------------------------------------------------------------------------------

    async def _move(
        self, context: Context, chain_id: UUID, verb: str, reason: str | None
    ) -> Receipt:
        def decide(chain: ThoughtChain) -> Answer:
            previous = chain.status
            getattr(chain, verb)(reason=reason)
            return moved(previous, chain)

        return await self._execution.execute(
            chain_id, decide, command_of(context, verb, chain_id, reason)
        )
