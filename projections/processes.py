"""What a process that works for another one is given."""

import os
from pathlib import Path

from ledger.settings import (
    DATA_DIR_VARIABLE,
    DATABASE_URL_VARIABLE,
    EMBEDDING_DIMENSIONS_VARIABLE,
    EMBEDDING_MODEL_VARIABLE,
    LOG_FORMAT_VARIABLE,
    Settings,
)

GIVEN = (
    DATABASE_URL_VARIABLE,
    DATA_DIR_VARIABLE,
    EMBEDDING_MODEL_VARIABLE,
    EMBEDDING_DIMENSIONS_VARIABLE,
)


def child_environment(settings: Settings) -> dict[str, str]:
    """Ours, with the settings: a database URL on a command line is for everyone to read."""
    environment = {name: value for name, value in os.environ.items() if name not in GIVEN}
    if settings.database_url is not None:
        environment[DATABASE_URL_VARIABLE] = settings.database_url
    elif settings.data_dir is not None:
        environment[DATA_DIR_VARIABLE] = str(settings.data_dir.absolute())
    if settings.embedding_model is not None:
        environment[EMBEDDING_MODEL_VARIABLE] = settings.embedding_model
    if settings.embedding_dimensions is not None:
        environment[EMBEDDING_DIMENSIONS_VARIABLE] = str(settings.embedding_dimensions)
    environment[LOG_FORMAT_VARIABLE] = settings.log_format
    # The packages of this process, not those of the directory it happens to run in.
    home = str(Path(__file__).resolve().parent.parent)
    known = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = f"{home}{os.pathsep}{known}" if known else home
    return environment
