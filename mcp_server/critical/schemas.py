"""What a client is told about ``criticalthinking``."""

from typing import Any

from mcp_server.critical.inputs import REQUIRED
from mcp_server.schemas import (
    ANSWERED,
    BRANCH_ID,
    NEEDS_MORE_THOUGHTS,
    REQUEST_ID,
    THOUGHT_NUMBER,
    TOTAL_THOUGHTS,
)

DESCRIPTION = """\
Think aloud, one recorded step at a time, and question each step before the next. Use it when \
being wrong is expensive; for plain step-by-step work use a plain thinking tool.

Every call needs thought, thoughtNumber, totalThoughts, nextThoughtNeeded, confidence, \
assumptions, critique and counterArgument, and nextStepRationale while nextThoughtNeeded is true. \
Types are taken strictly and unknown fields are refused.

- confidence: 0.5 is a coin flip; more than 0.8 needs evidence you can name.
- assumptions: what must hold for the thought to hold; [] if there is nothing.
- critique: the weakest point of this thought. "Looks good" is not one.
- counterArgument: the strongest case for the opposite.
- nextStepRationale: why this next step and no other.
- Wrong before? Send a new thought with isRevision and revisesThought. Two ways? Give each a \
branchId with branchFromThought, both with every thought of the branch.
- episodeId keeps lines of reasoning apart; nothing of one counts in another.

The answer has the mean confidence of the trunk (sessionConfidence) and of each branch; its text \
tells the thought. Falling confidence is a finding, not a failure. All is kept for ever."""

# That unknown fields are refused is said in words: not every client takes additionalProperties.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "thought": {
            "type": "string",
            "description": "The current step, in the first person. Not empty; at most 1 MiB",
        },
        "thoughtNumber": THOUGHT_NUMBER,
        "totalThoughts": TOTAL_THOUGHTS,
        "nextThoughtNeeded": {
            "type": "boolean",
            "description": "Whether another thought follows; false concludes the episode",
        },
        "confidence": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "How sure you are of this thought, kept to six decimals",
        },
        "assumptions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What this thought takes for granted; [] if nothing",
        },
        "critique": {
            "type": "string",
            "description": "The weakest point of this thought. Not empty; at most 64 KiB",
        },
        "counterArgument": {
            "type": "string",
            "description": "The strongest case against it. Not empty; at most 64 KiB",
        },
        "nextStepRationale": {
            "type": "string",
            "description": "Why the next step is the right one; required while nextThoughtNeeded",
        },
        "isRevision": {
            "type": "boolean",
            "description": "Whether this thought replaces the one named by revisesThought",
        },
        "revisesThought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought it replaces; at most the number of thoughts "
            "in the episode",
        },
        "branchFromThought": {
            "type": "integer",
            "minimum": 1,
            "description": "Number of the thought the branch leaves from; needs branchId, and is "
            "at most the number of thoughts in the episode",
        },
        "branchId": BRANCH_ID,
        "needsMoreThoughts": NEEDS_MORE_THOUGHTS,
        "episodeId": {
            "type": "string",
            "description": "Name of the line of reasoning on this connection; "
            "left out, it is default",
        },
        "requestId": REQUEST_ID,
    },
    "required": list(REQUIRED),
}

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        **ANSWERED,
        "branches": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Branch ids of the episode, sorted",
        },
        "thoughtHistoryLength": {
            "type": "integer",
            "description": "How many thoughts the episode has, on the trunk and on branches",
        },
        "sessionConfidence": {
            "type": "number",
            "description": "Mean confidence of the thoughts on the episode's trunk",
        },
        "branchConfidences": {
            "type": "object",
            "description": "Mean confidence of each branch; left out when there is none",
        },
        "episodeId": {"type": "string", "description": "Name of the episode"},
    },
    "required": [
        "thoughtNumber",
        "totalThoughts",
        "nextThoughtNeeded",
        "branches",
        "thoughtHistoryLength",
        "sessionConfidence",
        "episodeId",
    ],
}
