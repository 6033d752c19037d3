"""How much a Parquet file holds, before it is read: equal values pack to almost nothing.

The footer tells the number of values. It counts a dictionary's texts once, so texts are measured by a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.engine.duckdb import one_row
from hakaru.schema import JOBS
from hakaru.sources._base import LONGEST_NAME, Records
from hakaru.sources._packing import PARQUET, Meter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12}
OTHER_WIDTH = 8


def has_parquet(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def check_values(path: Path, meter: Meter) -> None:
    """Count the footer's values; a broken file is the source's to explain."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            chunk = footer.row_group(group).column(column)
            found = chunk.statistics
            num_null = found.null_count if found is not None and found.has_null_count else 0
            width = WIDTHS.get(chunk.physical_type, OTHER_WIDTH)
            _count(meter, max((chunk.num_values - num_null) * width, chunk.total_uncompressed_size))


def check_texts(con: DuckDBPyConnection, records: Records, meter: Meter) -> None:
    """Count the texts of the mapped columns; one that is too long is rejected and takes no more room."""
    kinds = {row[0]: row[1] for row in con.execute(f"DESCRIBE {records.sql}").fetchall()}
    sums = [f"sum({_num_bytes(name, kinds[name])})" for name in JOBS.names if _is_text(kinds, name)]
    if sums:
        for num_bytes in one_row(con, f"SELECT {', '.join(sums)} FROM ({records.sql})"):
            _count(meter, int(num_bytes or 0))


def _is_text(kinds: Mapping[str, str], name: str) -> bool:
    return kinds.get(name) in ("VARCHAR", "VARCHAR[]")


def _num_bytes(name: str, kind: str) -> str:
    one = f"least(coalesce(strlen({{}}), 0), {LONGEST_NAME})"  # least() leaves nulls out
    if kind == "VARCHAR":
        return one.format(f'"{name}"')
    return f'list_sum(list_transform("{name}", lambda each: {one.format("each")}))'


def _count(meter: Meter, num_bytes: int) -> None:
    meter.num_bytes += num_bytes
    meter.add(b"")
