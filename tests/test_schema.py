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
