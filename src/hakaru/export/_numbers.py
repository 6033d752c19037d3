"""Whole numbers for names, in formats that hold nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# no sign, no leading zero, and small enough for every reader that holds numbers as doubles
WHOLE = "^(0|[1-9][0-9]{0,8})$"


@dataclass(frozen=True)
class Numbers:
    """How a column becomes numbers: kept as it is, or through a table of numbers to join."""

    kept: bool
    sql: str
    join: str = ""


def number_names(
    con: DuckDBPyConnection, rows: str, column: str, first: int, within: str | None = None
) -> Numbers:
    """Numbers for a column of names: its own where all are whole numbers, else by first appearance.

    `rows` has the names and `submitted_at`; with `within`, each value of that column numbers anew.
    """
    if all_whole(con, rows, column):
        return Numbers(True, f"CAST({column} AS BIGINT)")
    table = f"numbers_{column}"
    scope = f"{within}, " if within else ""
    part = f"PARTITION BY {within} " if within else ""
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE {table} AS
        SELECT {scope}{column}, row_number() OVER ({part}ORDER BY first_at, {column}) + {first - 1}
               AS {column}_number
        FROM (SELECT {scope}{column}, min(submitted_at) AS first_at FROM {rows}
              WHERE {column} IS NOT NULL GROUP BY {scope}{column})
        """
    )
    return Numbers(False, f"{column}_number", f"LEFT JOIN {table} USING ({scope}{column})")


def all_whole(con: DuckDBPyConnection, rows: str, column: str) -> bool:
    """Whether every known value is a whole number that a reader would write the same way."""
    other = f"SELECT 1 FROM {rows} WHERE NOT regexp_full_match({column}, '{WHOLE}') LIMIT 1"
    return not con.execute(other).fetchall()
