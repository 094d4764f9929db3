"""Two generations compared at one position of the log: row by row, or by their digests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable, Composed, Identifier

from projections import views
from projections.generations import Generation
from projections.promotion import SELECT_POSITION, position_of

# What a row looks like as text must not depend on who asks.
CONFIGURE = """
    SELECT set_config('TimeZone', 'UTC', true),
           set_config('DateStyle', 'ISO', true),
           set_config('IntervalStyle', 'postgres', true),
           set_config('bytea_output', 'hex', true),
           set_config('extra_float_digits', '1', true),
           set_config('jit', 'off', true)
"""

SELECT_COLUMNS = """
    SELECT attribute.attname,
           format_type(attribute.atttypid, attribute.atttypmod),
           coalesce(attribute.attnum = ANY (key.indkey), false)
      FROM pg_attribute AS attribute
      LEFT JOIN pg_index AS key ON key.indrelid = attribute.attrelid AND key.indisprimary
     WHERE attribute.attrelid = format('%%I.%%I', %(schema)s::text, %(table)s::text)::regclass
       AND attribute.attnum > 0
       AND NOT attribute.attisdropped
     ORDER BY attribute.attname
"""

COUNT = "SELECT count(*) FROM {table}"

COMPARE = """
    SELECT count(*) FILTER (WHERE old.here),
           count(*) FILTER (WHERE new.here),
           count(*) FILTER (WHERE old.here IS NULL),
           count(*) FILTER (WHERE new.here IS NULL),
           count(*) FILTER (WHERE old.here AND new.here AND ({changed})),
           ARRAY[{each_changed}]::bigint[]
      FROM (SELECT true AS here, {shared} FROM {old}) AS old
      FULL JOIN (SELECT true AS here, {shared} FROM {new}) AS new USING ({key})
"""

SAMPLE = """
    SELECT CASE WHEN old.here THEN to_jsonb(old) - 'here' END,
           CASE WHEN new.here THEN to_jsonb(new) - 'here' END
      FROM (SELECT true AS here, {shared} FROM {old}) AS old
      FULL JOIN (SELECT true AS here, {shared} FROM {new}) AS new USING ({key})
     WHERE old.here IS NULL OR new.here IS NULL OR ({changed})
     ORDER BY {key}
     LIMIT %(limit)s
"""

# SHA-256 over the SHA-256 of each row as text, in the order of the key; columns by name.
DIGEST = """
    SELECT count(*),
           encode(sha256(coalesce(string_agg(
               sha256(convert_to(ROW({columns})::text, 'UTF8')), ''::bytea ORDER BY {key}
           ), ''::bytea)), 'hex')
      FROM {table}
"""


class _Column(NamedTuple):
    name: str
    type: str
    in_key: bool


@dataclass(frozen=True, slots=True)
class RowDifference:
    """One row that differs: its key, and what differs of it; a side is None where it is not."""

    key: Mapping[str, Any]
    live: Mapping[str, Any] | None
    other: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableDifference:
    """How a table of the other generation differs from the live one's.

    Rows are None where the table is not there.  Rows are compared by the columns both have.
    """

    table: str
    live_rows: int | None
    other_rows: int | None
    added: int = 0
    removed: int = 0
    changed: int = 0
    changed_columns: Mapping[str, int] = field(default_factory=dict[str, int])
    columns_added: Sequence[str] = ()
    columns_removed: Sequence[str] = ()
    columns_retyped: Sequence[str] = ()
    samples: Sequence[RowDifference] = ()

    @property
    def is_equal(self) -> bool:
        return (
            self.live_rows == self.other_rows
            and not (self.added or self.removed or self.changed)
            and not (self.columns_added or self.columns_removed or self.columns_retyped)
        )


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The rows of a table in one number: equal for equal rows, whatever order they came in."""

    table: str
    rows: int
    sha256: str


