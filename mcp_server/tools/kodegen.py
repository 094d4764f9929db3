"""The toolset ``kodegen``: the drop-in tool in snake_case, with a session in every call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool, ToolAnnotations

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.inputs import (
    ALIASES,
    Arguments,
    InputError,
    ThoughtInput,
    parse_sequentialthinking,
    to_identifier,
)
from mcp_server.kodegen.schemas import DESCRIPTION, OUTPUT_SCHEMA, SCHEMA
from mcp_server.kodegen.sessions import Sessions
from mcp_server.tools.tool import LedgerTool

# The session says where a thought goes, and the original knows no request ids.
FOREIGN = frozenset({"chain_id", "chainId", "requestId", "request_id"})

SEQUENTIAL_THINKING = Tool(
    name="sequential_thinking",
    title="Sequential Thinking (sessions)",
    description=DESCRIPTION,
    input_schema=SCHEMA,
    output_schema=OUTPUT_SCHEMA,
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
)


@dataclass(frozen=True, slots=True)
class SessionInput:
    """One call, as it is to be recorded, and the session it names."""

    said: ThoughtInput
    session_id: str | None

    @property
    def request_id(self) -> str | None:
        return self.said.request_id


def parse_sequential_thinking(arguments: Mapping[str, object]) -> SessionInput:
    """Read a call's arguments.

    Raises InputError naming everything that is wrong with them.
    """
    problems: list[tuple[str, str]] = []
    given = {name: value for name, value in arguments.items() if name not in FOREIGN}
    session = Arguments({"session_id": given.get("session_id") or given.get("sessionId")})
    session_id = session.allow("session_id", to_identifier)
    try:
        session.refuse_problems()
    except InputError as error:
        problems.extend(error.problems)
    try:
        said = parse_sequentialthinking(given)
    except InputError as error:
        named = [(ALIASES.get(field, field), problem) for field, problem in error.problems]
        raise InputError(*named, *problems) from None
    if problems:
        raise InputError(*problems)
    return SessionInput(said, session_id)


class SequentialThinkingSessions(LedgerTool):
    """Records one thought of the session it names."""

    definition = SEQUENTIAL_THINKING

    def __init__(
        self, sessions: Sessions, on_thought: Callable[[ThoughtInput], None] | None
    ) -> None:
        """*on_thought* is told of each thought that was recorded."""
        self._sessions = sessions
        self._on_thought = on_thought

    def parse(self, arguments: dict[str, Any]) -> SessionInput:
        return parse_sequential_thinking(arguments)

    async def run(self, ledger: Ledger, context: Context, said: SessionInput) -> dict[str, Any]:
        session_id, answer = await self._sessions.think(ledger, context, said.session_id, said.said)
        if self._on_thought is not None:
            self._on_thought(said.said)
        return _answer(session_id, answer, said.said)


def _answer(session_id: str, answer: Mapping[str, Any], said: ThoughtInput) -> dict[str, Any]:
    """The original's fields, but for the thought itself, which the client has."""
    spoken = {
        "is_revision": said.is_revision or None,
        "revises_thought": said.revises_thought,
        "branch_from_thought": said.branch_from_thought,
        "branch_id": said.branch_id,
    }
    return {
        "session_id": session_id,
        "thought_number": answer["thoughtNumber"],
        "total_thoughts": answer["totalThoughts"],
        "next_thought_needed": answer["nextThoughtNeeded"],
        **{name: value for name, value in spoken.items() if value is not None},
        "branches": answer["branches"],
        "thought_history_length": answer["thoughtHistoryLength"],
        "chain_id": answer["chain_id"],
    }
