"""The groups of a result: in the order in which a person counts, or the largest ones only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.analyses import Result


def in_order(result: Result) -> Result:
    """Groups by name, numbers in them as numbers (2017Q3/2 before 2017Q3/10); rows of one as they were."""
    if result.selection.by is None:
        return result
    names = result.table.column(0).to_pylist()
    return _taken(result, sorted(range(len(names)), key=lambda row: natural(names[row])))


def natural(name: Any) -> list[tuple[int, int | str]]:
    """A key that sorts digits by their number; what is unknown comes last."""
    if name is None:
        return [(2, "")]
    if not isinstance(name, str):
        return [(0, name)]
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]


def largest(result: Result, num: int) -> tuple[Result, list[str]]:
    """The groups (or, without --by, rows) that count most, and a note on how many more there are."""
    measure = _measure(result)
    by = result.selection.by
    names = result.table.column(0).to_pylist() if by else list(range(result.table.num_rows))
    amounts = [value or 0 for value in result.table.column(measure).to_pylist()]
    totals: dict[Any, float] = {}
    for name, amount in zip(names, amounts, strict=True):
        totals[name] = totals.get(name, 0) + amount
    kept = sorted(totals, key=lambda name: -totals[name])[:num]
    place = {name: at for at, name in enumerate(kept)}
    rows = [row for row, name in enumerate(names) if name in place]
    chosen = _taken(result, sorted(rows, key=lambda row: place[names[row]]))
    left = len(totals) - len(kept)
    many = "" if left == 1 else "s"
    what = f"group{many} of {by}" if by else f"row{many}"
    return chosen, [f"and {left:,} more {what} with less {measure}"] if left else []


def _measure(result: Result) -> str:
    """The column that says how large a group is."""
    columns: list[str] = list(result.table.column_names)
    first = ["pe_hours"] if result.selection.weight == "gpu-hours" else []
    counts = [name for name in columns if name.startswith("num_") and name != result.selection.by]
    for name in (*first, "num_jobs", *counts):
        if name in columns:
            return name
    raise HakaruError(f"--top does not apply to {result.analysis.id}")


def _taken(result: Result, rows: Sequence[int]) -> Result:
    import pyarrow as pa

    places = pa.array(rows, pa.int64())  # an empty list alone would have no type
    table: pa.Table = result.table.take(places)
    return replace(result, table=table)
