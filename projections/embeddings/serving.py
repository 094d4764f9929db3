"""What the embedding process does while it leads, a piece at a time, on one session."""

import selectors
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from psycopg import Connection
from psycopg.rows import TupleRow

from ledger import log
from ledger.database import Connector
from ledger.said import Said
from projections.embeddings import answering, lead
from projections.embeddings.bursts import Bursts
from projections.embeddings.choice import Choice
from projections.embeddings.errors import EmbeddingError
from projections.embeddings.loading import check_dimensions
from projections.embeddings.model import Model
from projections.embeddings.modelling import BEAT_SECONDS, Models
from projections.embeddings.pages import Page, read_left_out, read_page
from projections.embeddings.spaces import (
    Space,
    index_neighbours,
    list_spaces,
    live_space,
    promote,
    space_for,
)
from projections.stopping import Stop

# In case it is not woken; and how often its server hears of it at least.
POLL_SECONDS = 1.0
SAY_SECONDS = 2.0
# Of a batch: who asks waits for all that are answered with theirs, and for the batch before.
QUESTIONS_SHARE = 3
# How long a question may wait while it stands aside.
ASIDE_SECONDS = 0.05

MODEL_GONE = "the model of the vectors that are searched cannot be loaded"


class StoppedError(Exception):
    """It was told to stop while it waited for its model."""


