"""The tiers as text: extracts of what was thought, in so many tokens and no more.

No model writes here.  A token is counted as three bytes of UTF-8, where English has four to one; a
UUID, which is cut into ones and twos, as UUID_TOKENS.  The budgets are kept by this count.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from ledger.display import printable

BYTES_A_TOKEN = 3
# A tokenizer of words (that of all-MiniLM-L6-v2) makes 27 of one on the average, 33 at most.
UUID_TOKENS = 30
UUID_FORM = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
IDENTITY_TOKENS_MAX = 100
SUMMARY_TOKENS_MAX = 2_000
# Of one line of a summary, and of a title in the identity.
EXTRACT_CHARACTERS_MAX = 160
TITLE_CHARACTERS_MAX = 60

# Of a kind of lines, besides them: its heading, the word on what is left out, an empty line.
KIND_TOKENS = 30

PATTERNS = "## Reasoning Patterns"
MEMORIES = "## Memories"


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Whose ledger this is: how much there is, and what the latest trusted work is about."""

    chains: int
    thoughts: int
    sessions: int
    agents: Sequence[str]
    titles: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A chain that proved good, or a dead end that was read again and again.

    ``title`` is what it was about, ``approach`` the thought it came to, or the one that was given
    up.  ``trust`` goes from 0 to 1, None when nothing of it counts.  ``positions`` are those of the
    events the line is made of, in the log.
    """

    kind: str
    chain_id: UUID
    session_id: str | None
    title: str
    approach: str
    trust: float | None
    recalls: int
    positions: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrustedMemory:
    """A thought that is trusted at least as far as what is promoted."""

    chain_id: UUID
    thought_id: UUID
    text: str
    trust: float
    position: int


SOLVED = "solved"
AVOIDED = "avoided"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Best(Generic[T]):
    """The best of a kind, in their order, and how many there are of it in all."""

    rows: Sequence[T] = ()
    total: int = 0


@dataclass(slots=True)
class _Kind:
    """Lines of one kind, of which the first ``shown`` are."""

    heading: str
    name: str
    lines: Sequence[str]
    total: int
    shown: int = 0

    def text(self) -> list[str]:
        """The lines that are shown, and how many are not."""
        shown = [*self.lines[: self.shown]]
        if more := self.total - self.shown:
            shown.append(f"- and {more:,} more {self.name}")
        return shown


def tokens_of(text: str) -> int:
    """How many tokens a text is counted as."""
    rest, uuids = UUID_FORM.subn("", text)
    return uuids * UUID_TOKENS + -(-len(rest.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def identity_text(identity: Identity) -> str:
    """L0: one line of at most IDENTITY_TOKENS_MAX."""
    counts = (
        (identity.chains, "chain of reasoning", "chains of reasoning"),
        (identity.thoughts, "thought", "thoughts"),
        (identity.sessions, "session", "sessions"),
    )
    counted = ", ".join(f"{count:,} {one if count == 1 else more}" for count, one, more in counts)
    said = f"Thought ledger: {counted}"
    for name, values in (("by", identity.agents), ("lately:", identity.titles)):
        for number, value in enumerate(values):
            joined = f" {name} " if number == 0 else ", "
            more = said + joined + extract(value, TITLE_CHARACTERS_MAX)
            if tokens_of(more + ".") > IDENTITY_TOKENS_MAX:
                break
            said = more
    return said + "."


def summary_text(
    solved: Best[Pattern], avoided: Best[Pattern], memories: Best[TrustedMemory]
) -> str:
    """L1: whole lines, at most SUMMARY_TOKENS_MAX; of each kind some, and how many are left out.

    Empty when nothing is promoted.
    """
    kinds = [
        _Kind(PATTERNS, "solved", [*map(pattern_line, solved.rows)], solved.total),
        _Kind(PATTERNS, "dead ends", [*map(pattern_line, avoided.rows)], avoided.total),
        _Kind(MEMORIES, "memories", [*map(memory_line, memories.rows)], memories.total),
    ]
    _choose(kinds)
    sections = [
        "\n".join([heading, *lines])
        for heading in (PATTERNS, MEMORIES)
        if (lines := [line for kind in kinds if kind.heading == heading for line in kind.text()])
    ]
    return "\n\n".join(sections)


def pattern_line(pattern: Pattern) -> str:
    """One line of the section on patterns; its chain and positions are its provenance."""
    where = f"session {extract(pattern.session_id, TITLE_CHARACTERS_MAX)}, " * bool(
        pattern.session_id
    )
    events = " ".join(map(str, pattern.positions))
    source = f"[chain {pattern.chain_id}, events {events}]"
    title = extract(pattern.title, EXTRACT_CHARACTERS_MAX)
    approach = extract(pattern.approach, EXTRACT_CHARACTERS_MAX)
    if pattern.kind == SOLVED:
        sure = f"confidence {pattern.trust or 0:.2f}"
        return f'- Solved "{title}" via "{approach}" approach ({where}{sure}) {source}'
    about = f' of "{title}"' if title and title != approach else ""
    recalled = f"recalled {pattern.recalls} times"
    return f'- Avoided dead end "{approach}"{about} ({where}{recalled}) {source}'


def memory_line(memory: TrustedMemory) -> str:
    """One line of the section on memories."""
    said = extract(memory.text, EXTRACT_CHARACTERS_MAX)
    source = f"[chain {memory.chain_id}, event {memory.position}]"
    return f"- {said} (trust {memory.trust:.2f}) {source}"


def extract(text: str | None, characters_max: int) -> str:
    """The beginning of a text on one line, cut between words where it can be.

    A thought may be anybody's: what would drive a terminal, or turn the text around, is replaced.
    """
    line = printable(" ".join((text or "").split()))
    if len(line) <= characters_max:
        return line
    cut = line[: characters_max - 1]
    words, blank, _ = cut.rpartition(" ")
    return (words if blank and len(words) > characters_max // 2 else cut) + "…"


def _choose(kinds: Sequence[_Kind]) -> None:
    """Show as many lines as fit: the kinds take turns, each until its next line does not.

    The first line of every kind fits: extracts are short.
    """
    left = SUMMARY_TOKENS_MAX - KIND_TOKENS * len(kinds)
    waiting = deque(kinds)
    while waiting:
        kind = waiting.popleft()
        if kind.shown == len(kind.lines):
            continue
        left_then = left - tokens_of(kind.lines[kind.shown] + "\n")
        if left_then >= 0:
            left = left_then
            kind.shown += 1
            waiting.append(kind)
