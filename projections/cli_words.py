"""What the operators' commands print: comparisons, digests, switches; as text or as JSON."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import orjson

from ledger.display import print_table, printable
from projections.comparison import Comparison, RowDifference, TableDifference, TableDigest
from projections.generations import Generation
from projections.promotion import Promoted

VALUE_CHARACTERS_MAX = 60


def say(line: str) -> None:
    """Tell the operator something beside the answer."""
    # Whoever started the worker may have closed our stderr; that is no reason to stop.
    with suppress(OSError):
        # In one piece: there is a thread for each read model.
        print(f"projections: {printable(line)}\n", end="", file=sys.stderr, flush=True)


def print_json(fact: Any) -> None:
    """One object, one line."""
    sys.stdout.buffer.write(orjson.dumps(fact) + b"\n")
    sys.stdout.buffer.flush()


def print_promoted(promoted: Promoted, *, as_json: bool) -> None:
    """A switch that was made, and what to do when it was wrong."""
    generation, replaced = promoted.generation, promoted.replaced
    if as_json:
        print_json(
            {
                "name": generation.name,
                "generation": generation.number,
                "replaced": replaced and replaced.number,
                "position": promoted.position,
                "switch_milliseconds": round(promoted.seconds * 1000, 1),
                "readers_waited_milliseconds_max": round(promoted.longest_try_seconds * 1000, 1),
                "attempts": promoted.attempts,
            }
        )
        return
    print(
        f"{generation.name}: readers see {generation.schema} now, at position "
        f"{promoted.position:,}; switched in {promoted.seconds * 1000:.1f} ms, "
        f"readers waited at most {promoted.longest_try_seconds * 1000:.1f} ms"
    )
    if replaced is not None and replaced.id != generation.id:
        back = replaced.number < generation.number
        print(
            f"{generation.name}: {replaced.schema} is kept: `thought-ledger projections "
            f"{'rollback' if back else 'promote'} {generation.name}` goes "
            f"{'back' if back else 'forward'} to it, `... retire {generation.name}` drops it"
        )


def print_comparison(
    comparison: Comparison, differences: Sequence[TableDifference], *, as_json: bool
) -> None:
    """Table by table what the other generation has, and rows that differ."""
    live, other = comparison.live, comparison.other
    if as_json:
        print_json(
            {
                "name": live.name,
                "live": _described(live, comparison.live_position),
                "other": _described(other, comparison.other_position),
                "equal": all(table.is_equal for table in differences),
                "tables": [asdict(table) for table in differences],
            }
        )
        return
    at = f"both at position {comparison.live_position:,}"
    if not comparison.is_even:
        at = (
            f"at positions {comparison.live_position:,} and "
            f"{comparison.other_position:,}: what lies between differs, too; a worker "
            "that keeps the live one up would bring it there"
        )
    print(f"{live.name}: {_titled(live)}, live, and {_other_title(live, other)}, {at}")
    print_table(
        ("table", "rows live", "rows new", "added", "removed", "changed", "columns"),
        [
            (
                table.table,
                _count(table.live_rows),
                _count(table.other_rows),
                f"{table.added:,}",
                f"{table.removed:,}",
                f"{table.changed:,}",
                _columns(table),
            )
            for table in differences
        ],
    )
    for table in differences:
        for row in table.samples:
            print(f"{table.table}: {printable(_row(row))}")
    if all(table.is_equal for table in differences):
        print(f"{live.name}: no row and no column differs")


def print_digests(
    comparison: Comparison,
    live: Sequence[TableDigest],
    fresh: Sequence[TableDigest],
    *,
    what: str,
    as_json: bool,
) -> None:
    """Both digests of each table, and whether they are equal."""
    pairs = list(zip(live, fresh, strict=True))
    if as_json:
        print_json(
            {
                "name": comparison.live.name,
                "generation": comparison.live.number,
                "position": comparison.live_position,
                "checked": what,
                "equal": all(one == other for one, other in pairs),
                "tables": [{"live": asdict(one), "fresh": asdict(other)} for one, other in pairs],
            }
        )
        return
    position = f"{comparison.live_position:,}"
    print(f"{comparison.live.name}: the log to position {position} folded anew, {what}")
    print_table(
        ("table", "rows", "sha256", "fresh"),
        [
            (
                one.table,
                f"{one.rows:,}",
                one.sha256,
                "equal" if one == other else f"{other.sha256} ({other.rows:,} rows)",
            )
            for one, other in pairs
        ],
    )


def _titled(generation: Generation) -> str:
    name = f"{generation.name}_g{generation.number}"
    return f"{name} (version {generation.projection_version})"


def _other_title(live: Generation, other: Generation) -> str:
    # A sample is folded into something that is no generation.
    if other.state == "scratch" or live.number == other.number:
        return f"the log folded anew (version {other.projection_version})"
    return _titled(other)


def _described(generation: Generation, position: int) -> Mapping[str, int]:
    return {
        "generation": generation.number,
        "projection_version": generation.projection_version,
        "position": position,
    }


def _count(rows: int | None) -> str:
    return "none" if rows is None else f"{rows:,}"


def _columns(table: TableDifference) -> str:
    return ", ".join(
        [
            *(f"+{name}" for name in table.columns_added),
            *(f"-{name}" for name in table.columns_removed),
            *(f"{name} has another type" for name in table.columns_retyped),
            *(f"{name}: {count:,}" for name, count in table.changed_columns.items()),
        ]
    )


def _row(row: RowDifference) -> str:
    key = " ".join(f"{name}={_value(value)}" for name, value in row.key.items())
    if row.live is None:
        return f"+ {key}"
    if row.other is None:
        return f"- {key}"
    changes = (
        f"{name}: {_value(value)} -> {_value(row.other[name])}" for name, value in row.live.items()
    )
    return f"~ {key}  {', '.join(changes)}"


def _value(value: object) -> str:
    text = orjson.dumps(value).decode()
    short = len(text) <= VALUE_CHARACTERS_MAX
    return text if short else f"{text[:VALUE_CHARACTERS_MAX]}…"
