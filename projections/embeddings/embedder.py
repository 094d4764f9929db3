"""The embedding process: leads, loads its model, answers questions, and goes through the log."""

import selectors
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from ledger.background import FAULTS
from ledger.database import Connector, DatabaseUnavailableError
from ledger.said import Said
from projections.embeddings import lead
from projections.embeddings.choice import Choice, name_of
from projections.embeddings.errors import EmbeddingError, SpaceMovedError
from projections.embeddings.model import Model
from projections.embeddings.modelling import Models
from projections.embeddings.schema import ensure_schema
from projections.embeddings.serving import Serving, StoppedError
from projections.faults import passes
from projections.outage import Outage
from projections.session import session
from projections.stopping import Stop

# So long it goes on with another model than that of its choice, before that is tried again.
REFUSED_SECONDS_MAX = 15 * 60.0
# Without thoughts and questions for so long it ends, and gives its memory back.
IDLE_SECONDS_MAX = 15 * 60.0


class Embedder:
    """Embeds for one database as long as there is something to embed; another stands back."""

    def __init__(
        self,
        connector: Connector,
        choice: Choice,
        load: Callable[[str], Model],
        stop: Stop,
        *,
        say: Callable[[str], None] = lambda _: None,
        note: Callable[[str], None] | None = None,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
    ) -> None:
        """*connector* is of role PROJECTOR; *say* and *note* are those of ``Worker``."""
        self._connector = connector
        self._choice = choice
        self._load = load
        self._stop = stop
        self._say = say
        self._note = note or say
        self._idle_seconds_max = idle_seconds_max
        self._outage = Outage(work="embedding")

    def run(self) -> bool:
        """Embed until told to stop, idle, or led by another; False when the model keeps it.

        What is wrong with the database is waited out.
        """
        if self._choice.source is None:
            return True
        with ThreadPoolExecutor(1) as thread:
            models = Models(self._load, thread)
            while not self._stop.is_set():
                try:
                    with session(self._connector) as connection:
                        return self._lead(connection, models)
                except StoppedError:
                    return True
                except SpaceMovedError as error:
                    self._note(Said(str(error), event="space_moved"))
                except (OSError, DatabaseUnavailableError, psycopg.Error) as error:
                    if not passes(error):
                        raise
                    self._back_off(error)
        return True

    def _lead(self, connection: Connection[TupleRow], models: Models) -> bool:
        ensure_schema(connection)
        if not lead.take_lead(connection):
            self._note(Said("another process embeds", event="stands_back"))
            return True
        serving = Serving(
            self._connector,
            connection,
            choice=self._choice,
            models=models,
            stop=self._stop,
            note=self._note,
        )
        try:
            serving.prepare()
            self._outage.end()
            if serving.refused:
                self._say(Said(serving.refused, event="embedding_refused"))
            self._follow(serving)
        except SpaceMovedError:
            raise
        except EmbeddingError as error:
            # Whoever starts it again and again does not say it each time.
            model = self._choice.source and name_of(self._choice.source)
            if lead.say_state(connection, lead.FAILED, str(error), model=model):
                self._say(Said(f"{error}; search goes on by words", event="embedding_failed"))
            return False
        return True

    def _follow(self, serving: Serving) -> None:
        busy_at = began = time.monotonic()
        while not self._stop.is_set():
            if serving.refused and time.monotonic() > began + REFUSED_SECONDS_MAX:
                break
            # A question goes before the next batch, which leaves the processors to a burst.
            if serving.answer() or serving.stand_aside() or serving.take_turn():
                busy_at = time.monotonic()
                continue
            if time.monotonic() > busy_at + self._idle_seconds_max:
                self._note(Said("nothing to embed; ends until there is", event="rests"))
                break
            serving.wait()
        serving.rest()

    def _back_off(self, error: Exception) -> None:
        if news := self._outage.news(error):
            self._say(news)
        with selectors.PollSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            if selector.select(self._outage.pause()):
                return
        try:
            self._connector.revive()
        except FAULTS as failure:
            if news := self._outage.news(failure):
                self._say(news)
