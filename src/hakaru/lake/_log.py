"""One table's Delta log: which Parquet files count, what it knows of each, and commits that swap them.

Delta keeps the log; the files are written by DuckDB, complete and synced before a commit names them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.errors import LakeError
from hakaru.schema import Table

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from duckdb import DuckDBPyConnection

FILE_BYTES = 16_000_000  # a million jobs or more; one changed row writes its file anew
# delta-rs decodes `%20` in a local path as if it were a URL, and takes a backslash for a slash
UNFIT_PATH = re.compile(r"%[0-9A-Fa-f]{2}|\\")


@dataclass(frozen=True)
class File:
    """A Parquet file that counts, with what the log says of it."""

    path: str
    name: str
    num_rows: int
    num_bytes: int
    low: dict[str, Any]
    high: dict[str, Any]

    def may_hold(self, clusters: Sequence[str]) -> bool:
        if not clusters or "cluster" not in self.low or "cluster" not in self.high:
            return True
        return any(self.low["cluster"] <= name <= self.high["cluster"] for name in clusters)

    def overlaps(self, column: str, low: Any, high: Any) -> bool:
        if self.low.get(column) is None or self.high.get(column) is None:
            return True
        return bool(self.low[column] <= high and low <= self.high[column])

    @property
    def mixed(self) -> bool:
        """Whether it may hold more than one cluster."""
        return self.low.get("cluster") is None or self.low["cluster"] != self.high.get("cluster")


@dataclass(frozen=True)
class Written:
    """A Parquet file in a staging folder that no commit names yet."""

    path: Path
    num_bytes: int
    statistics: dict[str, Any]


@dataclass(frozen=True)
class Log:
    """The log as it stood when it was opened; `delta` is None where the table does not exist yet."""

    root: Path
    table: Table
    delta: DeltaTable | None

    @classmethod
    def open(cls, root: Path, table: Table) -> Log:
        from deltalake import DeltaTable

        root = root.absolute()
        if root.is_symlink():
            raise LakeError(
                f"{root} is a link; a table is read and written in the lake's own folder only. "
                "Move the folder here, or link the whole lake instead."
            )
        if UNFIT_PATH.search(str(root)):
            raise LakeError(
                f"{root} cannot hold a lake: its path has a backslash or reads like an escaped URL "
                "(%20). Choose another folder with --workspace."
            )
        try:
            exists = (root / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(root))
            return cls(root, table, DeltaTable(str(root)) if exists else None)
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise LakeError(
                f"the log of the table {table.name!r} in {root / '_delta_log'} cannot be read: {first}\n"
                "Restore the folder from a backup, or move it away and ingest the logs again."
            ) from None

    def files(self) -> list[File]:
        """The files that count, each there and as long as the log says."""
        files = self.named_files()
        for file in files:
            self._check(file)
        return files

    def _check(self, file: File) -> None:
        try:
            size = Path(file.path).stat().st_size
        except FileNotFoundError:
            problem = "is missing"
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
        else:
            if size == file.num_bytes:
                return
            problem = f"is damaged: it has {size:,} bytes, and {file.num_bytes:,} were written"
        whose = "NAME" if file.mixed else file.low["cluster"]
        raise LakeError(
            f"{file.path}, a file of the table {self.table.name!r}, {problem}.\n"
            "Restore it from a backup, or remove its cluster and ingest its logs again: "
            f"hakaru lake forget --cluster {whose} --workspace {shlex.quote(str(self.root.parents[1]))}"
        )

    def named_files(self) -> list[File]:
        """The files that count, by what the log says; whether they are there is not looked at."""
        if self.delta is None:
            return []
        import pyarrow as pa

        columns = _bounded(self.table)
        rows = pa.table(self.delta.get_add_actions(flatten=True)).to_pylist()
        return [
            File(
                path=self._inside(row["path"]),
                name=row["path"],
                num_rows=row.get("num_records") or 0,
                num_bytes=row["size_bytes"],
                low={c: row[f"min.{c}"] for c in columns if row.get(f"min.{c}") is not None},
                high={c: row[f"max.{c}"] for c in columns if row.get(f"max.{c}") is not None},
            )
            for row in rows
        ]

    def _inside(self, name: str) -> str:
        """The path of a file that the log names, which may lead nowhere but into the table's folder."""
        path = self.root / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise LakeError(
                f"the log of the table {self.table.name!r} in {self.root / '_delta_log'} names the file "
                f"{name!r}, which is not in the table's folder and is not read.\n"
                "Restore the folder from a backup, or move it away and ingest the logs again."
            )
        return str(path)

    def commit(
        self, written: Sequence[Written], removed: Sequence[File], data_change: bool = True
    ) -> None:
        """Move the files in, then name them (and no longer the removed ones) in one commit."""
        from deltalake.transaction import RemoveAction, create_table_with_add_actions

        now = int(time.time() * 1000)
        added = self._move_in(written, now, data_change)
        schema = _delta_schema(self.table)
        if self.delta is None:
            create_table_with_add_actions(str(self.root), schema, added, name=self.table.name)
        else:
            self._add_columns()
            gone = [RemoveAction(file.name, data_change, now) for file in removed]
            self.delta.create_write_transaction([*added, *gone], mode="append", schema=schema)
        self._sync_log()

    def check_columns(self) -> None:
        """A newer version's columns would be lost where a file is written anew."""
        known = {field.name for field in self.delta.schema().fields} if self.delta else set()
        foreign = sorted(known - set(self.table.names))
        if foreign:
            raise LakeError(
                f"{self.root} has columns that this version does not know ({', '.join(foreign)}): it was "
                "written by a newer one. Upgrade with: pip install --upgrade hakaru"
            )

    def _move_in(self, written: Sequence[Written], now: int, data_change: bool) -> list[Any]:
        from deltalake.transaction import AddAction

        self.root.mkdir(parents=True, exist_ok=True)
        actions = []
        for file in written:
            sync(file.path)
            name = f"part-{uuid.uuid4().hex}.parquet"
            file.path.rename(self.root / name)
            stats = json.dumps(file.statistics)
            actions.append(AddAction(name, file.num_bytes, {}, now, data_change, stats))
        sync(self.root)
        sync(self.root.parent)
        return actions

    def _add_columns(self) -> None:
        """A table that an older version wrote learns the columns that came since."""
        assert self.delta is not None
        known = {field.name for field in self.delta.schema().fields}
        fresh = [f for f in _delta_schema(self.table).fields if f.name not in known]
        if fresh:
            self.delta.alter.add_columns(fresh)

    def _sync_log(self) -> None:
        folder = self.root / "_delta_log"
        sync(max(folder.glob("*.json")))
        sync(folder)


