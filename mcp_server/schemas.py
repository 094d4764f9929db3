"""What a client is told about the tools: plain JSON schemas, and the words for the model.

Only what every client accepts: one type a field, no references, unions, nulls or formats.
"""

from typing import Any

SEQUENTIALTHINKING_DESCRIPTION = """\
Think a problem through one recorded step at a time. Every thought is kept in a durable ledger: it \
can be revised, branched from and resumed later, also by other agents.

Use it when a task needs several dependent steps, when the plan may have to change on the way, \
when alternatives should be weighed, or when the reasoning must survive a lost context. Skip it \
for what one step answers.

How to use it well:
- Send one thought a call, a few sentences: what you now hold true, why, and what follows from it.
- Count thoughtNumber up from 1. totalThoughts is an estimate; change it whenever you know better.
- Wrong turn? Do not rewrite history: send a new thought with isRevision and revisesThought.
- Two ways forward? Give each its own branchId with branchFromThought, and send both again with \
every thought on that branch.
- Before the end, state a hypothesis and check it against your earlier thoughts.
- Set nextThoughtNeeded to false only with the conclusion. thoughtNumber 1 then starts a new chain.
- The answer names the chain_id. Send it with every call that is to go on with that chain later or \
from elsewhere; leave it out to stay with the current one.
- Repeat a call whose answer was lost with the same requestId: it is recorded once."""

# Fields that several tools have, said alike.
THOUGHT_NUMBER = {
    "type": "integer",
    "minimum": 1,
    "description": "Number of this thought; may exceed totalThoughts",
}
TOTAL_THOUGHTS = {
    "type": "integer",
    "minimum": 1,
    "description": "Current estimate of how many thoughts it takes",
}
BRANCH_ID = {
    "type": "string",
    "description": "Name of the branch, 255 characters at most; needs branchFromThought",
}
NEEDS_MORE_THOUGHTS = {
    "type": "boolean",
    "description": "Whether the end turned out not to be the end",
}
REQUEST_ID = {
    "type": "string",
    "description": "An id nobody used before, such as a fresh UUID; the call sent again "
    "with the same id is recorded once",
}
ANSWERED = {
    "thoughtNumber": {"type": "integer", "description": "Number of the recorded thought"},
    "totalThoughts": {
        "type": "integer",
        "description": "The estimate, raised to thoughtNumber when that is larger",
    },
    "nextThoughtNeeded": {"type": "boolean", "description": "As given"},
}

SEQUENTIALTHINKING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {
            "type": "string",
            "description": "The current step: an observation, a deduction, a question, a revision, "
            "a hypothesis or its check. At most 1 MiB.",
        },
        "nextThoughtNeeded": {
            "type": "boolean",
            "description": "Whether another thought follows; false concludes the chain",
        },
        "thoughtNumber": THOUGHT_NUMBER,
        "totalThoughts": TOTAL_THOUGHTS,
        "isRevision": {
            "type": "boolean",
            "description": "Whether this thought replaces an earlier one",
        },
        "revisesThought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought it replaces",
        },
        "branchFromThought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought the branch leaves from; needs branchId",
        },
        "branchId": BRANCH_ID,
        "needsMoreThoughts": NEEDS_MORE_THOUGHTS,
        "chain_id": {
            "type": "string",
            "description": "UUID of the chain this call adds to, from an earlier answer; "
            "by default the current one",
        },
        "requestId": REQUEST_ID,
    },
    "required": ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"],
}

SEQUENTIALTHINKING_OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **ANSWERED,
        "branches": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Branch ids so far, by first appearance",
        },
        "thoughtHistoryLength": {
            "type": "integer",
            "description": "How many thoughts are recorded: on this connection, "
            "or in the chain when chain_id was given",
        },
        "chain_id": {"type": "string", "description": "UUID of the chain it was recorded in"},
    },
    "required": [
        "thoughtNumber",
        "totalThoughts",
        "nextThoughtNeeded",
        "branches",
        "thoughtHistoryLength",
        "chain_id",
    ],
}
