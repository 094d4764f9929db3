"""The tables of one generation: the changes of a projection, made on one connection."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from ledger.errors import TamperedEventError, UnknownTopicError, UnreadableEventError
from ledger.serialization import Recorded
from projections.faults import blames_database
from projections.projection import Change, Copy, Deciding, Projection, Read
from projections.text import shown

ERROR_CHARACTERS_MAX = 2_000
# What makes an event one that cannot be applied before its projection has seen it.
UNREADABLE = (TamperedEventError, UnknownTopicError, UnreadableEventError)


class PoisonError(Exception):
    """Some event of several cannot be applied."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Tables:
    """Written by whoever holds the generation's checkpoint row, which is the caller's business."""

    def __init__(
        self, connection: Connection[TupleRow], projection: Projection, schema: str
    ) -> None:
        self._connection = connection
        self._projection = projection
        self._schema = schema
        self._statements: dict[str, bytes] = {}

    def decide(self, events: Sequence[Recorded]) -> Sequence[Change]:
        """What the projection makes of *events*, reading what it asks for.

        The caller sees to it that nobody else writes to the tables until the changes are made, or
        that they are not made then.  Raises PoisonError, and psycopg.Error as ``make``.
        """
        with _watching():
            return self._decide(_deciding(self._projection.changes(events))) if events else []

    def make(self, changes: Sequence[Change]) -> None:
        """Do it, in the transaction of the caller.

        Raises PoisonError, and psycopg.Error when the database is at fault.
        """
        with _watching():
            for change in changes:
                self._make_one(change)

    def run(self, statement: LiteralString, parameters: Any = None) -> psycopg.Cursor[TupleRow]:
        """Run a statement in which ``{schema}`` stands for the generation's."""
        compiled = self._statements.get(statement)
        if compiled is None:
            schema = Identifier(self._schema)
            compiled = SQL(statement).format(schema=schema).as_bytes(self._connection)
            self._statements[statement] = compiled
        return self._connection.execute(compiled, parameters, prepare=True)

    def _decide(self, deciding: Deciding) -> list[Change]:
        changes: list[Change] = []
        rows = None
        with suppress(StopIteration):
            while True:
                step = deciding.send(rows)
                rows = None
                if isinstance(step, Read):
                    rows = self.run(step.statement, step.parameters).fetchall()
                else:
                    changes.append(step)
        return changes

    def _make_one(self, change: Change) -> None:
        if not isinstance(change, Copy):
            self.run(change.statement, change.parameters)
            return
        with (
            self._connection.cursor() as cursor,
            cursor.copy(self._copy_statement(change)) as copy,
        ):
            copy.set_types(list(change.columns.values()))
            for row in change.rows:
                copy.write_row(row)

    def _copy_statement(self, change: Copy) -> bytes:
        compiled = self._statements.get(change.table)
        if compiled is None:
            columns = SQL(", ").join(map(Identifier, change.columns))
            table = Identifier(self._schema, change.table)
            statement = SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(table, columns)
            compiled = statement.as_bytes(self._connection)
            self._statements[change.table] = compiled
        return compiled


def _deciding(steps: Iterable[Change | Read]) -> Deciding:
    """The steps as what takes answers; only a generator asks anything."""
    return cast("Deciding", steps) if isinstance(steps, Generator) else (step for step in steps)


@contextmanager
def _watching() -> Generator[None]:
    """Raise PoisonError for whatever is not the fault of the database or of this process."""
    try:
        yield
    except MemoryError:
        raise  # it may have enough another time
    # The one place for it: whatever a projection does wrong must end up parked and be seen.
    except Exception as error:
        if blames_database(error):
            raise
        raise PoisonError(error) from error


def described(error: Exception) -> str:
    """An error as ``parked`` keeps it."""
    return shown(f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS_MAX])
