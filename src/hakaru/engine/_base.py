"""What both engines can do, and how to get one by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from hakaru.errors import HakaruError
from hakaru.schema import Table
from hakaru.settings import Engine as EngineSettings

if TYPE_CHECKING:
    import pyarrow as pa

Value = str | float | int | bool | datetime


class Engine(Protocol):
    """Runs queries written in the shared dialect over Parquet files.

    In `define`, `{0}`, `{1}` … stand for the values, which are bound and never pasted.
    """

    name: str

    def relation(self, table: Table, files: Sequence[str], columns: Collection[str]) -> str:
        """The files' columns as something that a query can select from."""

    def scan(self, view: str, table: Table, files: Sequence[str]) -> None: ...

    def constants(self, view: str, rows: pa.Table) -> None: ...

    def define(self, view: str, sql: str, values: Sequence[Value] = ()) -> None: ...

    def query(self, sql: str) -> pa.Table: ...

    def interrupt(self) -> None:
        """Stop the query that another thread is waiting for."""

    def close(self) -> None: ...


def plain(table: pa.Table) -> pa.Table:
    """The same few Arrow types from either engine: strings, int64, double, bool, UTC times."""
    import pyarrow as pa

    def kind(field: pa.Field) -> pa.DataType:
        if pa.types.is_decimal(field.type):
            return pa.int64() if field.type.scale == 0 else pa.float64()
        if pa.types.is_integer(field.type):
            return pa.int64()
        if pa.types.is_floating(field.type):
            return pa.float64()
        if pa.types.is_timestamp(field.type):
            return pa.timestamp("us", tz=field.type.tz and "UTC")
        if pa.types.is_large_string(field.type) or pa.types.is_string_view(field.type):
            return pa.string()
        return field.type

    return table.cast(pa.schema([pa.field(field.name, kind(field)) for field in table.schema]))


def open_engine(name: str, settings: EngineSettings) -> Engine:
    if name == "duckdb":
        from hakaru.engine.duckdb import DuckDBEngine

        return DuckDBEngine(settings)
    if name == "spark":
        from hakaru.engine.spark import SparkEngine

        return SparkEngine(settings)
    raise HakaruError(f"there is no engine {name!r}; known: duckdb, spark")
