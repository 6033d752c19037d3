"""Lines of the Standard Workload Format, and what an ingest makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from hakaru.engine.duckdb import connect, select_files
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
from hakaru.sources.ingest import Summary, ingest

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "small.swf"
# job 9, submitted at 130, waits for 1 s and runs for 60 s on 1 processor
GOOD = "9 130 1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1"


def plausible(count: int, **changed: Any) -> list[str]:
    """Lines of a plausible log; a field is changed by its number, as `f3=lambda i: …`."""
    table = []
    for i in range(count):
        cells: list[Any] = [
            i + 1, 1000 * i, 60, 600, 4, -1, -1, 4, 900, -1, 1, i % 3, 1, 1, 1, -1, -1, -1,
        ]  # fmt: skip
        for field, make in changed.items():
            cells[int(field[1:]) - 1] = make(i)
        table.append(" ".join(str(cell) for cell in cells))
    return table


def read(lake: Lake, folder: Path, *rows: str, **options: str) -> Summary:
    path = folder / "log.swf"
    path.write_text("".join(f"{row}\n" for row in rows))
    return ingest(lake, [path], "c", options=options)


def jobs_of(lake: Lake) -> list[dict[str, Any]]:
    con = connect(Engine())
    rows = lake.read(con, JOBS).to_pylist()
    con.close()
    return sorted(rows, key=lambda row: int(row["job_id"]))


def view_of(lake: Lake) -> duckdb.DuckDBPyConnection:
    con = connect(Engine())
    con.execute(f"CREATE VIEW jobs AS {select_files(JOBS, lake.files(JOBS))}")
    return con
