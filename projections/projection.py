"""What a projection is: a pure function from recorded events to changes of its read model."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol, TypeAlias

from ledger.serialization import Recorded


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, run once a batch; where it changes many rows, each column is one array.

    ``{schema}`` stands for the generation's schema.  Arrays and not ``executemany``, because
    psycopg pipelines that, and its pipeline hangs for good on a large parameter.
    """

    statement: LiteralString
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows to add to a table: the fast way in, and safe for large ones.

    ``columns`` are names and PostgreSQL types, in the order of the values of a row.
    """

    table: LiteralString
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]


Change: TypeAlias = Statement | Copy


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of its own tables that a projection goes on with, as they were before the batch.

    ``{schema}`` stands for the generation's schema.
    """

    statement: LiteralString
    parameters: Mapping[str, Any]


# A read is answered with its rows.
Deciding: TypeAlias = Generator[Change | Read, Any, None]


class Projection(Protocol):
    """Decides what a read model should become.  Never touches the database.

    ``projections/sql/<name>.sql`` makes its tables.  Whatever changes there or in ``changes``
    raises ``version``: read models are never migrated, a new generation is built.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def tables(self) -> Sequence[str]:
        """The tables readers see, under the same names, in schema ``live``."""
        ...

    @property
    def chain_columns(self) -> Mapping[str, str]:
        """Of the tables whose rows belong to one chain each, the column that names it.

        A sample of chains is compared by these.
        """
        ...

    @property
    def rest_seconds(self) -> float:
        """How long a worker that has caught up rests after a batch, to take more at once.

        Each process has one interpreter: what costs much must not keep the others waiting.
        """
        ...

    def changes(self, batch: Sequence[Recorded]) -> Iterable[Change | Read]:
        """What *batch*, the next events of the whole log, does to the tables.

        One whose rows follow from earlier rows is a generator: before its first change it may
        yield reads, and is sent the rows of each.  It still touches no database.

        However the log is cut into batches, the tables come out the same; and also when the
        events of a chain come late, in their order: when it was parked and is retried.
        """
        ...
