"""Reasoning traces as files hold them, and what each operation asks of a chain.

A file, plain or gzip, has one JSON object a line, one operation an object: ``chain`` and ``op``
(start, append, branch, revise, abandon, complete) and, by op, ``content``, ``n``, ``parent``,
``revises``, ``at``, ``src``, ``meta``.  Each operation becomes exactly one event.
"""

import gzip
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast
from uuid import UUID, uuid5

import orjson

from ledger.aggregate import ThoughtChain
from ledger.display import shortened
from ledger.errors import LedgerError
from ledger.events import (
    ChainAbandoned,
    ChainCompleted,
    ChainEvent,
    ChainStarted,
    ThoughtAbandoned,
    ThoughtAdded,
    ThoughtBranched,
    ThoughtRevised,
)
from ledger.limits import INTEGER_MAX, recordable
from ledger.thought import Thought

TRACE_NAMESPACE = UUID("c1f6a7a2-0d6e-5b7a-8f5e-6a4d3c2b1a09")
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A small packed file may unpack to a line that no memory holds.
LINE_BYTES_MAX = 16 * 2**20
THOUGHT_OPS = frozenset({"append", "branch", "revise"})
OPS = THOUGHT_OPS | {"start", "abandon", "complete"}

_T = TypeVar("_T", str, int)


class TraceError(LedgerError):
    """A file of traces cannot be read (line 0), or says something that makes no sense."""

    def __init__(self, line: int, problem: str) -> None:
        where = f"line {line}: " if line else ""
        what = "mend the file and import it again" if line else "nothing was imported"
        super().__init__(f"{where}{problem}; {what}")
        self.line = line
        self.problem = problem


class Operation(NamedTuple):
    """One line of a file of traces."""

    line: int
    chain: str
    op: str
    said: dict[str, Any]

    @property
    def number(self) -> int:
        """The thought it is about.  Raises TraceError when it names none."""
        number = self.get("n", int)
        if number is None or number < 1:
            raise TraceError(self.line, '"n" is not a whole number from 1')
        return number

    @property
    def text(self) -> str:
        return recordable(self.get("content", str) or "")

    @property
    def source(self) -> str | None:
        source = self.get("src", str)
        return source and recordable(source)

    @property
    def meta(self) -> str | None:
        """What else was said, as one JSON string."""
        meta = self.said.get("meta")
        return None if meta is None else self.dumps(meta).decode()

    def dumps(self, said: object) -> bytes:
        """What was said, as JSON.  Raises TraceError when it is nested too deep to be written."""
        try:
            return orjson.dumps(said)
        except orjson.JSONEncodeError as error:
            raise TraceError(self.line, '"meta" is nested too deep') from error

    def get(self, name: str, kind: type[_T]) -> _T | None:
        """A field by its type, None when it is absent or null.  Raises TraceError."""
        value = self.said.get(name)
        if _is_large(value):
            raise TraceError(self.line, f'"{name}" is beyond {INTEGER_MAX}')
        if value is None or type(value) is kind:
            return value
        wanted = "a whole number" if kind is int else "a text"
        raise TraceError(self.line, f'"{name}" is not {wanted}')


def read_operations(path: Path) -> Iterator[Operation]:
    """The operations of a file in order.  Raises TraceError."""
    number = 0
    try:
        with path.open("rb") as file:
            packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            file.seek(0)
            # Unpacking needs no closing of its own: it reads from the file that is closed here.
            lines = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
            for number, line in enumerate(_lines(lines), start=1):
                if len(line) > LINE_BYTES_MAX:
                    raise TraceError(number, f"longer than {LINE_BYTES_MAX:,} bytes")
                if line.strip():
                    yield _operation(number, line.removeprefix(BYTE_ORDER_MARK))
    except (OSError, EOFError, zlib.error) as error:
        problem = f"{path} cannot be read ({getattr(error, 'strerror', None) or error})"
        raise TraceError(number, problem) from error


def is_recorded_as(chain_id: UUID, operation: Operation, event: ChainEvent) -> bool:
    """Whether the event says what the operation says, as far as the operation says it."""
    match event:
        case ChainStarted():
            said = ("start", operation.text, operation.source)
            return said == (operation.op, event.title, event.source)
        case ThoughtAdded() | ThoughtRevised() | ThoughtBranched():
            return operation.op in THOUGHT_OPS and (
                thought_id_of(chain_id, operation),
                operation.text,
                operation.source,
                operation.meta,
            ) == (event.thought_id, event.text, event.source, event.metadata)
        case ThoughtAbandoned():
            given_up = operation.op == "abandon" and "n" in operation.said
            return given_up and thought_id_of(chain_id, operation) == event.thought_id
        case ChainCompleted():
            return (operation.op, operation.meta) == ("complete", event.metadata)
        case ChainAbandoned():
            whole = operation.op == "abandon" and "n" not in operation.said
            return whole and operation.meta == event.metadata
        case _:
            return False


