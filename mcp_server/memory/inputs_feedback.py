"""The arguments of ``record_feedback``, as lenient as those of the tools for chains."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from ledger.events import Judgement, Scope
from ledger.judging import Feedback
from mcp_server.chains.values import to_choice, to_note
from mcp_server.inputs import Arguments, to_identifier, to_integer, to_uuid

NO_CHAIN = UUID(int=0)
# In plain words, and in those of the policy.
JUDGEMENTS = {
    "confirmed": Judgement.CONFIRMED,
    "corrected": Judgement.CORRECTED,
    **{str(judgement): judgement for judgement in Judgement},
}
WORDS = {judgement: word for word, judgement in reversed(JUDGEMENTS.items())}


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedbackInput:
    """One call of ``record_feedback``."""

    chain_id: UUID
    feedback: Feedback
    request_id: str | None


def parse_feedback(arguments: Mapping[str, object]) -> FeedbackInput:
    """Read the arguments of ``record_feedback``.  Raises InputError."""
    given = Arguments(arguments)
    chain_id = given.require("chain_id", to_uuid, placeholder=NO_CHAIN)
    judgement = given.require("signal", to_judgement, placeholder=Judgement.CONFIRMED)
    thought_id = given.allow("thought_id", to_uuid)
    thought_number = given.allow("thought_number", to_integer)
    feedback = Feedback(
        judgement=judgement,
        reference=thought_number if thought_id is None else thought_id,
        scope=given.allow("scope", to_scope),
        source=given.allow("source", to_identifier),
        note=given.allow("note", to_note),
    )
    request_id = given.allow("requestId", to_identifier)
    given.refuse_problems()
    return FeedbackInput(chain_id=chain_id, feedback=feedback, request_id=request_id)


def to_judgement(field: str, value: object) -> Judgement:
    """Whether an outcome was right."""
    return JUDGEMENTS[to_choice(field, value, choices=[*JUDGEMENTS])]


def to_scope(field: str, value: object) -> Scope | None:
    """What feedback is about; a thought is what it is about anyway."""
    scope = to_choice(field, value, choices=[*map(str, Scope), "thought"])
    return Scope(scope) if scope in [*Scope] else None
