"""Import of traces: many chains at once, resumable, and harmless to repeat.

Ids are made of what the file says and an operation is one event, so a chain's version tells how
far an earlier import came.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from ledger.aggregate import ThoughtChain
from ledger.application import Decide, Ledger
from ledger.errors import ChainNotFoundError, LedgerError, LimitExceededError
from ledger.header import Context
from ledger.limits import BATCH_EVENTS_MAX
from ledger.traces import (
    THOUGHT_OPS,
    Operation,
    TraceError,
    apply_operation,
    chain_id_of,
    read_operations,
    start_chain,
    thought_id_of,
)

CHAINS_AT_ONCE = 64


class ChangedChainError(LedgerError):
    """A chain imported in part was changed by somebody else since."""

    def __init__(self, chain_id: UUID) -> None:
        super().__init__(
            f"chain {chain_id} was imported in part and changed since; it is left as it is, "
            "import the rest under another chain name"
        )
        self.chain_id = chain_id


@dataclass(frozen=True)
class Section:
    """Operations of one chain that stand together in the file, after *offset* earlier ones."""

    start: Operation
    offset: int
    operations: list[Operation]


@dataclass
class Imported:
    """What an import did."""

    chains: int = 0
    operations: int = 0
    added: int = 0


def check_traces(path: Path) -> int:
    """How many operations the file has, when all of it makes sense.

    Nothing is recorded before this has passed.  Raises TraceError, and what commands raise.
    """
    count = 0
    chains: dict[str, ThoughtChain] = {}
    for section in _sections(path):
        chain = chains.get(section.start.chain)
        if chain is None:
            chain = chains[section.start.chain] = _started(section.start)
        for operation in section.operations:
            if operation is not section.start:
                _checked(chain, operation)
        chain.collect()
        count += len(section.operations)
    return count


async def import_traces(
    ledger: Ledger, context: Context, path: Path, on_progress: Callable[[int], None]
) -> Imported:
    """Record a file that ``check_traces`` has passed.

    *on_progress* is called with the number of operations done.  Raises ChangedChainError, and
    what the ledger's commands raise; then what was recorded stays, and a repetition goes on there.
    """
    imported = Imported()
    waiting: set[asyncio.Task[None]] = set()

    async def import_one(section: Section) -> None:
        # Not in one line: the sum before the await would be an old one after it.
        added = await _import_section(ledger, context, section)
        imported.added += added
        imported.chains += section.offset == 0
        imported.operations += len(section.operations)
        on_progress(imported.operations)

    try:
        for section in _sections(path):
            if section.offset:
                waiting = await _settle(waiting, asyncio.ALL_COMPLETED)
            waiting.add(asyncio.create_task(import_one(section)))
            if len(waiting) >= CHAINS_AT_ONCE:
                waiting = await _settle(waiting, asyncio.FIRST_COMPLETED)
    finally:
        await _settle(waiting, asyncio.ALL_COMPLETED)
    return imported


def _sections(path: Path) -> Iterator[Section]:
    starts: dict[str, Operation] = {}
    counts: dict[str, int] = {}
    for name, group in groupby(read_operations(path), key=lambda operation: operation.chain):
        operations = list(group)
        start = starts.setdefault(name, operations[0])
        yield Section(start, counts.get(name, 0), operations)
        counts[name] = counts.get(name, 0) + len(operations)


def _started(start: Operation) -> ThoughtChain:
    try:
        return start_chain(start)
    except LimitExceededError as error:
        raise TraceError(start.line, str(error)) from error


def _checked(chain: ThoughtChain, operation: Operation) -> None:
    try:
        apply_operation(chain, operation)
    except TraceError:
        raise
    except LedgerError as error:
        raise TraceError(operation.line, str(error)) from error


async def _import_section(ledger: Ledger, context: Context, section: Section) -> int:
    """Record what is missing of a section; the number of events added."""
    chain_id = chain_id_of(section.start)
    recorded = await _recorded(ledger, chain_id, section)
    missing = section.operations[max(0, recorded - section.offset) :]
    for begin in range(0, len(missing), BATCH_EVENTS_MAX):
        batch = missing[begin : begin + BATCH_EVENTS_MAX]
        if batch[0] is section.start:
            chain = start_chain(section.start)
            _applying(batch[1:])(chain)
            await ledger.begin(context, chain, {})
        else:
            await ledger.change(context, chain_id, "import", _applying(batch))
    return len(missing)


async def _recorded(ledger: Ledger, chain_id: UUID, section: Section) -> int:
    """How many operations of the chain an earlier import has recorded: each was one event."""
    try:
        chain = await ledger.chain(chain_id)
    except ChainNotFoundError:
        return 0
    for operation in section.operations[: max(0, chain.version - section.offset)]:
        is_thought = operation.op in THOUGHT_OPS
        if is_thought and thought_id_of(chain_id, operation) not in chain.steps.sequences:
            raise ChangedChainError(chain_id)
    return chain.version


def _applying(operations: list[Operation]) -> Decide:
    def decide(chain: ThoughtChain) -> dict[str, Any]:
        for operation in operations:
            apply_operation(chain, operation)
        return {}

    return decide


async def _settle(waiting: set[asyncio.Task[None]], when: str) -> set[asyncio.Task[None]]:
    if not waiting:
        return waiting
    done, rest = await asyncio.wait(waiting, return_when=when)
    for task in done:
        task.result()
    return rest