def chain_id_of(start: Operation) -> UUID:
    """The id an imported chain gets: the same at every import."""
    return uuid5(TRACE_NAMESPACE, f"{start.source or ''}/{start.chain}")


def start_chain(start: Operation) -> ThoughtChain:
    """The chain that a ``start`` starts.  Raises TraceError, LimitExceededError."""
    if start.op != "start":
        raise TraceError(
            start.line, f"chain {shortened(start.chain)} begins with {shortened(start.op)}"
        )
    metadata = {"chain": start.chain} | ({"meta": start.said["meta"]} if start.meta else {})
    return ThoughtChain.start(
        chain_id_of(start),
        title=start.text,
        source=start.source,
        metadata=start.dumps(metadata).decode(),
    )


def apply_operation(chain: ThoughtChain, operation: Operation) -> None:
    """Ask of the chain what the operation says.  Raises TraceError, and what commands raise."""
    match operation.op:
        case "append" | "branch" | "revise":
            thought_id = thought_id_of(chain.id, operation)
            chain.add_thought(thought_id, _thought(chain, operation))
        case "abandon" if "n" in operation.said:
            _abandon_thought(chain, operation)
        case "abandon":
            chain.abandon(metadata=operation.meta)
        case "complete":
            chain.complete(metadata=operation.meta)
        case _:
            raise TraceError(
                operation.line, f"chain {shortened(operation.chain)} starts a second time"
            )


def thought_id_of(chain_id: UUID, operation: Operation) -> UUID:
    """The id of the imported thought an operation is about."""
    return uuid5(chain_id, str(operation.number))


def _is_large(value: object) -> bool:
    return isinstance(value, int) and abs(value) > INTEGER_MAX


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LINE_BYTES_MAX + 1):
        yield line


def _operation(number: int, line: bytes) -> Operation:
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise TraceError(number, f"not JSON ({error.msg})") from error
    if not isinstance(said, dict):
        raise TraceError(number, "not a JSON object")
    fields = cast("dict[str, Any]", said)
    chain, op = fields.get("chain"), fields.get("op")
    if not isinstance(chain, str) or not isinstance(op, str):
        raise TraceError(number, 'an operation has "chain" and "op", both strings')
    if op not in OPS:
        raise TraceError(number, f"unknown op {shortened(op)}; known are {', '.join(sorted(OPS))}")
    return Operation(number, chain, op, fields)


def _abandon_thought(chain: ThoughtChain, operation: Operation) -> None:
    thought_id = thought_id_of(chain.id, operation)
    # The chain would decide nothing, and an import tells by the version how far it came.
    if thought_id in chain.steps.given_up:
        raise TraceError(operation.line, f"thought {operation.number} is given up a second time")
    chain.abandon_thought(thought_id)


def _thought(chain: ThoughtChain, operation: Operation) -> Thought:
    branch_id, parent_id = _place(chain, operation)
    opens = branch_id is not None and branch_id not in chain.steps.heads
    return Thought(
        text=operation.text,
        thought_number=operation.number,
        total_thoughts=operation.number,
        next_thought_needed=True,
        branch_id=branch_id,
        branch_from_thought_number=(operation.get("parent", int) or None) if opens else None,
        is_revision=operation.op == "revise",
        revises_thought_number=_revised(chain, operation),
        parent_thought_id=parent_id,
        claimed_at=_claimed_at(operation),
        source=operation.source,
        metadata=operation.meta,
    )


def _revised(chain: ThoughtChain, operation: Operation) -> int | None:
    revised = operation.get("revises", int)
    if revised is not None and uuid5(chain.id, str(revised)) not in chain.steps.sequences:
        raise TraceError(operation.line, f"thought {revised} is not there to be revised")
    return revised


def _place(chain: ThoughtChain, operation: Operation) -> tuple[str | None, UUID | None]:
    """On which branch a thought goes, and under which thought when that is said."""
    parent = operation.get("parent", int)
    own_branch = f"n{operation.number}"
    if operation.op == "branch":
        return own_branch, _parent_id(chain, operation, parent or 0)
    if parent is None:
        return None, None
    parent_id = _parent_id(chain, operation, parent)
    if parent_id is None:
        return (own_branch if None in chain.steps.heads else None), None
    branch_id = chain.steps.of(parent_id).branch_id
    return (branch_id if chain.steps.heads[branch_id] == parent_id else own_branch), parent_id


def _parent_id(chain: ThoughtChain, operation: Operation, parent: int) -> UUID | None:
    if parent == 0:
        return None
    parent_id = uuid5(chain.id, str(parent))
    if parent_id not in chain.steps.sequences:
        raise TraceError(operation.line, f"thought {parent} is not there to go under")
    return parent_id


def _claimed_at(operation: Operation) -> datetime | None:
    at = operation.get("at", str)
    if at is None:
        return None
    try:
        moment = datetime.fromisoformat(at)
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise TraceError(
            operation.line, f'"at" is not a moment in ISO 8601: {shortened(at)}'
        ) from error
