"""The canonical tables: states and what they count as, types, and expressions over a table's columns."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from hakaru.schema import ENDED, FAILED, JOBS, LOST, OPEN, SAMPLES, STATES, TABLES, qualified


def test_a_state_is_open_or_ended_and_three_are_failures() -> None:
    assert set(OPEN) == {"pending", "running"}
    assert (
        *("completed", "failed", "timeout", "cancelled", "killed"),
        *("out_of_memory", "node_failed", "preempted"),
    ) == ENDED
    assert {*OPEN, *ENDED} == {*STATES} and len(STATES) == 10
    assert set(FAILED) == {"failed", "out_of_memory", "node_failed"}
    assert {*LOST, "completed"} == {*ENDED} and "completed" not in LOST


def test_a_job_is_final_unless_it_waits_or_runs() -> None:
    """One whose state is not known is final too: it will not be told of again."""
    states = ", ".join("(NULL)" if s is None else f"('{s}')" for s in (None, *STATES))
    found = duckdb.sql(
        f"SELECT state, {JOBS.final} FROM (VALUES {states}) AS jobs(state)"
    ).fetchall()
    assert {state for state, is_final in found if not is_final} == {"pending", "running"}
    assert all(is_final is not None for _, is_final in found)


def test_an_expression_takes_its_columns_and_not_its_words_from_a_table() -> None:
    """`queue` in quotes is a word, `state` a column."""
    written = qualified("CASE state WHEN 'queue' THEN 1 ELSE num_gpus END", JOBS, "s")
    assert written == """CASE s."state" WHEN 'queue' THEN 1 ELSE s."num_gpus" END"""


def test_columns_have_the_types_of_their_values() -> None:
    types = {field.name: field.type for field in JOBS.arrow()}
    assert types["num_gpus"] == pa.int64() and types["run_s"] == pa.float64()
    assert types["submitted_at"] == pa.timestamp("us", tz="UTC")
    assert types["nodes"] == pa.list_(pa.string())
    assert SAMPLES.arrow().field("gpu").type == pa.int64()


def test_units_stand_in_the_names_of_columns() -> None:
    """A column of seconds ends in `_s`, of MiB in `_mib`, of watts in `_w`, and a moment in `_at`."""
    endings = {"_s": "s", "_mib": "MiB", "_w": "W"}
    for table in TABLES.values():
        for column in table.columns:
            for ending, unit in endings.items():
                if column.name.endswith(ending):
                    assert column.unit == unit, (table.name, column.name)
            if column.name.endswith("_at"):
                assert (column.type, column.unit) == ("timestamp", "UTC"), column.name


def test_what_makes_a_row_one_of_its_kind_and_when_it_is() -> None:
    assert {table.name: (table.key, table.time) for table in TABLES.values()} == {
        "jobs": (("cluster", "job_id", "submitted_at"), "submitted_at"),
        "samples": (("cluster", "node", "gpu", "sampled_at"), "sampled_at"),
        "nodes": (("cluster", "node", "since"), "since"),
        "runs": (
            (
                "cluster",
                "run_id",
                "started_at",
                "benchmark",
                "parameters",
                "host",
                "device",
                "quantity",
            ),
            "started_at",
        ),
        "clusters": (("cluster", "source", "file"), ""),
        "ingests": (("ingest_id",), "started_at"),
        "rejects": (("cluster", "file", "line"), ""),
    }
    for table in TABLES.values():
        assert {*table.key, *([table.time] if table.time else [])} <= {*table.names}
        assert len({*table.names}) == len(table.names)


def test_of_two_rows_of_a_job_the_one_that_knows_its_end_is_kept() -> None:
    """A job that runs is ahead of one that waits, and of two that ended the later one counts."""
    rows = [
        ("'pending'", "NULL"),
        ("'running'", "NULL"),
        ("'cancelled'", "NULL"),
        ("NULL", "1"),
        ("'failed'", "2"),
        ("'completed'", "3"),
    ]
    numbered = [f"({n}, {state}, {end})" for n, (state, end) in enumerate(rows)]
    listed = ", ".join(reversed(numbered))
    order = ", ".join(f"{each} NULLS FIRST" for each in JOBS.prefer)
    found = duckdb.sql(
        f"SELECT n FROM (VALUES {listed}) AS jobs(n, state, ended_at) ORDER BY {order}"
    ).fetchall()
    assert [n for (n,) in found] == [0, 1, 2, 3, 4, 5]
    assert TABLES["clusters"].prefer == ("said_at",), "a file's last word stands"


def test_names_tell_the_types_of_columns() -> None:
    """Counts are whole numbers, quantities with a unit in their name are not, the rest are texts."""
    for table in TABLES.values():
        for column in table.columns:
            name = column.name
            if name.startswith("num_"):
                assert column.type == "bigint", name
            if name.endswith(("_s", "_mib", "_w")):
                assert column.type == "double", name
            if name.endswith("_id") or name in ("cluster", "user", "account", "queue", "state"):
                assert column.type == "string", name
    assert SAMPLES.column("utilization").type == "double"
    assert TABLES["ingests"].column("synthetic").type == "boolean"
    assert TABLES["ingests"].column("inputs").type == "list<string>"
    assert TABLES["nodes"].column("until").type == "timestamp"
    assert TABLES["rejects"].column("line").type == "bigint"
    assert (TABLES["runs"].column("median").type, TABLES["runs"].column("raw").type) == (
        "double",
        "string",
    )
    assert JOBS.column("exit_code").type == "bigint"
    assert TABLES["ingests"].arrow().field("synthetic").type == pa.bool_()
