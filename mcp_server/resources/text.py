"""A chain and its thoughts in markdown, bounded."""

from collections.abc import Sequence
from datetime import UTC, datetime

from ledger.confidence import MILLION
from ledger.events import ThoughtBranched, ThoughtRecorded, ThoughtRevised
from ledger.reading import Page, Place, Said

# Of one thought, with all it says; the rest is left out and the text says so.
THOUGHT_CHARACTERS_MAX = 2**14
LINE_CHARACTERS_MAX = 200
NAMES_MAX = 20


def text_of_chain(page: Page, characters_max: int, *, branch_id: str | None = None) -> str:
    """The chain, or one branch of it: what it is, where it stands, and its last thoughts.

    The thoughts have *characters_max* at most, if the last of them has no more.
    """
    thoughts = told_thoughts(page, characters_max)
    count = page.thought_count if branch_id is None else len(page.branches[branch_id])
    blocks = [*head_of_chain(page), *_left_out(page, count - len(thoughts)), *thoughts]
    return "\n\n".join(blocks) + "\n"


def head_of_chain(page: Page) -> list[str]:
    """What the chain is and where it stands, in blocks."""
    started = page.started
    facts = [
        f"Chain: {page.chain_id}",
        f"Status: {page.status}; thoughts: {page.thought_count}; version: {page.version}",
        f"Started: {_moment(page.created_at)}; last moved: {_moment(page.updated_at)}",
    ]
    if authors := _authors(page):
        facts.append(f"Thought by: {_names(authors)}")
    if started.session_id is not None:
        facts.append(f"Session: {on_one_line(started.session_id)}")
    if started.parent_chain_id is not None:
        facts.append(f"Under chain: {started.parent_chain_id}")
    if page.branches:
        branches = [_branch(page, branch_id) for branch_id in page.branches]
        facts.append(f"Branches: {_names(branches)}")
    return [f"# {on_one_line(started.title)}", "\n".join(f"- {fact}" for fact in facts)]


def told_thoughts(page: Page, characters_max: int) -> list[str]:
    """The last thoughts of a page in order, as many as *characters_max* holds, at least one."""
    told: list[str] = []
    characters = 0
    for place, said in reversed(page.thoughts):
        if said is None:
            continue
        text = _told(place, said)
        characters += len(text)
        if told and characters > characters_max:
            break
        told.append(text)
    return told[::-1]


def heading_of(event: ThoughtRecorded) -> str:
    """Which thought this is, in the numbers of its author."""
    heading = f"Thought {event.thought_number} of {event.total_thoughts}"
    if event.branch_id is not None:
        heading += f" on branch {on_one_line(event.branch_id)}"
    if isinstance(event, ThoughtRevised | ThoughtBranched) and event.revises_thought_number:
        heading += f", revises {event.revises_thought_number}"
    if event.confidence_millionths is not None:
        heading += f" (confidence {event.confidence_millionths / MILLION:.2f})"
    return heading


def body_of(event: ThoughtRecorded) -> list[str]:
    """What a thought says, in blocks."""
    blocks = [event.text]
    if event.assumptions:
        blocks.append("\n".join(["Assumptions:", "", *(f"- {a}" for a in event.assumptions)]))
    for title, text in (
        ("Critique", event.critique),
        ("Counter-argument", event.counter_argument),
        ("Next", event.next_step_rationale),
    ):
        if text:
            blocks.append(f"{title}: {text}")
    return blocks


def on_one_line(text: str) -> str:
    """A name or a title, which may be long and have any character, where a line is wanted."""
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARACTERS_MAX else f"{line[:LINE_CHARACTERS_MAX]}…"


def _told(place: Place, said: Said) -> str:
    event = said.event
    relations = [heading_of(event)]
    if place.revises is not None:
        relations.append(f"a revision of [{place.revises}]")
    if isinstance(event, ThoughtBranched) and place.parent is not None:
        relations.append(f"branches from [{place.parent}]")
    if place.revised_by is not None:
        relations.append(f"revised by [{place.revised_by}]")
    if place.abandoned:
        relations.append("a dead end")
    text = "\n\n".join(
        [
            f"## [{place.sequence}] {'; '.join(relations)}",
            f"*{_author(said)}, {_moment(event.timestamp)}*",
            *body_of(event),
        ]
    )
    if len(text) <= THOUGHT_CHARACTERS_MAX:
        return text
    more = len(text) - THOUGHT_CHARACTERS_MAX
    return (
        f"{text[:THOUGHT_CHARACTERS_MAX]}…\n\n({more} more characters of this thought are not "
        f"shown; get_thought_chain with from {place.sequence} and limit 1 reads it)"
    )


def _left_out(page: Page, count: int) -> list[str]:
    if not count:
        return []
    ways = (
        "the tool get_thought_chain reads them page by page, "
        f"`thought-ledger replay {page.chain_id}` prints them"
    )
    return [f"({count} earlier thoughts are not shown; {ways})"]


def _authors(page: Page) -> list[str]:
    return list(dict.fromkeys(_author(said) for _, said in page.thoughts if said is not None))


def _author(said: Said) -> str:
    actor, client = said.header.actor, said.header.client
    named = actor if client is None or client == actor else f"{actor} with {client}"
    return on_one_line(named)


def _branch(page: Page, branch_id: str) -> str:
    count, outcome = len(page.branches[branch_id]), page.closed.get(branch_id)
    return f"{on_one_line(branch_id)} ({count}{f', closed: {outcome}' if outcome else ''})"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(names[:NAMES_MAX]) + more


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