class Comparison:
    """Two generations in one snapshot of the database, each at its position."""

    def __init__(
        self, connection: Connection[TupleRow], live: Generation, other: Generation
    ) -> None:
        self.live = live
        self.other = other
        self.live_position = position_of(connection, SELECT_POSITION, live)
        self.other_position = position_of(connection, SELECT_POSITION, other)
        self._connection = connection
        connection.execute(CONFIGURE)

    @property
    def is_even(self) -> bool:
        """Whether both are at the same position, so that every difference is one of the code."""
        return self.live_position == self.other_position

    def differences(self, samples_max: int) -> list[TableDifference]:
        """Every table of either, with up to *samples_max* rows that differ."""
        live = views.tables_of(self._connection, self.live.schema)
        other = views.tables_of(self._connection, self.other.schema)
        return [
            self._difference(table, samples_max)
            if table in live and table in other
            else self._lone(table, is_live=table in live)
            for table in sorted({*live, *other})
        ]

    def digests(self, generation: Generation) -> list[TableDigest]:
        """A digest of each table of one of them."""
        return [
            self._digest(generation, table)
            for table in views.tables_of(self._connection, generation.schema)
        ]

    def _difference(self, table: str, samples_max: int) -> TableDifference:
        live = self._columns(self.live, table)
        other = self._columns(self.other, table)
        shared = [column for column in live.values() if other.get(column.name) == column]
        names = _statement_names(self.live, self.other, table, shared)
        compared = [column.name for column in shared if not column.in_key]
        row = self._connection.execute(SQL(COMPARE).format(**names)).fetchone()
        assert row is not None
        live_rows, other_rows, added, removed, changed, each = row
        samples: list[RowDifference] = []
        if samples_max and (added or removed or changed):
            samples = self._samples(names, [c.name for c in shared if c.in_key], samples_max)
        return TableDifference(
            table=table,
            live_rows=live_rows,
            other_rows=other_rows,
            added=added,
            removed=removed,
            changed=changed,
            changed_columns={n: k for n, k in zip(compared, each, strict=True) if k},
            columns_added=sorted(other.keys() - live.keys()),
            columns_removed=sorted(live.keys() - other.keys()),
            columns_retyped=sorted(n for n in live.keys() & other.keys() if live[n] != other[n]),
            samples=samples,
        )

    def _samples(
        self, names: Mapping[str, Composable], key: Sequence[str], limit: int
    ) -> list[RowDifference]:
        rows = self._connection.execute(SQL(SAMPLE).format(**names), {"limit": limit}).fetchall()
        return [_row_difference(live, other, key) for live, other in rows]

    def _lone(self, table: str, *, is_live: bool) -> TableDifference:
        generation = self.live if is_live else self.other
        name = Identifier(generation.schema, table)
        row = self._connection.execute(SQL(COUNT).format(table=name)).fetchone()
        assert row is not None
        return TableDifference(
            table=table,
            live_rows=row[0] if is_live else None,
            other_rows=None if is_live else row[0],
        )

    def _digest(self, generation: Generation, table: str) -> TableDigest:
        columns = self._columns(generation, table)
        key = [column.name for column in columns.values() if column.in_key]
        statement = SQL(DIGEST).format(
            columns=_listed(list(columns)),
            key=_listed(key),
            table=Identifier(generation.schema, table),
        )
        row = self._connection.execute(statement).fetchone()
        assert row is not None
        return TableDigest(table, *row)

    def _columns(self, generation: Generation, table: str) -> dict[str, _Column]:
        where = {"schema": generation.schema, "table": table}
        rows = self._connection.execute(SELECT_COLUMNS, where).fetchall()
        return {row[0]: _Column(*row) for row in rows}


def _statement_names(
    live: Generation, other: Generation, table: str, shared: Sequence[_Column]
) -> dict[str, Composable]:
    compared = [column.name for column in shared if not column.in_key]
    old, new = ([Identifier(side, name) for name in compared] for side in ("old", "new"))
    comma = SQL(", ")
    return {
        "old": Identifier(live.schema, table),
        "new": Identifier(other.schema, table),
        "shared": _listed([column.name for column in shared]),
        "key": _listed([column.name for column in shared if column.in_key]),
        "changed": SQL("({}) IS DISTINCT FROM ({})").format(comma.join(old), comma.join(new))
        if compared
        else SQL("false"),
        "each_changed": comma.join(
            SQL("count(*) FILTER (WHERE old.here AND new.here AND {} IS DISTINCT FROM {})").format(
                *pair
            )
            for pair in zip(old, new, strict=True)
        ),
    }


def _listed(names: Sequence[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))


def _row_difference(
    live: Mapping[str, Any] | None, other: Mapping[str, Any] | None, key: Sequence[str]
) -> RowDifference:
    known = live or other or {}
    values = {name: known[name] for name in key}
    if live is None or other is None:
        return RowDifference(values, live, other)
    differing = [name for name in live if live[name] != other[name]]
    return RowDifference(
        values,
        {name: live[name] for name in differing},
        {name: other[name] for name in differing},
    )
