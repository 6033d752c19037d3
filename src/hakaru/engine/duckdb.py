"""DuckDB in this process, over the lake's Parquet files."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.engine._base import Value, plain
from hakaru.engine.dialect import DUCKDB_MACROS, DUCKDB_TYPES, quote
from hakaru.errors import EngineError, HakaruError, InterruptedQuery
from hakaru.safety.files import spill_folder
from hakaru.schema import Table
from hakaru.settings import Engine as EngineSettings

if TYPE_CHECKING:
    import pyarrow as pa

# results are small, and a relation would bind every query twice
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")


def connect(settings: EngineSettings, spill_to: str | None = None) -> duckdb.DuckDBPyConnection:
    """A connection in UTC with the shared dialect, a memory limit, and a folder to spill to."""
    statements = [
        "SET GLOBAL TimeZone = 'UTC'",
        "SET enable_progress_bar = false",
        "SET GLOBAL parquet_metadata_cache = true",
        # it turns a share (a sum over a sum) into a join that scans the jobs twice
        "SET GLOBAL disabled_optimizers = 'window_self_join'",
        f"SET memory_limit = {quote(settings.memory)}",
        f"SET temp_directory = {quote(spill_to or str(spill_folder()))}",
        *([f"SET threads = {settings.threads}"] if settings.threads else []),
        *(f"CREATE MACRO {signature} AS ({body})" for signature, body in DUCKDB_MACROS.items()),
    ]
    con = duckdb.connect()
    con.execute("; ".join(statements))
    return con


def one_row(con: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The single row of a query, read to its end: DuckDB 2 refuses other work on an open result."""
    (row,) = con.execute(sql).fetchall()
    return tuple(row)


def explained(error: duckdb.Error) -> HakaruError:
    """What DuckDB refuses, as one message."""
    first = str(error).splitlines()[0]
    if isinstance(error, duckdb.OutOfMemoryException):
        return HakaruError(
            f"the query needs more memory than it may use: {error}\n"
            "Give it more with engine.memory in hakaru.toml, or narrow it with --since/--until."
        )
    if isinstance(error, duckdb.InterruptException):
        return InterruptedQuery("the query was stopped before it ended")
    if isinstance(error, duckdb.IOException):
        return EngineError(f"DuckDB could not read: {first}")
    return HakaruError(f"DuckDB could not answer: {first}")


class DuckDBEngine:
    """A session of the process' DuckDB: views and variables of its own, threads and memory shared."""

    name = "duckdb"

    def __init__(self, settings: EngineSettings) -> None:
        with _OPENING:
            self._con = _instance(settings, os.getpid()).cursor()

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """For what DuckDB alone does, such as writing files."""
        return self._con

    def relation(self, table: Table, files: Sequence[str], columns: Collection[str]) -> str:
        """Where every file has the columns, as plain Parquet: a query is then planned by its statistics."""
        if not files:
            return f"({select_files(table, files)})"
        if all(set(columns) <= self._columns_in(file) for file in files):
            return f"read_parquet([{', '.join(quote(file) for file in files)}])"
        return scan_files(table, files, columns)

    def scan(self, view: str, table: Table, files: Sequence[str]) -> None:
        self._con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {select_files(table, files)}")

    def constants(self, view: str, rows: pa.Table) -> None:
        self._con.register(f"{view}_rows", rows)
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE {view} AS SELECT * FROM {view}_rows")
        self._con.unregister(f"{view}_rows")

    def define(self, view: str, sql: str, values: Sequence[Value] = ()) -> None:
        names = [f"{view}_{i}" for i in range(len(values))]
        for name, value in zip(names, values, strict=True):
            self._con.execute(f"SET VARIABLE {name} = ?", [value])
        body = sql.format(*(f"getvariable('{name}')" for name in names)) if values else sql
        self._con.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {body}")

    def query(self, sql: str) -> pa.Table:
        try:
            return plain(self._con.execute(sql).to_arrow_table())
        except duckdb.Error as error:
            raise explained(error) from error

    def interrupt(self) -> None:
        """Stop the query that another thread is waiting for; it raises InterruptedQuery."""
        self._con.interrupt()

    def close(self) -> None:
        self._con.close()

    def _columns_in(self, file: str) -> frozenset[str]:
        """The columns of a file, which is never written again; of one that cannot be read, none."""
        if file not in _COLUMNS:
            try:
                found = self._con.execute(
                    f"SELECT name FROM parquet_schema({quote(file)})"
                ).fetchall()
            except duckdb.Error:  # the query will say what is wrong with it
                return frozenset()
            _COLUMNS[file] = frozenset(name for (name,) in found)
        return _COLUMNS[file]


_COLUMNS: dict[str, frozenset[str]] = {}

_OPENING = threading.Lock()  # the cache alone would let two threads open one each


@functools.cache
def _instance(settings: EngineSettings, process: int) -> duckdb.DuckDBPyConnection:
    """One DuckDB for a process and its settings: a new one takes as long as a query, and its own memory."""
    con = connect(settings)
    # Spark's order of nulls, so that a query's rows come in one order from both
    con.execute("SET GLOBAL default_null_order = 'nulls_first_on_asc_last_on_desc'")
    return con


def select_files(table: Table, files: Sequence[str]) -> str:
    """A query over a table's Parquet files, or over nothing with the same columns."""
    if files:
        columns = ", ".join(f'"{name}"' for name in table.names)
        return f"SELECT {columns} FROM {scan_files(table, files)}"
    columns = ", ".join(
        f'CAST(NULL AS {DUCKDB_TYPES[c.type]}) AS "{c.name}"' for c in table.columns
    )
    return f"SELECT {columns} WHERE false"


def scan_files(
    table: Table, files: Sequence[str], columns: Collection[str] = (), filename: bool = False
) -> str:
    """The Parquet files as a relation of all or some columns; one that an older file lacks is null."""
    listed = ", ".join(quote(file) for file in files)
    chosen = [c for c in table.columns if not columns or c.name in columns]
    names = ", ".join(f"'{c.name}'" for c in chosen)
    # no braces: in `define` they are the places of values
    kinds = ", ".join(
        f"struct_pack(name := '{c.name}', type := '{DUCKDB_TYPES[c.type]}', default_value := NULL)"
        for c in chosen
    )
    return f"read_parquet([{listed}], schema = MAP([{names}], [{kinds}]), filename = {filename})"
