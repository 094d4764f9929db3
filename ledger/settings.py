"""Configuration, read once, at the edge, from one mapping."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from ledger.errors import LedgerError
from ledger.limits import recordable_name

DATABASE_URL_VARIABLE = "THOUGHT_LEDGER_DATABASE_URL"
DATA_DIR_VARIABLE = "THOUGHT_LEDGER_DATA_DIR"
ACTOR_VARIABLE = "THOUGHT_LEDGER_ACTOR"
LOG_FORMAT_VARIABLE = "THOUGHT_LEDGER_LOG_FORMAT"
EMBEDDING_MODEL_VARIABLE = "THOUGHT_LEDGER_EMBEDDING_MODEL"
EMBEDDING_DIMENSIONS_VARIABLE = "THOUGHT_LEDGER_EMBEDDING_DIMENSIONS"

# What a column of vectors can hold.
DIMENSIONS_MAX = 16_000


class LogFormat(StrEnum):
    """How a server or a worker writes what it says on stderr."""

    TEXT = "text"
    JSON = "json"


class LogFormatError(LedgerError):
    """The environment asks for a form of logs that there is not."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{LOG_FORMAT_VARIABLE} is {text!r}; it can be {' or '.join(LogFormat)}, or unset it"
        )


class EmbeddingDimensionsError(LedgerError):
    """The environment asks for vectors that there cannot be."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{EMBEDDING_DIMENSIONS_VARIABLE} is {text!r}; it is a number from 1 to "
            f"{DIMENSIONS_MAX}, or unset it to take what the model gives"
        )


@dataclass(frozen=True)
class Settings:
    """Where the log lives: in the database of ``database_url``, else embedded in ``data_dir``.

    ``data_dir`` None means the platform's default place.  ``actor`` is who records, None to
    let the door decide (an agent's client name, the user of the command line).
    ``embedding_model`` None means the default, see ``projections.embeddings.choice``;
    ``embedding_dimensions`` None means whatever the model gives.
    """

    database_url: str | None = None
    data_dir: Path | None = None
    actor: str | None = None
    log_format: LogFormat = LogFormat.TEXT
    embedding_model: str | None = None
    embedding_dimensions: int | None = None

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        database_url: str | None = None,
        data_dir: Path | None = None,
        actor: str | None = None,
        log_format: LogFormat | None = None,
    ) -> Self:
        """What was said on the command line, else what the environment says.

        Raises LogFormatError, EmbeddingDimensionsError.
        """
        given_dir = environ.get(DATA_DIR_VARIABLE)
        # A directory named on the command line is meant, whatever the environment's URL says.
        environment_url = None if data_dir else environ.get(DATABASE_URL_VARIABLE)
        actor = actor or environ.get(ACTOR_VARIABLE)
        return cls(
            database_url=database_url or environment_url or None,
            data_dir=data_dir or (Path(given_dir) if given_dir else None),
            actor=recordable_name(actor) if actor else None,
            log_format=log_format or _log_format(environ.get(LOG_FORMAT_VARIABLE)),
            embedding_model=environ.get(EMBEDDING_MODEL_VARIABLE, "").strip() or None,
            embedding_dimensions=_dimensions(environ.get(EMBEDDING_DIMENSIONS_VARIABLE)),
        )


def _log_format(text: str | None) -> LogFormat:
    if not text:
        return LogFormat.TEXT
    try:
        return LogFormat(text)
    except ValueError:
        raise LogFormatError(text) from None


def _dimensions(text: str | None) -> int | None:
    if not text:
        return None
    number = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= number <= DIMENSIONS_MAX:
        raise EmbeddingDimensionsError(text)
    return number
