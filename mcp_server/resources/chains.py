"""The resources every chain has: the chain as text, and its events."""

from typing import Any
from uuid import UUID

import orjson
from mcp_types import ResourceTemplate

from ledger.application import Ledger
from ledger.audit import facts
from ledger.limits import PAGE_THOUGHTS_MAX
from ledger.reading import read_end
from ledger.serialization import Recorded
from mcp_server.resources.resource import CHAIN_SCHEME, EVENTS_PATH, ChainResource
from mcp_server.resources.text import text_of_chain

# About what a client takes into a model's context at once.
CHAIN_CHARACTERS_MAX = 2**16
EVENTS_MAX = 500
# Events end with the one that takes them over this; one may have over 1 MiB.
EVENTS_BYTES_MAX = 2**18
# Whoever reads events wants to know what happened; an id that makes a retry safe is its sender's.
NOT_TOLD = frozenset({"request_id"})

JSON_LINES = "application/x-ndjson"
MARKDOWN = "text/markdown"


class ChainText(ChainResource):
    """A chain to be read by a person or a model."""

    template = ResourceTemplate(
        name="thought_chain",
        title="Thought chain",
        uri_template=f"{CHAIN_SCHEME}{{chain_id}}",
        description="A chain of thoughts: title, status, who, and its thoughts in order with their "
        f"branches, revisions and dead ends; of a long one the last {PAGE_THOUGHTS_MAX}, or "
        f"{CHAIN_CHARACTERS_MAX // 1024} Ki characters",
        mime_type=MARKDOWN,
    )
    path = ""

    async def read(self, ledger: Ledger, chain_id: UUID) -> str:
        page = await read_end(
            ledger, chain_id, last=PAGE_THOUGHTS_MAX, characters_max=CHAIN_CHARACTERS_MAX
        )
        return text_of_chain(page, CHAIN_CHARACTERS_MAX)


class ChainEvents(ChainResource):
    """A chain's events, to be read by a program."""

    template = ResourceTemplate(
        name="thought_chain_events",
        title="Events of a thought chain",
        uri_template=f"{CHAIN_SCHEME}{{chain_id}}{EVENTS_PATH}",
        description="What happened to a chain, one JSON object a line, oldest first: type, "
        f"version, when, who, and what it says; the first {EVENTS_MAX}, or "
        f"{EVENTS_BYTES_MAX // 1024} KiB. A last line of type note says when there are more",
        mime_type=JSON_LINES,
    )
    path = EVENTS_PATH

    async def read(self, ledger: Ledger, chain_id: UUID) -> str:
        version = (await ledger.chain(chain_id)).version
        versions = list(range(1, min(version, EVENTS_MAX) + 1))
        recorded = await ledger.recorded(chain_id, versions, bytes_max=EVENTS_BYTES_MAX)
        lines = [_told(one) for one in recorded]
        if len(recorded) < version:
            lines.append(_note(chain_id, len(recorded), version))
        return "".join(f"{orjson.dumps(line).decode()}\n" for line in lines)


def _told(recorded: Recorded) -> dict[str, Any]:
    """What ``replay --json`` says, without what the event does not say."""
    said = facts(recorded).items()
    return {name: value for name, value in said if value is not None and name not in NOT_TOLD}


def _note(chain_id: UUID, shown: int, version: int) -> dict[str, Any]:
    text = (
        f"{version - shown} more events, from version {shown + 1}; "
        f"`thought-ledger replay {chain_id} --json` prints them all, and the tool "
        "get_thought_chain reads the thoughts page by page"
    )
    return {"type": "note", "next_version": shown + 1, "last_version": version, "text": text}
