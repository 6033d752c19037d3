"""How a proposed mapping would read the sample: three rows as they come out, and what would be rejected."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row
from hakaru.errors import SettingsError
from hakaru.schema import JOBS
from hakaru.sources._stage import DERIVED, staged
from hakaru.sources.table._mapping import TableMapping, parse
from hakaru.sources.table._tabular import Tabular

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_EXAMPLES = 3
MAX_WIDTH = 40


def preview(
    con: DuckDBPyConnection, path: Path, table: Tabular, mapping: str
) -> tuple[list[str], str]:
    """Comment lines with the first rows that can be read, and what is wrong with the others."""
    try:
        parsed = parse(tomllib.loads(mapping), table.names, path.name, [])
    except SettingsError:  # something that it needs is missing, which the proposal says itself
        return [], ""
    con.execute(f"CREATE TEMP TABLE preview AS {_query(con, path, table, parsed)}")
    names = [name for name in JOBS.names if name in {*parsed.cells, "submitted_at", *DERIVED}]
    columns = ", ".join(f'"{name}"' for name in names)
    rows = con.execute(
        f"SELECT {columns} FROM preview WHERE _reason IS NULL ORDER BY _line LIMIT {NUM_EXAMPLES}"
    ).fetchall()
    return _listed(names, rows), _rejected(con)


def _query(con: DuckDBPyConnection, path: Path, table: Tabular, mapping: TableMapping) -> str:
    from hakaru.sources.table import query

    records = query(path, table, mapping, mapping.zone)
    given = [row[0] for row in con.execute(f"DESCRIBE {records}").fetchall()]
    return staged(records, given, "")


def _listed(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """A line a column, since a row has more columns than a terminal is wide."""
    if not rows:
        return []
    cells = [[_shown(value, JOBS.column(name).unit) for value in column]
             for name, column in zip(names, zip(*rows, strict=True), strict=True)]  # fmt: skip
    widths = [max(len(column[i]) for column in cells) for i in range(len(rows))]
    first = max(map(len, names))
    lines = [
        f"#   {name:{first}}  " + "  ".join(f"{c:{w}}" for c, w in zip(column, widths, strict=True))
        for name, column in zip(names, cells, strict=True)
    ]
    head = f"# The first {len(rows)} rows as they would be read (– is unknown):"
    return ["#", head, *(line.rstrip() for line in lines)]


def _shown(value: Any, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0") + f" {unit}"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"


def _rejected(con: DuckDBPyConnection) -> str:
    num, num_bad = one_row(con, "SELECT count(*), count(_reason) FROM preview")
    if not num_bad:
        return ""
    (reason, line) = one_row(
        con,
        "SELECT arg_min(_reason, _line), min(_line) FROM preview WHERE _reason IS NOT NULL",
    )
    rows = "row" if num == 1 else "rows"
    return f"{num_bad:,} of {num:,} {rows} would be rejected; line {line}: {reason}"
