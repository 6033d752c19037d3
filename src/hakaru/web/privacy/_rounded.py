"""Numbers as a user sees them beside the counts of cells: so coarse that no count can be read off them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 3
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
FEWEST_JOBS = 5  # a step of a share is of no fewer jobs


def step_of(num_jobs: int) -> float:
    """How finely a share of so many jobs is shown: by tenths of a percent, or coarser where jobs are few."""
    return next((step for step in STEPS if step * num_jobs >= FEWEST_JOBS), 1.0)


def to_step(value: float, step: float) -> float:
    return float(f"{round(value / step) * step:.12g}")


def to_digits(value: float) -> float:
    """Three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def is_share(column: str) -> bool:
    return column.startswith("share") or column == "utilisation"


def rounded(
    table: pa.Table, num_jobs: int, keys: Collection[str], amounts: Collection[str]
) -> pa.Table:
    """The table's numbers: shares and amounts by steps, all others to three digits; keys as they are."""
    import pyarrow as pa

    step = step_of(num_jobs)
    for place, field in enumerate(table.schema):
        is_edge = field.name.endswith(("_from_h", "_to_h"))
        if field.name in keys or is_edge or not pa.types.is_floating(field.type):
            continue
        values = table[field.name].to_pylist()
        write = _writer(field.name, values, step, amounts)
        shown = [None if value is None else write(value) for value in values]
        table = table.set_column(place, field, pa.array(shown, field.type))
    return table


def _writer(
    name: str, values: list[Any], step: float, amounts: Collection[str]
) -> Callable[[float], float]:
    if is_share(name):
        return lambda value: to_step(value, step)
    total = sum(abs(value) for value in values if value is not None)
    if name in amounts and total:
        return lambda value: to_step(value, to_digits(step * total))
    return to_digits


def nulled(table: pa.Table, columns: Collection[str]) -> pa.Table:
    """The table without what stands in these columns."""
    import pyarrow as pa

    for name in columns:
        place = table.column_names.index(name)
        kind = table.schema.field(name).type
        table = table.set_column(place, name, pa.nulls(table.num_rows, kind))
    return table
