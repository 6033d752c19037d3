"""A folder with a lake, a log and its mapping: what the tests of the table source write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS, REJECTS, Table
from hakaru.settings import Engine
from hakaru.sources.ingest import Summary, ingest

DATA = Path(__file__).resolve().parents[2] / "data"
MINIMAL = '[columns]\njob_id = "id"\nsubmitted_at = { column = "at", unit = "s" }\n'


class Site:
    """A folder with a lake, in which a test writes a log and its mapping, and reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = Lake.create(folder / "workspace")

    def read(self, log: str | bytes | Path, mapping: str | Path | None, **options: Any) -> Summary:
        path = log if isinstance(log, Path) else self.folder / "log.csv"
        if not isinstance(log, Path):
            path.write_bytes(log if isinstance(log, bytes) else log.encode())
        return self._ingest(path, mapping, options)

    def _ingest(self, path: Path, mapping: str | Path | None, options: dict[str, Any]) -> Summary:
        if isinstance(mapping, str):
            (self.folder / "mapping.toml").write_text(mapping)
            mapping = self.folder / "mapping.toml"
        options = {"mapping": mapping, **options}
        return ingest(self.lake, [path], "c", format="table", options=options)

    def jobs(self) -> list[dict[str, Any]]:
        return self._rows(JOBS)

    def rejects(self) -> list[tuple[int, str]]:
        return [(row["line"], row["reason"]) for row in self._rows(REJECTS)]

    def _rows(self, table: Table) -> list[dict[str, Any]]:
        con = connect(Engine())
        rows: list[dict[str, Any]] = self.lake.read(con, table).to_pylist()
        con.close()
        return sorted(rows, key=lambda row: (row.get("line", 0), row.get("job_id", "")))


def picked(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]
