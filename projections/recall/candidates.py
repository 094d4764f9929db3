"""What was found before it is ranked: thoughts and titles, with what speaks for each of them."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(slots=True)
class Candidate:
    """A thought, or the title of a chain, that may be what is looked for.

    ``share`` is what it says of what was asked, from 0 to 1; ``is_exact``: it is that very text.
    ``similarity`` is the cosine of both vectors, None where there are not both.
    """

    position: int
    chain_id: UUID
    thought_id: UUID | None
    share: float = 0.0
    is_exact: bool = False
    similarity: float | None = None
    dead_end: bool = False
    # It is what was asked to the letter, where ``is_exact`` leaves case and white space out.
    is_verbatim: bool = False
    # The latest thought that revises it.
    superseded_by: UUID | None = None
    # A user corrected it.
    contradicted: bool = False
    # Of the thought, from 0 to 1; None where it is not known.
    trust: float | None = None
