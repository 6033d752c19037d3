"""Rows with one key that cannot both be true: two final rows that know different values of a column.

A job that was pending or running may change in every column until it ends, and a row that leaves a
column unknown agrees with one that knows it; decision 11 tells why. Everything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.schema import Table, qualified

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_SHOWN = 3


@dataclass(frozen=True)
class Conflicts:
    """How many rows contradict another one; the ids of the first few, and the columns that differ."""

    num_rows: int = 0
    ids: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def find_inside(con: DuckDBPyConnection, table: Table, contents: str) -> Conflicts:
    """Conflicts among the distinct rows `contents` that share their keys with others."""
    if not table.final:
        return Conflicts()
    keys = ", ".join(f'"{name}"' for name in table.key)
    clash = _listed((c, f'min("{c}") <> max("{c}")') for c in _compared(table))
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_conflicts AS
        SELECT {keys}, count(*) - 1 AS _rows, {clash} AS _clash
        FROM {contents} WHERE {table.final} GROUP BY {keys} HAVING count(*) > 1 AND len(_clash) > 0
        """
    )
    return summarise(con, table, "merge_conflicts", "sum(_rows)")


def summarise(con: DuckDBPyConnection, table: Table, found: str, count: str) -> Conflicts:
    """What the relation `found`, with its columns `_clash`, amounts to; `count` counts its rows."""
    shown = next(name for name in table.key if name not in ("cluster", table.time))
    num, ids = one_row(
        con,
        f'SELECT coalesce({count}, 0), list("{shown}" ORDER BY "{shown}")[:{NUM_SHOWN}] FROM {found}',
    )
    if not num:
        return Conflicts()
    columns = con.execute(
        f"SELECT c FROM (SELECT unnest(_clash) AS c FROM {found}) GROUP BY c ORDER BY count(*) DESC, c"
    ).fetchall()
    return Conflicts(int(num), tuple(map(str, ids)), tuple(name for (name,) in columns))


def clash_of(table: Table, one: str, other: str) -> str:
    """SQL for the columns in which the final rows `one` and `other` contradict each other, or null."""
    if not table.final:
        return "NULL::VARCHAR[]"
    columns = _listed((c, f'{one}."{c}" <> {other}."{c}"') for c in _compared(table))
    both = " AND ".join(f"({qualified(table.final, table, alias)})" for alias in (one, other))
    return f"CASE WHEN {both} THEN nullif({columns}, []) END"


def _compared(table: Table) -> Sequence[str]:
    return [name for name in table.names if name not in table.key]


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    """SQL for the list of the names whose condition holds; null is no condition that holds."""
    cases = ", ".join(f"CASE WHEN {sql} THEN {quote(name)} END" for name, sql in pairs)
    return f"list_filter([{cases}], lambda c: c IS NOT NULL)"
