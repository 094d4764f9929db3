"""The models of an embedding process, in a thread of their own, so that its session goes on."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from ledger.errors import reason_of
from projections.embeddings.batches import Pace
from projections.embeddings.errors import EmbeddingError, ModelFailedError
from projections.embeddings.model import Model, Vector
from projections.tables import ERROR_CHARACTERS_MAX
from projections.text import shown

# How often the database hears of a session whose model works.
BEAT_SECONDS = 0.25
# A model that fails on so many texts one after the other fails for another reason.
FAILURES_MAX = 5
RATE_SECONDS = 10.0

_T = TypeVar("_T")


class Models:
    """Loads, keeps and runs models; only one thing at a time."""

    def __init__(self, load: Callable[[str], Model], thread: ThreadPoolExecutor) -> None:
        self._load = load
        self._thread = thread
        self._loaded: dict[str, Model] = {}
        self._refused: dict[str, str] = {}
        self._failures = 0
        self.pace = Pace()
        self.rate = Rate()

    def get(self, source: str, beat: Callable[[], None]) -> Model:
        """The model of a source, loaded when first asked for.

        *beat* is called all the while.  Raises EmbeddingError.
        """
        if source not in self._loaded:
            self._loaded[source] = self._run(beat, lambda: self._load(source)).result()
        return self._loaded[source]

    def get_if_it_loads(self, source: str, beat: Callable[[], None]) -> Model | None:
        """The same; None when it does not, which is tried once."""
        if source in self._refused:
            return None
        try:
            return self.get(source, beat)
        except EmbeddingError as error:
            self._refused[source] = str(error)
            return None

    def embed(
        self, model: Model, texts: Sequence[str], beat: Callable[[], None]
    ) -> Mapping[str, Vector | str]:
        """A vector for each text, or what the model failed with.  Raises ModelFailedError."""
        began = time.monotonic()
        made = self._embed(model, texts, beat)
        seconds = time.monotonic() - began
        self.pace.took(seconds)
        self.rate.took(len(texts), seconds)
        return made

    def _embed(
        self, model: Model, texts: Sequence[str], beat: Callable[[], None]
    ) -> Mapping[str, Vector | str]:
        future = self._run(beat, lambda: model.embed(texts))
        error = future.exception()
        if error is None:
            self._failures = 0
            return dict(zip(texts, future.result(), strict=True))
        # Whatever a model does wrong with a text must not keep the others.
        if len(texts) > 1:
            made: dict[str, Vector | str] = {}
            for text in texts:
                made |= self._embed(model, [text], beat)
            return made
        self._failures += 1
        if self._failures > FAILURES_MAX or not isinstance(error, Exception):
            raise ModelFailedError(model.source, reason_of(error)) from error
        return {texts[0]: shown(reason_of(error))[:ERROR_CHARACTERS_MAX]}

    def _run(self, beat: Callable[[], None], work: Callable[[], _T]) -> Future[_T]:
        """Done when it returns; what *beat* raises is raised here, and the work goes on alone."""
        future = self._thread.submit(work)
        while not wait([future], BEAT_SECONDS).done:
            beat()
        return future


class Rate:
    """Texts a second, of the last while that the model worked."""

    def __init__(self) -> None:
        self._texts = 0.0
        self._seconds = 0.0

    def took(self, texts: int, seconds: float) -> None:
        if self._seconds > RATE_SECONDS:
            self._texts /= 2
            self._seconds /= 2
        self._texts += texts
        self._seconds += seconds

    @property
    def texts_a_second(self) -> float | None:
        return round(self._texts / self._seconds, 1) if self._seconds > 0 else None
