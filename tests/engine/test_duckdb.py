"""DuckDB as an engine: Spark's words, files old and new, bound values, spilling, plain Arrow types."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakaru.engine import open_engine
from hakaru.engine.duckdb import DuckDBEngine, connect, one_row, select_files
from hakaru.errors import EngineError, HakaruError, InterruptedQuery
from hakaru.schema import JOBS
from hakaru.settings import Engine
from tests.conftest import job, utc


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    engine = DuckDBEngine(Engine(threads=1))
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("percentile(x, 0.5)", 2.5),
        ("percentile(CASE WHEN x > 1 THEN x END, 0.5)", 3.0),
        ("max(unix_seconds(timestamp_seconds(1500000000.9)))", 1500000000),
        ("max(unix_seconds(timestamp_seconds(-0.5)))", -1),
        ("max(weekday(DATE '2018-01-01'))", 0),
        ("max(hour(from_utc_timestamp(timestamp_seconds(0), 'Asia/Tokyo')))", 9),
        ("max(hour(timestamp_seconds(0)))", 0),
        ("max(hour(from_utc_timestamp(timestamp_seconds(0), '+05:30')))", 5),
        ("max(minute(from_utc_timestamp(timestamp_seconds(0), '+05:45')))", 45),
        ("max(hour(from_utc_timestamp(timestamp_seconds(0), '-03:30')))", 20),
        ("max(datediff(DATE '2018-01-04', DATE '2018-01-01'))", 3),
        ("max(conv('ff', 16, 10))", "255"),
    ],
)
def test_speaks_sparks_words(engine: DuckDBEngine, expression: str, value: object) -> None:
    engine.constants("t", pa.table({"x": [1, 2, 3, 4]}))
    assert engine.query(f"SELECT {expression} AS v FROM t")["v"].to_pylist() == [value]


def test_nulls_sort_as_spark_sorts_them(engine: DuckDBEngine) -> None:
    engine.constants("t", pa.table({"x": [2, None, 1]}))
    assert engine.query("SELECT x FROM t ORDER BY x")["x"].to_pylist() == [None, 1, 2]
    assert engine.query("SELECT x FROM t ORDER BY x DESC")["x"].to_pylist() == [2, 1, None]


def test_times_are_utc_wherever_the_process_runs() -> None:
    code = (
        "from hakaru.engine.duckdb import connect, one_row; from hakaru.settings import Engine; "
        'print(one_row(connect(Engine()), "SELECT hour(to_timestamp(0))")[0])'
    )
    environment = os.environ | {"TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "0", done.stderr


def test_explodes_a_sequence(engine: DuckDBEngine) -> None:
    found = engine.query("SELECT explode(sequence(1, 3)) AS n")
    assert found["n"].to_pylist() == [1, 2, 3]


def test_values_are_bound_and_never_pasted(engine: DuckDBEngine) -> None:
    engine.constants("t", pa.table({"name": ["a", "'; DROP TABLE t; --", "{0}"], "n": [1, 2, 3]}))
    for n, value in ((2, "'; DROP TABLE t; --"), (3, "{0}")):
        engine.define("v", "SELECT n FROM t WHERE name = {0} AND n >= {1}", [value, n])
        assert engine.query("SELECT * FROM v")["n"].to_pylist() == [n]
    assert engine.query("SELECT count(*) AS n FROM t")["n"].to_pylist() == [3]


def test_two_views_keep_their_own_values(engine: DuckDBEngine) -> None:
    engine.constants("t", pa.table({"n": [1, 2, 3]}))
    engine.define("low", "SELECT n FROM t WHERE n < {0}", [2])
    engine.define("high", "SELECT n FROM t WHERE n > {0}", [2])
    assert engine.query("SELECT n FROM low UNION ALL SELECT n FROM high ORDER BY n")[
        "n"
    ].to_pylist() == [1, 3]


def test_scans_no_files_as_an_empty_table(engine: DuckDBEngine) -> None:
    engine.scan("jobs", JOBS, [])
    found = engine.query("SELECT * FROM jobs")
    assert found.schema.names == JOBS.names and found.num_rows == 0
    assert found.schema.field("submitted_at").type == pa.timestamp("us", tz="UTC")


def test_files_of_other_shapes_make_one_table(engine: DuckDBEngine, tmp_path: Path) -> None:
    """Another order of columns, a column that an older version did not have, one that is foreign."""
    whole = pa.Table.from_pylist([job(1, exit_code=3, nodes=["n"])], schema=JOBS.arrow())
    turned = pa.Table.from_pylist([job(2, exit_code=4)], schema=JOBS.arrow())
    older = pa.Table.from_pylist([job(3)], schema=JOBS.arrow()).drop_columns(["exit_code", "nodes"])
    shapes = {
        "whole": whole,
        "turned": turned.select(JOBS.names[::-1]),
        "older": older.append_column("colour", pa.array(["red"])),
    }
    for order in (["whole", "turned", "older"], ["older", "turned", "whole"]):
        for name, table in shapes.items():
            pq.write_table(table, tmp_path / f"{name}.parquet")
        engine.scan("jobs", JOBS, [str(tmp_path / f"{name}.parquet") for name in order])
        found = engine.query("SELECT * FROM jobs ORDER BY job_id").to_pylist()
        assert [row["exit_code"] for row in found] == [3, 4, None]
        assert [row["nodes"] for row in found] == [["n"], None, None]
        assert {row["submitted_at"] for row in found} == {utc("2018-01-01T00:00:00")}
        assert list(found[0]) == JOBS.names


def test_a_relation_knows_its_rows_and_lacks_no_column(
    engine: DuckDBEngine, tmp_path: Path
) -> None:
    """Files that have all the columns are planned by their statistics; an older one still gives null."""
    newer, older = str(tmp_path / "newer.parquet"), str(tmp_path / "older.parquet")
    rows = pa.Table.from_pylist([job(i, exit_code=3) for i in range(5)], schema=JOBS.arrow())
    pq.write_table(rows, newer)
    pq.write_table(rows.drop_columns(["exit_code"]), older)
    known = engine.relation(JOBS, [newer], ["job_id", "exit_code"])
    (plan,) = engine.connection.execute(f"EXPLAIN SELECT exit_code FROM {known}").fetchall()
    assert "5 rows" in plan[1]
    both = engine.relation(JOBS, [newer, older], ["job_id", "exit_code"])
    found = engine.query(f"SELECT count(*) AS num, count(exit_code) AS coded FROM {both}")
    assert found.to_pylist() == [{"num": 10, "coded": 5}]


def test_a_relation_of_no_files_has_no_rows(engine: DuckDBEngine) -> None:
    none = engine.relation(JOBS, [], ["job_id"])
    assert engine.query(f"SELECT job_id, run_s FROM {none}").num_rows == 0


def test_a_file_that_is_gone_is_named_by_the_query(engine: DuckDBEngine, tmp_path: Path) -> None:
    gone = engine.relation(JOBS, [str(tmp_path / "gone.parquet")], ["job_id"])
    with pytest.raises(EngineError, match=r"gone\.parquet"):
        engine.query(f"SELECT job_id FROM {gone}")


def test_a_query_that_is_stopped_says_so(engine: DuckDBEngine) -> None:
    told: list[BaseException] = []

    def ask() -> None:
        try:
            engine.query("SELECT count(*) FROM range(1000000000000) r(i) WHERE i % 7 = 3")
        except HakaruError as error:
            told.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    while waiting.is_alive():
        engine.interrupt()
        waiting.join(0.01)
    assert [type(error) for error in told] == [InterruptedQuery]
    assert engine.query("SELECT 1 AS one")["one"].to_pylist() == [1]


def test_gives_plain_arrow_types(engine: DuckDBEngine) -> None:
    found = engine.query(
        "SELECT CAST(1 AS TINYINT) AS a, sum(1) AS c, CAST(1.5 AS FLOAT) AS d, "
        "CAST(1.25 AS DECIMAL(9, 2)) AS e, 'x' AS f, TIMESTAMPTZ '2018-01-01 00:00:00+09' AS g"
    )
    kinds = [str(field.type) for field in found.schema]
    assert kinds == ["int64", "int64", "double", "double", "string", "timestamp[us, tz=UTC]"]
    assert found["g"].to_pylist() == [utc("2017-12-31T15:00:00")]


def test_spills_to_disk_instead_of_dying(tmp_path: Path) -> None:
    con = connect(Engine(memory="100MB", threads=1), spill_to=str(tmp_path))
    assert one_row(con, "SELECT current_setting('temp_directory')") == (str(tmp_path),)
    rows = one_row(
        con,
        "SELECT count(*), min(n) FROM (SELECT row_number() OVER (ORDER BY hash(i)) AS n, "
        "repeat('x', 40) || i AS text FROM range(3000000) r(i)) WHERE text <> ''",
    )
    con.close()
    assert rows == (3_000_000, 1)


def test_says_which_setting_gives_more_memory() -> None:
    engine = DuckDBEngine(Engine(memory="20MB", threads=1))
    with pytest.raises(HakaruError, match=r"engine\.memory in hakaru\.toml"):
        engine.query("SELECT list(repeat('x', 1000) || i) AS l FROM range(1000000) r(i)")
    engine.close()


def test_threads_and_memory_are_those_of_the_settings() -> None:
    con = connect(Engine(threads=1, memory="123MB"))
    found = one_row(con, "SELECT current_setting('threads'), current_setting('memory_limit')")
    con.close()
    assert found == (1, "117.3 MiB")


def test_nothing_is_left_open_after_one_row() -> None:
    con = connect(Engine())
    assert one_row(con, "SELECT 1, 2") == (1, 2)
    with pytest.raises(ValueError):
        one_row(con, "SELECT 1 WHERE false")
    assert one_row(con, f"SELECT count(*) FROM ({select_files(JOBS, [])})") == (0,)
    con.close()


def test_an_unknown_engine() -> None:
    with pytest.raises(HakaruError, match="no engine 'polars'; known: duckdb, spark"):
        open_engine("polars", Engine())


def test_threads_share_one_instance() -> None:
    """Each would have its own limit of memory else; a settings value of its own begins a new one."""
    settings = Engine(threads=1, memory="321MB")
    begin = threading.Barrier(4)

    def open_one(_: int) -> DuckDBEngine:
        begin.wait()
        return DuckDBEngine(settings)

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(open_one, range(4))
    first.connection.execute("CREATE OR REPLACE TABLE seen_by_all AS SELECT 1 AS one")
    for engine in others:
        assert engine.query("SELECT one FROM seen_by_all").to_pylist() == [{"one": 1}]
    first.connection.execute("DROP TABLE seen_by_all")
