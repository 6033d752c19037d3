"""Spark over the same Parquet files and the same query text; the only file that imports it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from hakaru.engine._base import Value, plain
from hakaru.errors import HakaruError, MissingExtraError
from hakaru.schema import Table, Type
from hakaru.settings import Engine as EngineSettings

if TYPE_CHECKING:
    import pyarrow as pa

SPARK_TYPES: dict[Type, str] = {
    "string": "STRING",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "list<string>": "ARRAY<STRING>",
}


class SparkEngine:
    name = "spark"

    def __init__(self, settings: EngineSettings) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtraError("Spark", "spark") from None
        try:
            self._spark: Any = (
                SparkSession.builder.master(settings.spark_master)
                .appName("hakaru")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.ansi.enabled", "true")
                .config("spark.sql.shuffle.partitions", "8")
                .config("spark.sql.execution.arrow.pyspark.enabled", "true")
                .config("spark.ui.enabled", "false")
                .config("spark.ui.showConsoleProgress", "false")
                .getOrCreate()
            )
        except Exception as error:
            raise HakaruError(
                f"Spark did not start on {settings.spark_master}: {error}\n"
                "It needs Java 17 or newer; the master is engine.spark_master in hakaru.toml."
            ) from None
        self._spark.sparkContext.setLogLevel("ERROR")
        self._scanned: dict[tuple[str, ...], str] = {}

    def relation(self, table: Table, files: Sequence[str], columns: Collection[str]) -> str:
        key = (table.name, *files)
        if key not in self._scanned:
            self._scanned[key] = f"{table.name}_stored_{len(self._scanned)}"
            self.scan(self._scanned[key], table, files)
        return self._scanned[key]

    def scan(self, view: str, table: Table, files: Sequence[str]) -> None:
        columns = ", ".join(f"`{c.name}` {SPARK_TYPES[c.type]}" for c in table.columns)
        frame = (
            self._spark.read.schema(columns).parquet(*files)
            if files
            else self._spark.createDataFrame([], columns)
        )
        frame.createOrReplaceTempView(view)

    def constants(self, view: str, rows: pa.Table) -> None:
        self._spark.createDataFrame(rows).createOrReplaceTempView(view)

    def define(self, view: str, sql: str, values: Sequence[Value] = ()) -> None:
        names = [f"value_{i}" for i in range(len(values))]
        body = sql.format(*(f":{name}" for name in names)) if values else sql
        bound = dict(zip(names, values, strict=True))
        self._spark.sql(body, args=bound).createOrReplaceTempView(view)

    def query(self, sql: str) -> pa.Table:
        from pyspark.errors import PySparkException

        try:
            return plain(self._spark.sql(sql).toArrow())
        except PySparkException as error:
            raise HakaruError(f"Spark could not answer: {str(error).splitlines()[0]}") from error

    def interrupt(self) -> None:
        self._spark.sparkContext.cancelAllJobs()

    def close(self) -> None:
        self._spark.stop()
