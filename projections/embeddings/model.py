"""What is asked of a model that embeds texts, and what its vectors are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# Of 32 bits each: arrays of type "f".
Vector = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What decides whether vectors can be compared: one space for each.

    ``revision`` is the SHA-256 of everything that decides what a text becomes.
    """

    model: str
    revision: str
    dimensions: int
    normalised: bool


class Model(Protocol):
    """Turns texts into vectors.  It is used by one thread at a time."""

    @property
    def identity(self) -> Identity: ...

    @property
    def source(self) -> str:
        """What loads it again: a name, or a path on this machine."""
        ...

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text, in their order."""
        ...


def can_be_embedded(text: str) -> bool:
    """Whether there is anything in it: white space has no direction, and gets no vector."""
    return bool(text.strip().strip("\0"))


def is_usable(vector: Vector, dimensions: int) -> bool:
    """Whether it can be compared with others: the cosine of a zero vector is no number."""
    return len(vector) == dimensions and any(vector) and all(map(math.isfinite, vector))


def as_text(vector: Vector) -> str:
    """The form pgvector reads; nine digits are all that 32 bits can hold."""
    return f"[{','.join([f'{value:.9g}' for value in vector])}]"
