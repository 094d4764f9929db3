"""The tiers as text: extracts of what was thought, in so many tokens and no more.

No model writes here.  A token is counted as three bytes of UTF-8: English has four to one, code and
other scripts fewer, so a budget is kept whatever model reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

BYTES_A_TOKEN = 3
IDENTITY_TOKENS_MAX = 100
SUMMARY_TOKENS_MAX = 2_000
# Of one line of a summary, and of a title in the identity.
EXTRACT_CHARACTERS_MAX = 160
TITLE_CHARACTERS_MAX = 60

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


def tokens_of(text: str) -> int:
    """How many tokens a text is counted as."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def identity_text(identity: Identity) -> str:
    """L0: one line of at most IDENTITY_TOKENS_MAX."""
    count = f"{identity.chains:,} chains of reasoning, {identity.thoughts:,} thoughts"
    said = f"Thought ledger: {count}, {identity.sessions:,} sessions"
    for name, values in (("by", identity.agents), ("lately:", identity.titles)):
        for number, value in enumerate(values):
            joined = f" {name} " if number == 0 else ", "
            more = said + joined + extract(value, TITLE_CHARACTERS_MAX)
            if tokens_of(more + ".") > IDENTITY_TOKENS_MAX:
                break
            said = more
    return said + "."


def summary_text(patterns: Sequence[Pattern], memories: Sequence[TrustedMemory]) -> str:
    """L1: whole lines, at most SUMMARY_TOKENS_MAX; patterns first, and what was left out is said.

    Empty when nothing is promoted.
    """
    sections = (
        (PATTERNS, [pattern_line(pattern) for pattern in patterns]),
        (MEMORIES, [memory_line(memory) for memory in memories]),
    )
    return "\n\n".join(_fitting([section for section in sections if section[1]]))


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
    """The beginning of a text on one line, cut between words where it can be."""
    line = " ".join((text or "").split())
    if len(line) <= characters_max:
        return line
    cut = line[: characters_max - 1]
    words, blank, _ = cut.rpartition(" ")
    return (words if blank and len(words) > characters_max // 2 else cut) + "…"


def _fitting(sections: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """The sections with as many of their lines as fit, each with a word on what does not."""
    # For "\n\n" between sections, and the word on what is left out.
    left = SUMMARY_TOKENS_MAX - 20 * len(sections)
    fitting: list[str] = []
    for heading, lines in sections:
        left -= tokens_of(heading + "\n")
        shown: list[str] = []
        for line in lines:
            left -= tokens_of(line + "\n")
            if left < 0:
                break
            shown.append(line)
        if more := len(lines) - len(shown):
            shown.append(f"- and {more} more")
        fitting.append("\n".join([heading, *shown]))
        left = max(left, 0)
    return fitting
