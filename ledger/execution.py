"""How a command is run: answered before, or decided in its turn and appended."""

import itertools
import time
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.appender import Appender, Verdict
from ledger.chains import Chains, Turn
from ledger.commands import Answer, Command, Decide, Receipt, repeated, save_of
from ledger.errors import ChainExistsError, ConcurrentAppendError, LedgerError
from ledger.reader import Reader

# Another process with a queue of its own wins every race until its queue is empty, so attempts
# are limited by time and not by number.
APPEND_SECONDS_MAX = 15.0

SELECT_REQUEST = """
    SELECT 'known', first_position, last_position, command_digest, answer
      FROM ledger.requests
     WHERE request_key = %(request_key)s
"""


class Execution:
    """Runs the commands of one process."""

    def __init__(self, reader: Reader, appender: Appender, chains: Chains) -> None:
        self._reader = reader
        self._appender = appender
        self._chains = chains

    async def begin(self, chain: ThoughtChain, answer: Answer, command: Command) -> Receipt:
        """Record all that a chain just started has decided.  Raises ChainExistsError."""
        verdict = await self._appender.append(
            save_of(chain.collect(), answer, command, chain.session_id)
        )
        if verdict.verdict == "conflict":
            raise ChainExistsError(chain.id)
        if verdict.command_digest is not None:
            return repeated(verdict, command)
        self._chains.keep(chain)
        return Receipt(chain.id, verdict.last_position, dict(answer))

    async def execute(self, chain_id: UUID, decide: Decide, command: Command) -> Receipt:
        """Decide on a chain and record what was decided.

        Raises what *decide* raises, ChainNotFoundError, ConcurrentAppendError, and what
        ``Appender.append`` raises.
        """
        if known := await self.known(command):
            return known
        return await self._take_turn(chain_id, decide, command)

    async def _take_turn(self, chain_id: UUID, decide: Decide, command: Command) -> Receipt:
        async with self._chains.turn(chain_id) as turn:
            try:
                return await self._decide_and_append(turn, decide, command)
            except ConcurrentAppendError:
                raise
            except BaseException:
                # Failed or cancelled, the append may still be recorded by the appender's own task:
                # what is in memory is no longer sure to be what is in the log.
                self._chains.drop(chain_id)
                raise

    async def _decide_and_append(self, turn: Turn, decide: Decide, command: Command) -> Receipt:
        deadline = time.monotonic() + APPEND_SECONDS_MAX
        for attempt in itertools.count(1):
            chain = await turn.chain()
            mark = chain.mark()
            try:
                answer = decide(chain)
            except LedgerError:
                chain.forget(chain.collect(), mark)
                if turn.fresh:
                    raise
                # Another process may have moved the chain on: refuse only by the log.
                await turn.refresh()
                continue
            events = chain.collect()
            if not events:
                return Receipt(chain.id, None, dict(answer))
            verdict = await self._appender.append(save_of(events, answer, command, None))
            if verdict.command_digest is not None:
                chain.forget(events, mark)
                return repeated(verdict, command)
            if verdict.verdict != "conflict":
                self._chains.keep(chain)
                return Receipt(chain.id, verdict.last_position, dict(answer))
            chain.forget(events, mark)
            if time.monotonic() > deadline:
                raise ConcurrentAppendError(turn.chain_id, attempt)
            await turn.refresh()
        raise AssertionError("there is always another attempt")

    async def known(self, command: Command) -> Receipt | None:
        """The first receipt of a request id that was sent before.  Raises RequestMismatchError."""
        if command.request_key is None:
            return None
        rows = await self._reader.fetch(SELECT_REQUEST, {"request_key": command.request_key})
        return repeated(Verdict(*rows[0]), command) if rows else None
