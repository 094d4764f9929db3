"""Loading models, in the embedding process alone: nothing else may import what they need."""

import os
from contextlib import suppress
from pathlib import Path

from projections.embeddings.choice import Choice
from projections.embeddings.errors import DimensionsError, NotInstalledError
from projections.embeddings.hashing import PREFIX, hashing_model
from projections.embeddings.model import Model


def load(source: str) -> Model:
    """The model of *source*.

    Raises ModelUnknownError, ModelMissingError, NotInstalledError.
    """
    if source.startswith(PREFIX):
        return hashing_model(source)
    if not Choice(source).is_installed:
        raise NotInstalledError
    # Threads that wait by spinning take the processors from those who record.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # It takes seconds, and hundreds of megabytes.
    from projections.embeddings.sentence import SentenceModel  # noqa: PLC0415

    model = SentenceModel(source)
    give_way()
    return model


def give_way() -> None:
    """Have the threads of the model, of which this is one, run only when nobody else would.

    Loaded first, for on a busy machine it would not come to that; and not the main thread, whose
    session is to be heard of.  Where there is no such thing, they are as nice as the process.
    """
    if not hasattr(os, "SCHED_IDLE"):
        return
    for thread in Path("/proc/self/task").iterdir():
        if int(thread.name) != os.getpid():
            with suppress(OSError):
                os.sched_setscheduler(int(thread.name), os.SCHED_IDLE, os.sched_param(0))


def check_dimensions(model: Model, expected: int | None) -> None:
    """Raises DimensionsError when the settings expect others than the model has."""
    dimensions = model.identity.dimensions
    if expected is not None and dimensions != expected:
        raise DimensionsError(model.source, dimensions, expected)
