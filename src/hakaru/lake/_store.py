"""The lake of a workspace: its Delta tables, who may write when, and what there is to read.

A write is an upsert on the table's key, committed whole or not at all; repeated, overlapping and
reordered ingests give the same table. Writers take turns on a lock that dies with its process; readers
see the last commit and are never blocked. A killed writer leaves at most files that no commit names.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import connect, select_files
from hakaru.errors import LakeError
from hakaru.lake import _remove
from hakaru.lake._conflicts import Conflicts
from hakaru.lake._log import File, Log, stamp
from hakaru.lake._merge import Upsert, compact, conflicts, merge
from hakaru.lake._missing import missing_shares, num_dropped
from hakaru.safety.files import Readers, make_folder, masked, open_lock, own_folder, refuse_link
from hakaru.schema import (
    CLUSTERS,
    INGESTS,
    JOBS,
    NODES,
    OPTION,
    REJECTS,
    RUNS,
    SAMPLES,
    TABLES,
    Table,
)
from hakaru.settings import Engine as EngineSettings
from hakaru.settings import load, not_overruled

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

T = TypeVar("T")
FOLDER = "lake"
STAGING = "_staging"
RETAIN_HOURS = 168
# Jobs first, that none is read without its facts; the ingest log last, so that a cluster whose removal
# was killed is known, and known as synthetic, until a rerun has ended it.
FORGETTING = (JOBS, SAMPLES, NODES, RUNS, REJECTS, CLUSTERS, INGESTS)


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
        self.mode_before: int | None = None  # of a lake that others could read until now
        self._known: dict[str, tuple[Any, list[Any]]] = {}

    @classmethod
    def create(cls, workspace: Path) -> Lake:
        lake = cls(workspace)
        with _clear_errors(workspace):
            lake._make_folder()
        return lake

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
        return [file.path for file in self._files(table) if file.may_hold(clusters)]

    def version(self) -> tuple[Any, ...]:
        """What changes with every commit to any table; told without reading a log."""
        return tuple(stamp(self.root / name) for name in TABLES)

    def span(self, table: Table) -> tuple[datetime, datetime] | None:
        """The first and last time in the table, a little outwards; None where a file does not say."""
        files, time = self._files(table), table.time
        if not files or any(time not in file.low or time not in file.high for file in files):
            return None
        return min(file.low[time] for file in files), max(file.high[time] for file in files)

    def read(self, con: DuckDBPyConnection, table: Table) -> pa.Table:
        return con.sql(select_files(table, self.files(table))).to_arrow_table()

    def clusters(self) -> list[str]:
        """Names of the clusters that something was ingested for, or that have jobs.

        An ingest that was killed may have committed its jobs and not yet its line in the log.
        """
        import pyarrow.parquet as pq

        names = {row["cluster"] for row in self._small(INGESTS)}
        for file in self._files(JOBS):
            if file.mixed:
                found = pq.ParquetFile(file.path).read(columns=["cluster"])["cluster"]
                names |= set(found.unique().to_pylist())
            else:
                names.add(file.low["cluster"])
        return sorted(names)

    def synthetic_clusters(self) -> set[str]:
        return {row["cluster"] for row in self._small(INGESTS) if row["synthetic"]}

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the sources' headers said, a cluster.

        A later source in the alphabet wins, and of one source the file that comes later in it; what an
        older version stored without a file gives way to all others, and all give way to an option.
        """
        facts: dict[str, dict[str, Any]] = {}
        rows = sorted(
            self._small(CLUSTERS),
            key=lambda row: (row["source"] == OPTION, row["source"] or "", row["file"] or ""),
        )
        for row in rows:
            name, said = row["cluster"], json.loads(row["facts"])
            facts[name] = not_overruled(facts.get(name, {}), said) | said
        return facts

    def spoken(self, cluster: str) -> dict[tuple[str, str], str]:
        """A cluster's facts as JSON, as they were said: by source and file."""
        return {
            (row["source"], row["file"]): row["facts"]
            for row in self._small(CLUSTERS)
            if row["cluster"] == cluster
        }

    def ingests(self) -> list[dict[str, Any]]:
        return sorted(self._small(INGESTS), key=lambda row: (row["started_at"], row["ingest_id"]))

    def missing(self) -> dict[str, float]:
        """The share of a cluster's rows that were not kept when its files were last ingested."""
        return missing_shares(self.ingests())

    def num_dropped(self, cluster: str) -> int:
        """How many rows are not kept because another row of the same input contradicts them."""
        return num_dropped(self.ingests(), cluster)

    def forget_command(self, cluster: str, rejects: str | None = None) -> str:
        """What a person types to remove a cluster, or the rejects of one of its files."""
        of_file = f" --rejects {shlex.quote(rejects)}" if rejects else ""
        return (
            f"hakaru lake forget --cluster {cluster}{of_file} "
            f"--workspace {shlex.quote(str(self.workspace))}"
        )

    def rows_of(self, cluster: str) -> dict[str, int]:
        """How many rows each table holds of a cluster; an error if none does."""
        with closing(connect(EngineSettings())) as con:
            return self._check_held(con, cluster)

    def status(self) -> list[TableStatus]:
        return [self._table_status(table) for table in TABLES.values()]

    # ---- writing

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder for what a writer spills; the next writer removes what a killed one left."""
        folder = self.root / STAGING / uuid.uuid4().hex
        with ExitStack() as in_use, masked(self._readers.umask):
            with _clear_errors(self.root), self._locked("_staging.lock"):
                self._remove_dead_staging()
                folder.mkdir(parents=True)
                lock = in_use.enter_context(open_lock(folder / "lock"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def upsert(
        self, con: DuckDBPyConnection, table: Table, rows: str, id_column: str | None = None
    ) -> Upsert:
        """Merge the relation `rows` of `con`, which has the table's columns, into the table.

        With an `id_column`, `num_moved` counts the new rows whose id stands there at another time.
        """
        with self._writing() as folder:
            return merge(con, self._log(table), rows, folder, id_column)

    def conflicts(
        self, con: DuckDBPyConnection, table: Table, rows: str
    ) -> tuple[Conflicts, Conflicts]:
        """Rows that contradict one another, and rows that contradict a stored one; stores nothing."""
        return conflicts(con, self._log(table), rows)

    def replace(
        self, con: DuckDBPyConnection, table: Table, rows: str, scope: str, by: Sequence[str]
    ) -> None:
        """Put `rows` in the place of all that is stored for the columns `by` of the relation `scope`."""
        with self._writing() as folder:
            _remove.replace(con, self._log(table), rows, scope, by, folder / "new")

    def forget(self, cluster: str) -> dict[str, int]:
        """Remove all that is stored of a cluster; the rows that went, a table."""
        with self._writing() as folder, closing(connect(EngineSettings())) as con:
            self._check_held(con, cluster)
            return {
                table.name: _remove.forget(con, self._log(table), cluster, folder / table.name)
                for table in FORGETTING
            }

    def forget_rejects(self, cluster: str, file: str) -> int:
        """Remove the rejects of a file whose rows were read from others since; how many they were."""
        with self._writing() as folder, closing(connect(EngineSettings())) as con:
            files = _remove.rejects_by_file(con, self._log(REJECTS), cluster)
            file = file if file in files else os.path.realpath(file)
            if file not in files:
                known = ", ".join(files) or "none"
                raise LakeError(
                    f"no rejects of {file!r} in {cluster!r}; files with rejects: {known}"
                )
            rows = [row for row in self.ingests() if row["cluster"] == cluster]
            for row in [row for row in rows if file in (row["inputs"] or [])][-1:]:
                _remove.take_off(con, self._log(INGESTS), row, files[file], folder / INGESTS.name)
            scope = f"(SELECT {quote(cluster)} AS cluster, {quote(file)} AS file)"
            none = f"({select_files(REJECTS, [])})"
            by = ("cluster", "file")
            _remove.replace(con, self._log(REJECTS), none, scope, by, folder / REJECTS.name)
            return files[file]

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

    def compact(
        self, retain_hours: int = RETAIN_HOURS, engine: EngineSettings | None = None
    ) -> None:
        """Join small files into few, ordered by time, and delete what no reader can need.

        Files are kept for `retain_hours` after they left the table, so that running queries end well.
        """
        with self._writing() as folder:
            con = connect(engine or EngineSettings(), spill_to=str(folder))
            try:
                for table in TABLES.values():
                    log = self._log(table)
                    if log.delta is not None:
                        compact(con, log, folder / table.name)
                        self._tidy(table, retain_hours)
            finally:
                con.close()

    # ---- inside

    @cached_property
    def _readers(self) -> Readers:
        return Readers(load(self.workspace).workspace.group)

    def _make_folder(self) -> None:
        """The lake's folder, for its readers only; what an older version left open is closed."""
        make_folder(self.workspace, self._readers)
        before = own_folder(self.root, self._readers)
        self.mode_before = before if self.mode_before is None else self.mode_before

    def _log(self, table: Table) -> Log:
        return Log.open(self.root / table.name, table)

    def _check_held(self, con: DuckDBPyConnection, cluster: str) -> dict[str, int]:
        counts = {t.name: _remove.count(con, self._log(t), cluster) for t in FORGETTING}
        if not any(counts.values()):
            known = ", ".join(self.clusters()) or "none"
            raise LakeError(
                f"{self.workspace} holds nothing of a cluster {cluster!r}; its clusters: {known}"
            )
        return counts

    def _tidy(self, table: Table, retain_hours: int) -> None:
        """Delete files that no commit has named for `retain_hours`, and shorten the log."""
        delta = self._log(table).delta
        assert delta is not None
        for path in (self.root / table.name).rglob("*"):
            refuse_link(path)  # Delta follows links, and would delete all that they lead to
        delta.vacuum(
            retention_hours=retain_hours,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
        )
        delta.update_incremental()
        delta.create_checkpoint()

    def _files(self, table: Table) -> list[File]:
        return self._latest(table.name, table, lambda: self._log(table).files())

    def _small(self, table: Table) -> list[dict[str, Any]]:
        """All rows of a table that is small by nature."""
        import pyarrow.parquet as pq

        def read() -> list[dict[str, Any]]:
            blank = dict.fromkeys(table.names)
            tables = [pq.ParquetFile(file.path).read() for file in self._files(table)]
            return [blank | row for rows in tables for row in rows.to_pylist()]

        return self._latest(f"{table.name} rows", table, read)

    def _latest(self, what: str, table: Table, read: Callable[[], list[T]]) -> list[T]:
        """What was read last, unless the table has changed since."""
        now = stamp(
            self.root / table.name
        )  # before reading: what is read may be newer, never older
        known = self._known.get(what)
        if known is None or now is None or known[0] != now:
            known = self._known[what] = (now, read())
        return known[1]

    def _table_status(self, table: Table) -> TableStatus:
        log = self._log(table)
        if log.delta is None:
            return TableStatus(table.name, 0, 0, 0, -1, None)
        files = log.named_files()
        history = log.delta.history(1)
        stamp = history[0].get("timestamp") if history else None
        return TableStatus(
            name=table.name,
            num_rows=sum(file.num_rows for file in files),
            num_files=len(files),
            num_bytes=sum(file.num_bytes for file in files),
            version=log.delta.version(),
            committed_at=datetime.fromtimestamp(stamp / 1000, UTC) if stamp else None,
        )

    @contextmanager
    def _writing(self) -> Iterator[Path]:
        """This writer's turn, and a folder on the lake's own disk for the files it makes."""
        modes = masked(self._readers.umask)
        with modes, _clear_errors(self.root), self._locked("_lock"), self.staging() as folder:
            yield folder

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        self._make_folder()
        with open_lock(self.root / name) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _remove_dead_staging(self) -> None:
        """Called under the staging lock, so that every folder in use has its own lock already."""
        refuse_link(self.root / STAGING)
        for folder in (self.root / STAGING).glob("*"):
            refuse_link(folder)
            with open_lock(folder / "lock") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """What the disk, Delta or DuckDB refuse, as one message that says what to do."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise LakeError(
            f"writing to {path} needs more memory than it may use: {_first_line(error)}\n"
            "Give it more with engine.memory in hakaru.toml."
        ) from None
    except (OSError, DeltaError, duckdb.IOException) as error:
        raise LakeError(
            f"{path} cannot be written: {_first_line(error)}\n{_advice(error)} "
            "The lake is as it was before."
        ) from None


def _first_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().splitlines()[0]


def _advice(error: BaseException) -> str:
    text = f"{error}".lower()
    if getattr(error, "errno", None) == errno.ENOSPC or "no space" in text:
        return "Make room on the disk and run it again."
    return "Check the folder's permissions, or choose another one with --workspace."
