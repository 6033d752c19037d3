"""Shares of how people's jobs end: a state that a log never records is unknown, not 0 %."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def ends_of(columns: Collection[str]) -> Mapping[str, Sequence[str]]:
    """The states behind each share of a table of users or accounts; none for any other table."""
    from hakaru.analyses.people import ENDS

    return ENDS if all(_column(end) in columns for end in ENDS) else {}


def named(end: str) -> Sequence[str]:
    """An end as its state, or as the states that it takes together."""
    from hakaru.analyses.people import ENDS

    return [end] if end in ENDS[end] else ENDS[end]


def without_ends(table: pa.Table, ends: Collection[str]) -> pa.Table:
    """The table with these shares unknown."""
    import pyarrow as pa

    for end in ends:
        place = table.column_names.index(_column(end))
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.nulls(table.num_rows, field.type))
    return table


def _column(end: str) -> str:
    return f"share_{end}"
