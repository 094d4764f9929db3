"""The tool ``reasoning_patterns``: what has proved good, and what was tried in vain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.application import Ledger
from ledger.header import Context
from mcp_server.chains.pages import present
from mcp_server.inputs import Arguments, to_identifier, to_integer
from mcp_server.memory.schemas import PATTERNS
from mcp_server.thinking import Thinking
from mcp_server.tools.tool import LedgerTool
from projections.tiers.text import Pattern
from projections.tiers.tiers import LINES_MAX, Tiers

PATTERNS_DEFAULT = 20
NOTHING = (
    "Nothing is promoted yet: that takes chains confirmed until they are trusted 0.8 or more, or "
    "dead ends read at least twice."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternsInput:
    """One call of ``reasoning_patterns``."""

    session_id: str | None
    agent: str | None
    limit: int
    request_id: None = None


class ReasoningPatterns(LedgerTool):
    """Asks the read models, as of what this connection has written."""

    definition = PATTERNS

    def __init__(self, thinking: Thinking, tiers: Tiers) -> None:
        self._thinking = thinking
        self._tiers = tiers

    def parse(self, arguments: dict[str, Any]) -> PatternsInput:
        return parse_patterns(arguments)

    async def run(self, ledger: Ledger, context: Context, said: PatternsInput) -> dict[str, Any]:  # noqa: ARG002 - it asks no log
        summary = await self._tiers.summary(
            context.tenant,
            session_id=said.session_id,
            agent=said.agent,
            limit=said.limit,
            position=self._thinking.position,
        )
        return present(
            count=len(summary.patterns),
            total=summary.total,
            text=summary.text or NOTHING,
            patterns=[_row(pattern) for pattern in summary.patterns],
            position=summary.position,
            stale=summary.stale or None,
        )


def parse_patterns(arguments: Mapping[str, object]) -> PatternsInput:
    """Read the arguments of ``reasoning_patterns``.  Raises InputError."""
    given = Arguments(arguments)
    said = PatternsInput(
        session_id=given.allow("session_id", to_identifier),
        agent=given.allow("agent", to_identifier),
        limit=min(given.allow("limit", to_integer) or PATTERNS_DEFAULT, LINES_MAX),
    )
    given.refuse_problems()
    return said


def _row(pattern: Pattern) -> dict[str, Any]:
    return present(
        kind=pattern.kind,
        chain_id=str(pattern.chain_id),
        session_id=pattern.session_id,
        title=pattern.title,
        approach=pattern.approach,
        trust=pattern.trust,
        recalls=pattern.recalls or None,
        positions=list(pattern.positions),
    )
