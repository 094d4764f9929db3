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
from ledger.application import Ledger
from ledger.commands import Decide
from ledger.display import shortened
from ledger.errors import (
    ChainNotActiveError,
    LedgerError,
    LimitExceededError,
    ThoughtExistsError,
    ThoughtNotFoundError,
    TransitionError,
)
from ledger.header import Context
from ledger.limits import BATCH_EVENTS_MAX
from ledger.traces import (
    Operation,
    TraceError,
    apply_operation,
    chain_id_of,
    is_recorded_as,
    read_operations,
    start_chain,
)

CHAINS_AT_ONCE = 64


class ChangedChainError(LedgerError):
    """The log has a chain of this source and name that says something else than the file."""

    def __init__(self, chain_id: UUID, line: int) -> None:
        super().__init__(
            f"line {line}: chain {chain_id} was recorded before and says something else here; "
            "it is left as it is, give the chain of the file another name"
        )
        self.chain_id = chain_id
        self.line = line


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
    """Apply an operation, or say in the words of the file why that makes no sense."""
    name = shortened(operation.chain)
    try:
        apply_operation(chain, operation)
    except TraceError:
        raise
    except ThoughtExistsError as error:
        problem = f"chain {name} has two thoughts with n {operation.number}"
        raise TraceError(operation.line, problem) from error
    except ThoughtNotFoundError as error:
        problem = f"chain {name} has no thought {operation.number}"
        raise TraceError(operation.line, problem) from error
    except (ChainNotActiveError, TransitionError) as error:
        problem = f"chain {name} is {error.status} before this line"
        raise TraceError(operation.line, problem) from error
    except LedgerError as error:
        raise TraceError(operation.line, str(error)) from error


async def _import_section(ledger: Ledger, context: Context, section: Section) -> int:
    """Record what is missing of a section; the number of events added."""
    added = 0
    recorded = await _recorded(ledger, section)
    while missing := section.operations[recorded:]:
        batch = missing[:BATCH_EVENTS_MAX]
        try:
            await _record(ledger, context, section, batch)
        except LedgerError:
            # Another import of the same file may have recorded it first.
            before, recorded = recorded, await _recorded(ledger, section)
            if recorded == before:
                raise
        else:
            added += len(batch)
            recorded += len(batch)
    return added


async def _record(
    ledger: Ledger, context: Context, section: Section, batch: list[Operation]
) -> None:
    if batch[0] is section.start:
        chain = start_chain(section.start)
        _applying(batch[1:])(chain)
        await ledger.begin(context, chain, {})
    else:
        await ledger.change(context, chain_id_of(section.start), "import", _applying(batch))


async def _recorded(ledger: Ledger, section: Section) -> int:
    """How many of the section's operations are in the log already: each is one event.

    Raises ChangedChainError when the log says something else than the file.
    """
    chain_id = chain_id_of(section.start)
    events = await ledger.events(chain_id, after=section.offset, limit=len(section.operations))
    for operation, event in zip(section.operations, events, strict=False):
        if not is_recorded_as(chain_id, operation, event):
            raise ChangedChainError(chain_id, operation.line)
    return len(events)


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
