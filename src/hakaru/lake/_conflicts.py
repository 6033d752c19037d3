"""Rows with one key that cannot both be true: their settled values of a column differ.

A job that is pending or running may still change in most columns until it ends, and a row that leaves a
column unknown agrees with one that knows it (decisions 11 and 14). Everything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def find_inside(con: DuckDBPyConnection, table: Table, contents: str, best: str) -> Conflicts:
    """Conflicts of the distinct rows `contents` with the one row of each key in `best` that is kept."""
    keys = ", ".join(f'one."{name}"' for name in table.key)
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_conflicts AS
        SELECT {keys}, {clash_of(table, "one", "kept")} AS _clash
        FROM {contents} AS one JOIN {best} AS kept ON {same_key(table, "one", "kept")}
        WHERE _clash IS NOT NULL
        """
    )
    return summarise(con, table, "merge_conflicts")


def summarise(con: DuckDBPyConnection, table: Table, found: str) -> Conflicts:
    """What the rows of the relation `found`, with their columns `_clash`, amount to."""
    shown = next(name for name in table.key if name not in ("cluster", table.time))
    num, ids = one_row(
        con,
        f'SELECT count(*), list(DISTINCT "{shown}" ORDER BY "{shown}")[:{NUM_SHOWN}] FROM {found}',
    )
    if not num:
        return Conflicts()
    columns = con.execute(
        f"SELECT c FROM (SELECT unnest(_clash) AS c FROM {found}) GROUP BY c ORDER BY count(*) DESC, c"
    ).fetchall()
    return Conflicts(int(num), tuple(map(str, ids)), tuple(name for (name,) in columns))


def clash_of(table: Table, one: str, other: str) -> str:
    """SQL for the columns in which the rows `one` and `other` contradict each other, or null."""
    if not table.final:
        return "NULL::VARCHAR[]"
    columns = [name for name in table.names if name not in table.key]
    pairs = ((c, f"{_settled(table, one, c)} <> {_settled(table, other, c)}") for c in columns)
    return f"nullif({_listed(pairs)}, [])"


def _settled(table: Table, alias: str, column: str) -> str:
    """SQL for a value that stays as it is; null where it is unknown or may still change."""
    stays = qualified(table.lasting.get(column, table.final), table, alias)
    return f'CASE WHEN {stays} THEN {alias}."{column}" END'


def same_key(table: Table, one: str, other: str) -> str:
    return " AND ".join(
        f'{one}."{name}" IS NOT DISTINCT FROM {other}."{name}"' for name in table.key
    )


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    """SQL for the list of the names whose condition holds; null is no condition that holds."""
    cases = ", ".join(f"CASE WHEN {sql} THEN {quote(name)} END" for name, sql in pairs)
    return f"list_filter([{cases}], lambda c: c IS NOT NULL)"