class Serving:
    """Raises SpaceMovedError, EmbeddingError, StoppedError, and psycopg.Error."""

    def __init__(
        self,
        connector: Connector,
        connection: Connection[TupleRow],
        *,
        choice: Choice,
        models: Models,
        stop: Stop,
        note: Callable[[str], None],
    ) -> None:
        """*connection* leads."""
        self._connector = connector
        self._connection = connection
        self._choice = choice
        self._models = models
        self._stop = stop
        self._note = note
        self._at_work: tuple[Page, Model] | None = None
        self._indexed: set[int] = set()
        self._tried_again: set[int] = set()
        self._bursts = Bursts()
        # Why it does not embed with the model of its choice, but with that of the live space.
        self.refused = ""
        self._say_at = 0.0

    def prepare(self) -> None:
        """Load the model, find its space, and let askers know."""
        assert self._choice.source is not None
        self._connection.execute(log.LISTEN_TO_APPENDS)
        self._connection.execute(f"LISTEN {answering.ASKED_CHANNEL}")
        try:
            self._model = self._models.get(self._choice.source, self._beat)
            check_dimensions(self._model, self._choice.dimensions)
        except EmbeddingError as error:
            self._stand_in(error)
        space = space_for(self._connection, self._model.identity, self._model.source)
        lead.be_ready(self._connection)
        self._say_ready()
        self._note(
            Said(
                f"embeds with {space.model} into space {space.number} ({space.state}), "
                f"from position {space.position}",
                event="embeds",
                model=space.model,
                space=space.number,
                position=space.position,
            )
        )

    def _stand_in(self, error: EmbeddingError) -> None:
        """Keep up the live space, where it is of another model than the one that was refused."""
        live = live_space(self._connection)
        if live is None or live.source == self._choice.source:
            raise error
        model = self._models.get_if_it_loads(live.source, self._beat)
        if model is None or model.identity != live.identity:
            raise error
        self._model = model
        self.refused = f"{error}; goes on with {live.model}"

    def answer(self) -> bool:
        """Answer the questions that are open; whether there were some."""
        characters_max = self._models.pace.characters_max // QUESTIONS_SHARE
        questions = answering.open_questions(self._connection, characters_max)
        if not questions:
            return False
        space = next(s for s in list_spaces(self._connection) if s.state == "live")
        model = self._model_of(space)
        if model is None:
            for question in questions:
                answering.refuse(self._connection, question, MODEL_GONE)
        else:
            texts = list(dict.fromkeys(question.text for question in questions))
            made = self._models.embed(model, texts, self._beat)
            for question in questions:
                answering.answer(self._connection, question, space, made[question.text])
        answering.forget_old(self._connection)
        return True

    def stand_aside(self) -> bool:
        """Leave the processors to a burst of recording for a moment; whether there is one."""
        if not self._bursts.are_on(log.head(self._connection), time.monotonic()):
            return False
        with selectors.PollSelector() as selector:
            # Not the session: it hears of each append.
            selector.register(self._stop, selectors.EVENT_READ)
            selector.select(ASIDE_SECONDS)
        return True

    def take_turn(self) -> bool:
        """Embed one batch, or store one page, of the first space that lacks something.

        False when none does.
        """
        if self._at_work is None:
            self._at_work = self._find_work()
        if self._at_work is None:
            return False
        page, model = self._at_work
        if batch := page.next_batch(self._models.pace.characters_max):
            page.give(self._models.embed(model, batch, self._beat))
        else:
            self._at_work = None
            self._store(page)
        return True

    def wait(self) -> None:
        """Until something was recorded or asked, or it is told to stop; not long."""
        answering.forget_old(self._connection)
        # What came along with the answer to a query does not wake the selector.
        if self._has_heard():
            return
        with selectors.PollSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(self._stop, selectors.EVENT_READ)
            selector.select(POLL_SECONDS)
        self._has_heard()

    def rest(self) -> None:
        """Say that it ends as it should."""
        lead.say_state(self._connection, lead.RESTING)

    def _has_heard(self) -> bool:
        return bool(list(self._connection.notifies(timeout=0)))

    # -- Spaces -----------------------------------------------------------------------------------

    def _spaces(self) -> Sequence[tuple[Space, Model]]:
        """Those to keep up, the live one first: the one of the model, and the one it is to replace.

        One that readers were taken back from is not built on.
        """
        found = [
            space
            for space in list_spaces(self._connection)
            if space.state == "live"
            or (space.state == "building" and space.identity == self._model.identity)
        ]
        found.sort(key=lambda space: space.state != "live")
        return [(space, model) for space in found if (model := self._model_of(space)) is not None]

    def _model_of(self, space: Space) -> Model | None:
        if space.identity == self._model.identity:
            return self._model
        model = self._models.get_if_it_loads(space.source, self._beat)
        return model if model is not None and model.identity == space.identity else None

    def _find_work(self) -> tuple[Page, Model] | None:
        for space, model in self._spaces():
            if page := self._page_of(space):
                return page, model
            self._arrive(space)
        return None

    def _page_of(self, space: Space) -> Page | None:
        if space.number not in self._tried_again:
            self._tried_again.add(space.number)
            if page := read_left_out(self._connection, space):
                return page
        return read_page(self._connection, space)

    def _store(self, page: Page) -> None:
        page.store(self._connection)
        if page.is_last:
            self._arrive(page.space)
        if time.monotonic() > self._say_at:
            self._say_ready()

    def _arrive(self, space: Space) -> None:
        """It has come to the head of the log."""
        if space.number not in self._indexed:
            self._index(space)
        if space.state == "building":
            promote(self._connection, space.number)
            self._note(
                Said(
                    f"space {space.number} of {space.model} is complete, and searched from now on",
                    event="space_promoted",
                    space=space.number,
                    model=space.model,
                )
            )

    def _index(self, space: Space) -> None:
        """Make the index of neighbours; in a thread, for questions are answered meanwhile."""
        # That session holds no lead, and need not be heard of.
        with self._connector.connect() as connection, ThreadPoolExecutor(1) as thread:
            future = thread.submit(index_neighbours, connection, space)
            try:
                while not wait([future], BEAT_SECONDS).done:
                    self._beat()
                    self.answer()
            except BaseException:
                connection.cancel_safe()
                raise
            future.result()
        self._indexed.add(space.number)

    def _say_ready(self) -> None:
        model = self._model.identity.model
        rate = self._models.rate.texts_a_second
        lead.say_state(self._connection, lead.IS_READY, self.refused, model=model, rate=rate)
        self._say_at = time.monotonic() + SAY_SECONDS

    def _beat(self) -> None:
        """What is done while the model works."""
        if self._stop.is_set():
            raise StoppedError
        self._connection.execute("SELECT 1")
