"""Configuration, read once, at the edge, from one mapping."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ledger.limits import recordable_name

DATABASE_URL_VARIABLE = "THOUGHT_LEDGER_DATABASE_URL"
DATA_DIR_VARIABLE = "THOUGHT_LEDGER_DATA_DIR"
ACTOR_VARIABLE = "THOUGHT_LEDGER_ACTOR"


@dataclass(frozen=True)
class Settings:
    """Where the log lives: in the database of ``database_url``, else embedded in ``data_dir``.

    ``data_dir`` None means the platform's default place.  ``actor`` is who records, None to
    let the door decide (an agent's client name, the user of the command line).
    """

    database_url: str | None = None
    data_dir: Path | None = None
    actor: str | None = None

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        database_url: str | None = None,
        data_dir: Path | None = None,
        actor: str | None = None,
    ) -> Self:
        """What was said on the command line, else what the environment says."""
        given_dir = environ.get(DATA_DIR_VARIABLE)
        # A directory named on the command line is meant, whatever the environment's URL says.
        environment_url = None if data_dir else environ.get(DATABASE_URL_VARIABLE)
        actor = actor or environ.get(ACTOR_VARIABLE)
        return cls(
            database_url=database_url or environment_url or None,
            data_dir=data_dir or (Path(given_dir) if given_dir else None),
            actor=recordable_name(actor) if actor else None,
        )
