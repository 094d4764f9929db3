"""A sentence for operators that also holds its facts, for logs that machines read."""

from collections.abc import Mapping
from typing import Any, Self


class Said(str):
    """A sentence like any other; ``facts`` are what it says, by name."""

    __slots__ = ("facts",)
    facts: Mapping[str, Any]

    def __new__(cls, sentence: str, **facts: Any) -> Self:
        said = super().__new__(cls, sentence)
        said.facts = facts
        return said


def facts_of(sentence: object) -> Mapping[str, Any]:
    """The facts of a sentence that has some."""
    return sentence.facts if isinstance(sentence, Said) else {}
