"""Numbers as a user sees them beside the counts of cells: so coarse that no count can be read off them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 3


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


def nulled(table: pa.Table, columns: Collection[str]) -> pa.Table:
    """The table without what stands in these columns."""
    import pyarrow as pa

    for name in columns:
        place = table.column_names.index(name)
        kind = table.schema.field(name).type
        table = table.set_column(place, name, pa.nulls(table.num_rows, kind))
    return table
