"""What embedding can refuse."""

from ledger.display import shortened
from projections.errors import ProjectionError

INSTALL = "pip install 'thought-ledger[semantic]'"
MODEL_SETTING = "THOUGHT_LEDGER_EMBEDDING_MODEL"


class EmbeddingError(ProjectionError):
    """Base of what keeps thoughts from being embedded; nothing else is kept from anything."""


class ModelUnknownError(EmbeddingError):
    """The setting names no model."""

    def __init__(self, source: str, reason: str) -> None:
        named = shortened(source)
        super().__init__(f"there is no model {named}: {reason}; correct {MODEL_SETTING}")
        self.source = source


class ModelMissingError(EmbeddingError):
    """The model cannot be loaded here."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"the model {shortened(source)} cannot be loaded ({reason}); install it, or set "
            f"{MODEL_SETTING} to the path of one, or to off"
        )
        self.source = source


class NotInstalledError(EmbeddingError):
    """What embeds is an extra that is not there."""

    def __init__(self) -> None:
        super().__init__(f"what embeds texts is not installed; {INSTALL}")


class DimensionsError(EmbeddingError):
    """The model gives other vectors than the settings expect; none is stored."""

    def __init__(self, source: str, dimensions: int, expected: int) -> None:
        super().__init__(
            f"the model {source} gives vectors of {dimensions} dimensions, and "
            f"THOUGHT_LEDGER_EMBEDDING_DIMENSIONS expects {expected}; nothing was stored: correct "
            "one of the two"
        )
        self.dimensions = dimensions
        self.expected = expected


class ModelFailedError(EmbeddingError):
    """The model was loaded and does not embed."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"the model {source} failed ({reason}); it is tried again")
        self.source = source


class SpaceMovedError(EmbeddingError):
    """Somebody else moved or dropped the space; nothing of the batch was stored."""

    def __init__(self, number: int) -> None:
        super().__init__(f"space {number} was moved or dropped meanwhile; looking again")
        self.number = number


class SpaceNotFoundError(EmbeddingError):
    """There is no space of that number."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"there is no space {number}; `thought-ledger projections vectors list` lists them"
        )
        self.number = number


class SpaceLiveError(EmbeddingError):
    """The space is the one that is searched."""

    def __init__(self, number: int, todo: str) -> None:
        super().__init__(f"space {number} is the one that is searched; {todo}")
        self.number = number


class NoEarlierSpaceError(EmbeddingError):
    """There is nothing to go back to."""

    def __init__(self) -> None:
        super().__init__(
            "no space is kept to go back to; `thought-ledger projections vectors list` lists them"
        )


class SpaceBlockedError(EmbeddingError):
    """Somebody reads a space that is to be dropped, or writes to it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"space {number} is in use; try again in a moment")
        self.number = number
