"""Numbers as a user sees them beside the counts of cells: so coarse that no count can be read off them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 3
FEWEST_JOBS = 20  # for quantiles and deviations: of fewer, each job could be worked out


def to_digits(value: float) -> float:
    """Three significant digits."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else value


def rounded(table: pa.Table) -> pa.Table:
    """The table with three digits of each number that is not whole."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = table[field.name].to_pylist()
            shown = [None if value is None else to_digits(value) for value in values]
            table = table.set_column(place, field, pa.array(shown, field.type))
    return table


def without_spread(table: pa.Table, columns: Collection[str], count: str) -> pa.Table:
    """The table without these quantiles and deviations in rows that `count` too few jobs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in columns:
        few = pc.less(pc.fill_null(table[count], 0), FEWEST_JOBS)
        place, kind = table.column_names.index(name), table.schema.field(name).type
        table = table.set_column(place, name, pc.if_else(few, pa.scalar(None, kind), table[name]))
    return table


def nulled(table: pa.Table, columns: Collection[str]) -> pa.Table:
    """The table without what stands in these columns."""
    import pyarrow as pa

    for name in columns:
        place = table.column_names.index(name)
        kind = table.schema.field(name).type
        table = table.set_column(place, name, pa.nulls(table.num_rows, kind))
    return table
