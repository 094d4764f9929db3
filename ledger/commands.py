"""Commands and their receipts: who asks what, and the proof that it was recorded."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID, uuid5

import orjson

from ledger.aggregate import ThoughtChain
from ledger.appender import Request, Save, Verdict
from ledger.chain_state import Status
from ledger.errors import RequestMismatchError
from ledger.events import ChainEvent
from ledger.header import Context
from ledger.limits import check_id
from ledger.serialization import encode
from ledger.thought import Thought

TITLE_CHARACTERS_MAX = 120
REQUEST_NAMESPACE = UUID("6f2a0a64-6a54-5c0e-9d0e-0f6d0d5a7c11")

# What a command answers: plain JSON, kept with its request id.
Answer: TypeAlias = Mapping[str, Any]

# Runs commands on a chain and says what to answer; may run again when another writer was first.
Decide: TypeAlias = Callable[[ThoughtChain], Answer]


@dataclass(frozen=True)
class Receipt:
    """Proof of recording: where in the log.

    ``position`` is that of the command's last event, None when there was nothing to record.
    ``answer`` is what the command answered; when its request id was sent before, the first answer.
    """

    chain_id: UUID
    position: int | None
    answer: dict[str, Any]
    repeated: bool = False


def title_of(text: str) -> str:
    """A title for a chain that was given none: the first line of its first thought, cut short."""
    first_line = text.strip().partition("\n")[0].strip()
    if len(first_line) <= TITLE_CHARACTERS_MAX:
        return first_line
    return first_line[: TITLE_CHARACTERS_MAX - 1].rstrip() + "…"


def moved(previous: Status, chain: ThoughtChain) -> dict[str, Any]:
    """What a change of status answers."""
    return {"previous_status": str(previous), "new_status": str(chain.status)}


class Command(NamedTuple):
    """Who asks, and, when there is a request id, its key and the digest of what is asked."""

    context: Context
    request_key: UUID | None
    digest: bytes


def command_of(context: Context, name: str, chain_id: UUID | None, said: object) -> Command:
    """What *name* asks of a chain, with *said* for a request id to stand for.

    Raises LimitExceededError for a request id that is too long.
    """
    if context.request_id is None:
        return Command(context, None, b"")
    check_id("the request id", context.request_id)
    names = orjson.dumps([context.tenant, context.actor, context.request_id]).decode()
    spoken = asdict(said) if isinstance(said, Thought) else said
    said_bytes = orjson.dumps([name, chain_id, spoken], option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(said_bytes).digest()
    return Command(context, uuid5(REQUEST_NAMESPACE, names), digest)


def save_of(
    events: list[ChainEvent], answer: Answer, command: Command, session_id: str | None
) -> Save:
    """The events a command decided, with what a repetition of its request id is to be answered."""
    request = None
    if command.request_key is not None:
        kept = {"chain_id": str(events[0].originator_id), "answer": dict(answer)}
        request = Request(command.request_key, command.digest, orjson.dumps(kept))
    return Save(
        chain_id=events[0].originator_id,
        first_version=events[0].originator_version,
        topics=[event.TOPIC for event in events],
        states=[encode(event, command.context) for event in events],
        recorded_at=[event.timestamp for event in events],
        actor=command.context.actor,
        session_id=session_id,
        request=request,
    )


def repeated(verdict: Verdict, command: Command) -> Receipt:
    """The first receipt of a request id that was sent before.  Raises RequestMismatchError."""
    if verdict.command_digest != command.digest:
        raise RequestMismatchError(command.context.request_id or "")
    kept = orjson.loads(verdict.answer or b"{}")
    return Receipt(UUID(kept["chain_id"]), verdict.last_position, kept["answer"], repeated=True)
