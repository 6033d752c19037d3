"""The store: Delta tables in a workspace folder.

A write is an upsert on the table's key, committed whole or not at all. Which of two rows with one key is
kept depends on the rows alone (`Table.prefer`), so repeated, overlapping and reordered ingests
give the same table. Writers take turns on a lock that dies with its process; readers see the last
commit and are never blocked. DuckDB writes the Parquet files, Delta's log says which of them count.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row, select_files
from hakaru.errors import LakeError
from hakaru.schema import CLUSTERS, INGESTS, TABLES, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from duckdb import DuckDBPyConnection

FOLDER = "lake"
FILE_BYTES = "256MB"
RETAIN_HOURS = 168


@dataclass(frozen=True)
class Upsert:
    """What became of the rows of one write."""

    num_new: int = 0
    num_updated: int = 0
    num_unchanged: int = 0
    num_repeated: int = 0


@dataclass(frozen=True)
class TableStatus:
    name: str
    num_rows: int
    num_files: int
    num_bytes: int
    version: int
    committed_at: datetime | None


class Lake:
    """The Delta tables under `workspace/lake`."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.root = workspace / FOLDER

    @classmethod
    def create(cls, workspace: Path) -> Lake:
        try:
            (workspace / FOLDER).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LakeError(f"cannot make a workspace in {workspace}: {error.strerror}") from None
        return cls(workspace)

    @classmethod
    def open(cls, workspace: Path) -> Lake:
        if not (workspace / FOLDER).is_dir():
            raise LakeError(
                f"{workspace} is not a Hakaru workspace (it has no folder {FOLDER!r}). "
                f"Make one with: hakaru ingest FILE --cluster NAME --workspace {workspace}"
            )
        return cls(workspace)

    # ---- reading

    def files(self, table: Table, clusters: Sequence[str] = ()) -> list[str]:
        """The table's Parquet files; with `clusters`, those that may hold one of them."""
        delta = self._delta(table)
        return [file.path for file in _active(delta, table) if file.may_hold(clusters)]

    def read(self, con: DuckDBPyConnection, table: Table) -> pa.Table:
        return con.sql(select_files(table, self.files(table))).to_arrow_table()

    def clusters(self) -> list[str]:
        """Names of the clusters that something was ingested for."""
        rows = self._small(INGESTS)
        return sorted({row["cluster"] for row in rows})

    def synthetic_clusters(self) -> set[str]:
        return {row["cluster"] for row in self._small(INGESTS) if row["synthetic"]}

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the sources' headers said, a cluster; a later source in the alphabet wins."""
        facts: dict[str, dict[str, Any]] = {}
        for row in sorted(self._small(CLUSTERS), key=lambda row: str(row["source"])):
            facts.setdefault(row["cluster"], {}).update(json.loads(row["facts"]))
        return facts

    def ingests(self) -> list[dict[str, Any]]:
        return sorted(self._small(INGESTS), key=lambda row: row["started_at"])

    def status(self) -> list[TableStatus]:
        return [self._table_status(table) for table in TABLES.values()]

    # ---- writing

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder for what a writer spills; one left by a killed writer is removed later."""
        folder = self.root / "_staging" / uuid.uuid4().hex
        folder.mkdir(parents=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def upsert(self, con: DuckDBPyConnection, table: Table, rows: str) -> Upsert:
        """Merge the relation `rows` of `con`, which has the table's columns, into the table."""
        with self._writing():
            delta = self._delta(table, create=True)
            assert delta is not None
            return _merge(con, delta, table, rows)

    def put_rows(
        self, con: DuckDBPyConnection, table: Table, rows: Sequence[Mapping[str, Any]]
    ) -> Upsert:
        """Upsert a few rows that are at hand as dicts; a column that is left out is null."""
        import pyarrow as pa

        con.register("put_rows", pa.Table.from_pylist(list(rows), schema=table.arrow()))
        try:
            return self.upsert(con, table, "put_rows")
        finally:
            con.unregister("put_rows")

    def compact(self, retain_hours: int = RETAIN_HOURS) -> None:
        """Join small files into few, ordered by time, and delete what no reader can need.

        Files are kept for `retain_hours` after they left the table, so that running queries end well.
        """
        with self._writing():
            self._remove_dead_staging()
            for table in TABLES.values():
                delta = self._delta(table)
                if delta is None:
                    continue
                if len(delta.file_uris()) > 1:
                    delta.optimize.compact()
                delta.vacuum(
                    retention_hours=retain_hours,
                    dry_run=False,
                    enforce_retention_duration=False,
                    full=True,
                )
                delta.create_checkpoint()

    # ---- inside

    def _path(self, table: Table) -> Path:
        return self.root / table.name

    def _delta(self, table: Table, create: bool = False) -> DeltaTable | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        path = self._path(table)
        try:
            if (path / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(path)):
                return DeltaTable(str(path))
            if not create:
                return None
            return DeltaTable.create(str(path), schema=table.arrow(), name=table.name)
        except (DeltaError, OSError) as error:
            raise LakeError(f"{path} cannot be opened as a Delta table: {error}") from None

    def _small(self, table: Table) -> list[dict[str, Any]]:
        """All rows of a table that is small by nature."""
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = []
        for file in self.files(table):
            rows += pq.ParquetFile(file).read().to_pylist()
        return rows

    def _table_status(self, table: Table) -> TableStatus:
        delta = self._delta(table)
        if delta is None:
            return TableStatus(table.name, 0, 0, 0, -1, None)
        files = _active(delta, table)
        history = delta.history(1)
        stamp = history[0].get("timestamp") if history else None
        return TableStatus(
            name=table.name,
            num_rows=sum(file.num_rows for file in files),
            num_files=len(files),
            num_bytes=sum(file.num_bytes for file in files),
            version=delta.version(),
            committed_at=datetime.fromtimestamp(stamp / 1000, UTC) if stamp else None,
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / "_lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _remove_dead_staging(self) -> None:
        for folder in (self.root / "_staging").glob("*"):
            with open(folder / "lock", "a") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _File:
    """A Parquet file that counts, with what the log says of it."""

    path: str
    name: str
    num_rows: int
    num_bytes: int
    low: dict[str, Any]
    high: dict[str, Any]

    def may_hold(self, clusters: Sequence[str]) -> bool:
        if not clusters or "cluster" not in self.low:
            return True
        return any(self.low["cluster"] <= name <= self.high["cluster"] for name in clusters)

    def overlaps(self, column: str, low: Any, high: Any) -> bool:
        if self.low.get(column) is None or self.high.get(column) is None:
            return True
        return bool(self.low[column] <= high and low <= self.high[column])


def _active(delta: DeltaTable | None, table: Table) -> list[_File]:
    if delta is None:
        return []
    import pyarrow as pa

    actions = pa.table(delta.get_add_actions(flatten=True))
    root = Path(delta.table_uri.removeprefix("file://"))
    columns = [name for name in ("cluster", table.time) if name in table.names]
    files = []
    for row in actions.to_pylist():
        files.append(
            _File(
                path=str(root / row["path"]),
                name=row["path"],
                num_rows=row.get("num_records") or 0,
                num_bytes=row["size_bytes"],
                low={c: row[f"min.{c}"] for c in columns if row.get(f"min.{c}") is not None},
                high={c: row[f"max.{c}"] for c in columns if row.get(f"max.{c}") is not None},
            )
        )
    return files


def _merge(con: DuckDBPyConnection, delta: DeltaTable, table: Table, rows: str) -> Upsert:
    num_rows = _count(con, f"SELECT count(*) FROM {rows}")
    if num_rows == 0:
        return Upsert()
    incoming = _without_repeats(con, table, rows, num_rows)
    num_incoming = _count(con, f"SELECT count(*) FROM {incoming}") if incoming != rows else num_rows
    near = _files_near(con, delta, table, incoming)
    if not near:
        _commit(con, delta, table, f"SELECT {_columns(table)} FROM {incoming}", removed=[])
        return Upsert(num_new=num_incoming, num_repeated=num_rows - num_incoming)

    listed = ", ".join(quote(file.path) for file in near)
    con.execute(
        "CREATE OR REPLACE TEMP VIEW merge_stored AS SELECT *, filename AS _file "
        f"FROM read_parquet([{listed}], union_by_name = true, filename = true)"
    )
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_changed AS
        SELECT incoming.*, stored._file FROM {incoming} AS incoming
        LEFT JOIN merge_stored AS stored ON {_same_key(table, "incoming", "stored")}
        WHERE stored._file IS NULL OR {_rank(table, "incoming")} > {_rank(table, "stored")}
        """
    )
    num_new = _count(con, "SELECT count(*) FROM merge_changed WHERE _file IS NULL")
    num_changed = _count(con, "SELECT count(*) FROM merge_changed")
    if num_changed:
        touched = con.execute(
            "SELECT DISTINCT _file FROM merge_changed WHERE _file IS NOT NULL"
        ).fetchall()
        paths = {path for (path,) in touched}
        content = f"SELECT {_columns(table)} FROM merge_changed"
        if paths:
            kept = ", ".join(quote(path) for path in sorted(paths))
            content += (
                f" UNION ALL SELECT {_columns(table)} FROM read_parquet([{kept}], "
                "union_by_name = true) AS stored WHERE NOT EXISTS "
                f"(FROM merge_changed AS c WHERE {_same_key(table, 'c', 'stored')})"
            )
        _commit(con, delta, table, content, [file for file in near if file.path in paths])
    con.execute("DROP TABLE merge_changed")
    return Upsert(
        num_new=num_new,
        num_updated=num_changed - num_new,
        num_unchanged=num_incoming - num_changed,
        num_repeated=num_rows - num_incoming,
    )


def _without_repeats(con: DuckDBPyConnection, table: Table, rows: str, num_rows: int) -> str:
    """The relation itself, or the best row a key where keys repeat within it."""
    keys = ", ".join(f'"{name}"' for name in table.key)
    if _count(con, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {rows})") == num_rows:
        return rows
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE merge_incoming AS SELECT * FROM {rows} AS r QUALIFY "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {_rank(table, 'r')} DESC) = 1"
    )
    return "merge_incoming"


def _files_near(con: DuckDBPyConnection, delta: DeltaTable, table: Table, rows: str) -> list[_File]:
    """The files whose cluster and time ranges may hold one of the keys."""
    files = _active(delta, table)
    for column in ("cluster", table.time):
        if files and column in table.key:
            low, high = one_row(con, f'SELECT min("{column}"), max("{column}") FROM {rows}')
            if low is not None:
                files = [file for file in files if file.overlaps(column, low, high)]
    return files


def _commit(
    con: DuckDBPyConnection, delta: DeltaTable, table: Table, content: str, removed: list[_File]
) -> None:
    """Write `content` as Parquet beside the table's files, then swap files in one commit."""
    from deltalake.transaction import AddAction, RemoveAction

    root = Path(delta.table_uri.removeprefix("file://"))
    folder = f"part-{uuid.uuid4().hex}"
    con.execute(
        f"COPY ({content}) TO {quote(str(root / folder))} "
        f"(FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '{FILE_BYTES}')"
    )
    now = int(time.time() * 1000)
    paths = sorted((root / folder).glob("*.parquet"))
    for path in paths:
        _sync(path)
    added = [
        AddAction(
            path=f"{folder}/{path.name}",
            size=path.stat().st_size,
            partition_values={},
            modification_time=now,
            data_change=True,
            stats=json.dumps(_statistics(con, table, path)),
        )
        for path in paths
    ]
    gone = [RemoveAction(file.name, data_change=True, deletion_timestamp=now) for file in removed]
    delta.create_write_transaction([*added, *gone], mode="append", schema=table.arrow())


def _statistics(con: DuckDBPyConnection, table: Table, path: Path) -> dict[str, Any]:
    columns = [name for name in ("cluster", table.time) if name in table.names]
    picks = "".join(f', min("{c}"), max("{c}")' for c in columns)
    row = one_row(con, f"SELECT count(*){picks} FROM read_parquet({quote(str(path))})")
    low = {c: _stat(row[1 + 2 * i], up=False) for i, c in enumerate(columns)}
    high = {c: _stat(row[2 + 2 * i], up=True) for i, c in enumerate(columns)}
    return {
        "numRecords": row[0],
        "minValues": {c: v for c, v in low.items() if v is not None},
        "maxValues": {c: v for c, v in high.items() if v is not None},
        "nullCount": {},
    }


def _stat(value: Any, up: bool) -> Any:
    """Delta's statistics hold times to the millisecond: round outwards."""
    if not isinstance(value, datetime):
        return value
    micros = value.microsecond
    millis = -(-micros // 1000) if up else micros // 1000
    base = value.astimezone(UTC).replace(microsecond=0).timestamp() + millis / 1000
    return (
        datetime.fromtimestamp(base, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _rank(table: Table, alias: str) -> str:
    """A row's rank among rows with its key: `prefer`, then what it knows, then its text."""
    wanted = [
        f"coalesce(CAST({_qualified(expr, table, alias)} AS VARCHAR), '')" for expr in table.prefer
    ]
    known = " + ".join(f'CAST({alias}."{c}" IS NOT NULL AS INTEGER)' for c in table.names)
    text = ", ".join(f'CAST({alias}."{c}" AS VARCHAR)' for c in table.names)
    return f"row({', '.join([*wanted, known, f'concat_ws(chr(31), {text})'])})"


def _qualified(expression: str, table: Table, alias: str) -> str:
    words = expression.split(" ")
    return " ".join(f'{alias}."{w}"' if w in table.names else w for w in words)


def _same_key(table: Table, left: str, right: str) -> str:
    return " AND ".join(f'{left}."{name}" = {right}."{name}"' for name in table.key)


def _columns(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in table.names)


def _count(con: DuckDBPyConnection, sql: str) -> int:
    return int(one_row(con, sql)[0])


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
