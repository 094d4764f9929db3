"""Scores and what they rest on, as JSON."""

from datetime import UTC
from typing import Any

from projections.trust.explaining import ChainTrust, Evidence, ThoughtTrust
from projections.trust.policy import shown

# Of one thought, the latest: a thought may be judged any number of times.
EVIDENCE_MAX = 20


def json_of_evidence(evidence: Evidence) -> dict[str, Any]:
    """One event that told for or against a thought."""
    return {
        "position": evidence.position,
        "type": evidence.topic,
        "at": evidence.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "by": evidence.actor,
        **({"source": evidence.source} if evidence.source else {}),
        **({"note": evidence.note} if evidence.note else {}),
        "signal": str(evidence.signal),
        "delta": shown(evidence.delta),
        "before": shown(evidence.before),
        "after": shown(evidence.after),
    }


def json_of_reasons(thought: ThoughtTrust) -> dict[str, Any]:
    """Which events made a thought's score: the last EVIDENCE_MAX, the latest last."""
    left_out = len(thought.evidence) - EVIDENCE_MAX
    return {
        "because": [json_of_evidence(each) for each in thought.evidence[-EVIDENCE_MAX:]],
        **({"earlier_events": left_out} if left_out > 0 else {}),
    }


def json_of_chain(trust: ChainTrust) -> dict[str, Any]:
    """The score of a chain as a whole; null when none of its thoughts counts."""
    return {
        "chain_score": None if trust.score is None else shown(trust.score),
        "chain_level": trust.level and str(trust.level),
    }
