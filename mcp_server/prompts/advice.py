"""Which tool to use next, in words, of the tools a connection is really offered."""

import json
from collections.abc import Collection

from ledger.aggregate import ThoughtChain
from ledger.chain_state import Status

# The first of them that is offered records a thought.
THINKING = ("add_thought", "sequentialthinking", "criticalthinking", "sequential_thinking")
# Those of them that can go on with a chain that is named.
NAMING = frozenset({"add_thought", "sequentialthinking"})


class Advice:
    """Words about the tools of one connection."""

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = frozenset(offered)

    def how_to_think(self, session_id: str | None = None) -> list[str]:
        """How to think something through, one step a line."""
        tool = next((name for name in THINKING if name in self._offered), None)
        if tool is None:
            return ["No tool that is offered here records thoughts; think in your answer instead."]
        record = (
            f"Record each step with {tool}, one thought a call: number them from 1, estimate how "
            "many there will be, and correct the estimate as you go."
        )
        if session_id is not None and tool == "add_thought":
            record += f" Pass session_id {_exact(session_id)} with each."
        steps = [record]
        if tool in NAMING:
            steps.append("The first answer has a chain_id; pass it with every further thought.")
        steps += [
            self._or("get_related_chains", "First look how a like problem was solved before: {}."),
            self._or(
                "revise_thought", "When a thought proves wrong, revise it: {}.", "mark the revision"
            ),
            self._or(
                "branch_thought", "Try an alternative on a branch of its own: {}.", "name a branch"
            ),
            self._or("close_branch", "When a branch is decided, say what came of it: {}."),
            self._or(
                "abandon_thought_chain",
                "Give up a dead end openly: {} with the thought it began with; what hangs "
                "under it goes with it.",
            ),
            "Doubt the result before you conclude: what would show that it is wrong?",
            "End with a thought that states the conclusion and needs no further thought.",
        ]
        return [step for step in steps if step]

    def how_to_recall(self) -> str:
        """How to have more of what the ledger remembers, and how to add to it; "" without tools."""
        sentences = [
            self._or("search_memories", "What is not in these lines is found with {}."),
            self._or("reasoning_patterns", "Patterns of one session or agent: {}."),
            self._or(
                "record_feedback",
                "Once you know whether a result was right, say so with {}: by that it comes to "
                "stand here, or sinks.",
            ),
        ]
        return " ".join(sentence for sentence in sentences if sentence)

    def how_to_go_on(self, chain: ThoughtChain, branch_id: str | None) -> str:
        """What to do next with a chain, in its status."""
        tool = next((name for name in THINKING if name in self._offered & NAMING), None)
        if tool is None:
            return (
                "No tool that is offered here goes on with a chain by its id; "
                "`thought-ledger serve --toolsets compat,chains` offers some."
            )
        going_on = f"go on with {tool}: {_next_thought(chain, branch_id)}"
        if (dead_end := _dead_end(chain, branch_id)) is not None:
            going_on = dead_end
        if branch_id is not None and branch_id in chain.closed:
            return (
                f"The branch is closed ({chain.closed[branch_id]}) and takes nothing more: go on "
                "with the trunk, or open a branch under another name."
            )
        if chain.status is Status.ACTIVE:
            return f"The chain takes thoughts: {going_on}."
        if chain.status is Status.COMPLETED and tool == "sequentialthinking":
            return f"The chain is completed, and the next thought reopens it: {going_on}."
        resume = (
            "resume_thought_chain"
            if "resume_thought_chain" in self._offered
            else f"`thought-ledger resume {chain.id}`"
        )
        return f"The chain is {chain.status}: resume it with {resume} first, then {going_on}."

    def _or(self, tool: str, step: str, otherwise: str | None = None) -> str:
        """The step with the tool that is offered for it, else with other words, else nothing."""
        if tool in self._offered:
            return step.format(tool)
        return step.format(otherwise) if otherwise else ""


def _dead_end(chain: ThoughtChain, branch_id: str | None) -> str | None:
    """What to do when the last thought was given up; None when it was not."""
    head = chain.steps.heads.get(branch_id)
    if head is None or not chain.steps.is_abandoned(head):
        return None
    live = chain.steps.last_live()
    if live is None:
        return "start another chain with thought 1, for all its thoughts were given up"
    return (
        f"revise thought {live.thought_number}, the last one that was not given up, or branch from "
        "it under a new branch id"
    )


def _next_thought(chain: ThoughtChain, branch_id: str | None) -> str:
    steps = chain.steps
    head = steps.heads.get(branch_id)
    number = 1 if head is None else steps.of(head).thought_number + 1
    words = f'chain_id "{chain.id}", thoughtNumber {number}'
    if branch_id is None:
        return words
    # Without a number that is there the thought would be on the trunk.
    origin = _origin(chain, branch_id) or number - 1
    return f"{words}, branchId {_exact(branch_id)}, branchFromThought {origin}"


def _exact(name: str) -> str:
    """A name as it is to be sent, character by character."""
    return json.dumps(name, ensure_ascii=False)


def _origin(chain: ThoughtChain, branch_id: str) -> int | None:
    """The number of the thought a branch starts from."""
    steps = chain.steps
    first = next((step for step in steps.recorded if step.branch_id == branch_id), None)
    parent_id = None if first is None else first.parent_thought_id
    if parent_id is None or parent_id not in steps.sequences:
        return None
    return steps.of(parent_id).thought_number
