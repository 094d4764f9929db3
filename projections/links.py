"""The table ``thought_links``, of the read model ``entities``: what hangs together how."""

from collections.abc import Iterator
from enum import StrEnum
from uuid import UUID

from ledger.events import ChainStarted, FeedbackGiven, LedgerEvent, ThoughtBranched, ThoughtRevised
from ledger.serialization import Recorded
from projections.projection import Change, Copy
from projections.text import shown

# The signal of feedback by which a user says that a thought is wrong.
CORRECTED = "user_corrected"

COLUMNS = {
    "position": "int8",
    "kind": "text",
    "tenant": "text",
    "chain_id": "uuid",
    "to_chain_id": "uuid",
    "from_thought_id": "uuid",
    "to_thought_id": "uuid",
}


class LinkKind(StrEnum):
    """What the one has to do with the other."""

    SUPERSEDES = "supersedes"
    DERIVED_FROM = "derived_from"
    CONTRADICTS = "contradicts"


class LinkRows:
    """The links that the events of a batch say, each in a row of its own."""

    def __init__(self) -> None:
        self._rows: list[tuple[object, ...]] = []

    def add(self, recorded: Recorded) -> None:
        event = recorded.event
        tenant = shown(recorded.header.tenant)
        for kind, from_id, to_id in links_between_thoughts(event):
            chain_id = event.originator_id
            self._rows.append((recorded.position, kind, tenant, chain_id, chain_id, from_id, to_id))
        if isinstance(event, ChainStarted) and event.parent_chain_id is not None:
            chains = (event.originator_id, event.parent_chain_id)
            self._rows.append(
                (recorded.position, LinkKind.DERIVED_FROM, tenant, *chains, None, None)
            )

    def changes(self) -> Iterator[Change]:
        if self._rows:
            yield Copy("thought_links", COLUMNS, self._rows)


def links_between_thoughts(event: LedgerEvent) -> Iterator[tuple[LinkKind, UUID | None, UUID]]:
    """The links within its chain that an event says: their kind, and from which thought to which.

    A thought that refers to none that is there says no link.
    """
    match event:
        case ThoughtRevised(thought_id=thought_id, revises_thought_id=UUID() as revised_id):
            yield LinkKind.SUPERSEDES, thought_id, revised_id
        case ThoughtBranched(thought_id=thought_id):
            if event.branch_from_thought_id is not None:
                yield LinkKind.DERIVED_FROM, thought_id, event.branch_from_thought_id
            if event.is_revision and event.revises_thought_id is not None:
                yield LinkKind.SUPERSEDES, thought_id, event.revises_thought_id
        case FeedbackGiven(signal=signal, thought_id=UUID() as corrected_id):
            if signal == CORRECTED:
                yield LinkKind.CONTRADICTS, None, corrected_id
        case _:
            pass  # it says nothing of how thoughts hang together
