"""A critical thought told in words: the text of the tool's answer."""

from collections.abc import Mapping
from typing import Any

from ledger.confidence import MILLION
from mcp_server.critical.inputs import CriticalInput


def narrate(heard: CriticalInput, answer: Mapping[str, Any]) -> str:
    """The thought as it was said, and how sure its line and the trunk are by now."""
    thought = heard.thought
    confidence = (thought.confidence_millionths or 0) / MILLION
    blocks = [
        f"{_heading(heard, answer)} · confidence {confidence:.2f}",
        thought.text,
        _assumptions(thought.assumptions or ()),
        f"  Critique:\n    {thought.critique}",
        f"  Counter-argument:\n    {thought.counter_argument}",
    ]
    if thought.next_thought_needed:
        blocks.append(f"  Next, I want to: {thought.next_step_rationale}")
    blocks.append(_footer(thought.branch_id, answer))
    return "\n\n".join(blocks)


def _heading(heard: CriticalInput, answer: Mapping[str, Any]) -> str:
    thought = heard.thought
    if heard.marked_revision:
        revised = thought.revises_thought_number
        return f"Revision of thought {revised} (now thought {thought.thought_number})"
    if thought.branch_id is None:
        return f"Thought {thought.thought_number} of {thought.total_thoughts}"
    if answer["opens_branch"]:
        return f"Branch '{thought.branch_id}' from thought {thought.branch_from_thought_number}"
    return f"Branch '{thought.branch_id}' · thought {thought.thought_number}"


def _assumptions(assumptions: tuple[str, ...]) -> str:
    if not assumptions:
        return "  Assumptions: (none claimed)"
    return "\n".join(["  Assumptions:", *(f"    - {assumption}" for assumption in assumptions)])


def _footer(branch_id: str | None, answer: Mapping[str, Any]) -> str:
    session = answer["structured"]["sessionConfidence"]
    across_trunk = f"{session:.2f} across {_thoughts(answer['trunk_count'])}"
    if branch_id is None:
        return f"— session confidence {across_trunk}"
    mean = answer["structured"]["branchConfidences"][branch_id]
    across_branch = f"{mean:.2f} across {_thoughts(answer['branch_count'])}"
    return (
        f"— branch '{branch_id}' confidence {across_branch}\n"
        f"— session confidence (trunk) {across_trunk}"
    )


def _thoughts(count: int) -> str:
    return f"{count} thought{'' if count == 1 else 's'}"
