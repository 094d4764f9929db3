"""What search needs to know of whoever embeds questions."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """A question's vector, in pgvector's text form, and the number of its space."""

    space: int
    dimensions: int
    vector: str


@dataclass(frozen=True, slots=True)
class NotEmbedded:
    """There is no vector of it; ``reason`` is for people."""

    reason: str


class Questions(Protocol):
    """Embeds questions, or says why not, within a second; never raises for want of a model."""

    async def embed(self, text: str) -> QuestionVector | NotEmbedded: ...


class NoModel:
    """Where nothing embeds."""

    async def embed(self, text: str) -> NotEmbedded:  # noqa: ARG002
        return NotEmbedded("nothing embeds here")
