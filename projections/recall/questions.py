"""What search needs to know of whoever embeds questions."""

from typing import Protocol

from projections.embeddings.questions import NotEmbedded, QuestionVector


class Questions(Protocol):
    """Embeds questions, or says why not, within a second; never raises for want of a model."""

    async def embed(self, text: str) -> QuestionVector | NotEmbedded: ...