def write_parquet(
    con: DuckDBPyConnection, table: Table, content: str, folder: Path
) -> list[Written]:
    """The query's rows as Parquet files in a folder that is made for them."""
    folder.parent.mkdir(exist_ok=True)
    files = con.execute(
        f"COPY ({content}) TO {quote(str(folder))} "
        f"(FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES {FILE_BYTES}, RETURN_STATS)"
    ).fetchall()
    return [
        Written(Path(name), size, _statistics(table, num_rows, columns))
        for name, num_rows, size, _, columns, *_ in files
        if num_rows  # of no rows at all DuckDB makes a file too
    ]


def stamp(root: Path) -> tuple[str, int, int] | None:
    """What changes with each commit, told without reading the log; None where there is no table."""
    try:
        newest = max((root / "_delta_log").glob("*.json"))
        found = newest.stat()
    except (FileNotFoundError, ValueError):
        return None
    return newest.name, found.st_mtime_ns, found.st_ino


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _bounded(table: Table) -> list[str]:
    """The columns whose least and greatest values the log keeps, to pass over files by."""
    return [name for name in ("cluster", table.time) if name in table.names]


def _statistics(table: Table, num_rows: int, columns: dict[str, dict[str, str]]) -> dict[str, Any]:
    low, high = {}, {}
    for name in _bounded(table):
        found = columns.get(f'"{name}"', {})
        exact = found.get("min_is_exact") == found.get("max_is_exact") == "true"
        if exact and found.get("null_count") == "0":
            is_time = table.column(name).type == "timestamp"
            low[name] = _millis(found["min"], up=False) if is_time else found["min"]
            high[name] = _millis(found["max"], up=True) if is_time else found["max"]
    return {"numRecords": num_rows, "minValues": low, "maxValues": high, "nullCount": {}}


def _millis(text: str, up: bool) -> str:
    """Delta's statistics hold times to the millisecond: round outwards."""
    moment = datetime.fromisoformat(text).astimezone(UTC)
    beyond = timedelta(microseconds=moment.microsecond % 1000)
    if beyond:
        moment += (timedelta(milliseconds=1) if up else timedelta(0)) - beyond
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _delta_schema(table: Table) -> Any:
    from deltalake import Schema

    return Schema.from_arrow(table.arrow())
