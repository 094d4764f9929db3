"""What a prompt is to the server, and how its arguments are read."""

from collections.abc import Mapping
from typing import ClassVar, Protocol
from uuid import UUID

from mcp_types import (
    EmbeddedResource,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

from ledger.limits import ID_CHARACTERS_MAX, recordable
from mcp_server.inputs import InputError
from mcp_server.source import LedgerSource

PROBLEM_CHARACTERS_MAX = 2**16

CHAIN_ID = PromptArgument(
    name="chain_id", title="Chain", description="The chain's UUID", required=True
)
BRANCH_ID = PromptArgument(
    name="branch_id",
    title="Branch",
    description="One of its branches; without it the whole chain",
    required=False,
)


class LedgerPrompt(Protocol):
    """One prompt."""

    definition: ClassVar[Prompt]

    async def messages(
        self, source: LedgerSource, given: Mapping[str, str], tenant: str
    ) -> list[PromptMessage]:
        """What the agent is told.  Raises InputError and LedgerError."""
        ...


def chain_id_of(given: Mapping[str, str]) -> UUID:
    """The chain that is meant.  Raises InputError."""
    text = given.get("chain_id", "").strip()
    if not text:
        raise InputError(("chain_id", "is missing; `thought-ledger chains --all` shows the chains"))
    try:
        return UUID(text)
    except ValueError:
        raise InputError(("chain_id", "must be the UUID of a chain")) from None


def name_of(given: Mapping[str, str], field: str) -> str | None:
    """An optional name.  Raises InputError when it is too long."""
    name = recordable(given.get(field, ""))
    if len(name) > ID_CHARACTERS_MAX:
        raise InputError((field, f"has more than {ID_CHARACTERS_MAX} characters"))
    return name or None


def problem_of(given: Mapping[str, str]) -> str:
    """What is to be thought through.  Raises InputError."""
    problem = recordable(given.get("problem", "")).strip()
    if not problem:
        raise InputError(("problem", "is missing; say what is to be thought through"))
    if len(problem) > PROBLEM_CHARACTERS_MAX:
        raise InputError(("problem", f"has more than {PROBLEM_CHARACTERS_MAX} characters"))
    return problem


def said(text: str) -> PromptMessage:
    """A message of the person."""
    return PromptMessage(role="user", content=TextContent(type="text", text=text))


def shown(uri: str, mime_type: str, text: str) -> PromptMessage:
    """A resource, put before the agent by the person."""
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return PromptMessage(role="user", content=EmbeddedResource(type="resource", resource=contents))
