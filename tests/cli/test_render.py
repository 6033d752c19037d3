"""A result written by hand in each format: numbers, notes and what is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hakaru.analyses import Selection
from hakaru.cli._output import choose_format
from hakaru.cli._render import (
    cell,
    notes,
    result_lines,
    to_csv,
    to_json,
    to_markdown,
    unit_of,
    write_parquet,
    write_result,
)
from hakaru.cli._table import wrapped
from hakaru.errors import HakaruError
from tests.figures._result import result

TABLE: dict[str, list[Any]] = {
    "state": ["completed", "failed", "a|b"],
    "num_jobs": [12345, 6, 0],
    "mean_h": [1.5, None, float("nan")],
    "share": [0.98765, 0.00012, 0.0],
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("num_jobs", 1234567, "1,234,567"),
        ("share", 0.12345, "12.35%"),
        ("wait_share", 1.0, "100.00%"),
        ("mean_h", 1234.5678, "1,234.568"),
        ("mean_h", -0.5, "-0.500"),
        ("mean_h", float("inf"), "–"),
        ("is_working", False, "no"),
        ("is_working", True, "yes"),
        ("since_at", datetime(2018, 3, 4, 5, 6, 7, tzinfo=UTC), "2018-03-04 05:06+00:00"),
        ("queue", None, "–"),
        ("queue", "normal", "normal"),
        ("queue", "a\nb\x1b", "a\\u000ab\\u001b"),
        ("median_share", 0.0, "0.00%"),
        ("num_jobs", 0, "0"),
    ],
)
def test_cells(name: str, value: Any, text: str) -> None:
    assert cell(name, value) == text


def test_notes_count_who_is_left_out() -> None:
    made = result(
        "states", TABLE, {"that ran": 1200, "with a user": 0, "of c": 34}, num_selected=5000
    )
    assert notes(made) == [
        "c: 3,766 of 5,000 jobs",
        "  left out 1,200: only jobs that ran",
        "  left out 34: only jobs of c",
    ]
    assert (
        notes(result("states", TABLE, synthetic=True))[0] == "c (SYNTHETIC data): 100 of 100 jobs"
    )


def test_only_the_synthetic_clusters_are_marked_and_a_pe_is_named() -> None:
    table: dict[str, list[Any]] = {"cluster": ["c", "d"], "pe_hours": [1.0, 2.0], "max_pes": [1, 2]}
    made = replace(
        result("queues", table, {"with several GPUs on one node": 1}),
        selection=Selection(clusters=("c", "d", "e"), by="cluster"),
        synthetic_clusters=("d",),
        units={"c": "gpu", "d": "cpu", "e": "gpu"},
    )
    assert notes(made) == [
        "c, d (SYNTHETIC data), e: 99 of 100 jobs",
        "  left out 1: only jobs with several GPUs on one node",
        "  pe is a GPU in c, e and a processor in d: pe_hours, max_pes",
    ]
    document = json.loads(to_json(made))
    assert document["synthetic_clusters"] == ["d"] and document["units"]["d"] == "cpu"
    assert "  pe is a" not in "\n".join(notes(replace(made, table=made.table.select(["cluster"]))))
    processors = replace(made, units={"c": "cpu"})
    assert notes(processors)[1:] == [
        "  left out 1: only jobs with several processors on one node",
        "  pe is a processor: pe_hours, max_pes",
    ]


def test_a_title_names_the_unit() -> None:
    table: dict[str, list[Any]] = {"num_pes": [2], "num_jobs": [1]}
    made = result("gpus-single-node", table)
    gpus, processors = (replace(made, units={"c": unit}) for unit in ("gpu", "cpu"))
    assert next(result_lines(gpus, 80))[0] == "GPUs of single-node jobs"
    assert next(result_lines(processors, 80))[0] == "Processors of single-node jobs"
    assert to_markdown(processors).startswith("### Processors of single-node jobs\n")


def test_notes_on_an_empty_answer_say_why() -> None:
    empty: dict[str, list[Any]] = {"state": []}
    none_selected, none_used, no_rows = (
        notes(result("states", empty, left, num_selected=num))
        for left, num in (({}, 0), ({"that ran": 7}, 7), ({"that ran": 3}, 7))
    )
    assert none_selected == ["no job of c is selected"]
    one = notes(result("states", empty, {"that ran": 1}, num_selected=1))
    assert one[0] == "no jobs left: c: 0 of 1 job"
    assert none_used == ["no jobs left: c: 0 of 7 jobs", "  left out 7: only jobs that ran"]
    assert no_rows[0] == "c: 4 of 7 jobs" and "empty" in no_rows[1]


def test_a_table_s_lines() -> None:
    lines = [text for text, _ in result_lines(result("states", TABLE), 200, ["more"])]
    assert lines[2:] == [
        "state      num_jobs  mean_h   share",
        "───────────────────────────────────",
        "completed    12,345   1.500  98.77%",
        "failed            6       –   0.01%",
        "a|b               0       –   0.00%",
        "",
        "c: 100 of 100 jobs",
        "more",
    ]


def test_json_holds_the_numbers_as_they_are() -> None:
    made = result("states", TABLE, {"that ran": 40}, params={"top": 3}, synthetic=True)
    made = replace(made, missing={"c": 0.25}, units={"c": "gpu"})
    document = json.loads(to_json(made, ["  a remark"]))
    rows = document.pop("rows")
    assert document == {
        "analysis": "states", "title": "How jobs ended", "reproduces": "AAIC Fig. 3",
        "clusters": ["c"], "synthetic": True, "synthetic_clusters": ["c"], "units": {"c": "gpu"},
        "params": {"top": 3}, "num_selected": 100, "num_used": 60, "missing": {"c": 0.25},
        "left_out": [{"only_jobs": "that ran", "num_jobs": 40}], "remarks": ["a remark"],
    }  # fmt: skip
    assert rows[0] == {"state": "completed", "num_jobs": 12345, "mean_h": 1.5, "share": 0.98765}
    assert rows[2]["mean_h"] is None
    at = datetime(2018, 3, 4, 5, 6, 7, tzinfo=UTC)
    dated = json.loads(to_json(result("load", {"since_at": [at], "num_jobs": [1]})))
    assert dated["rows"][0]["since_at"] == "2018-03-04T05:06:07+00:00"
    assert dated["synthetic"] is False and dated["remarks"] == []


def test_a_name_that_reads_as_a_formula_is_marked_in_csv_only() -> None:
    made = result("states", {"state": ["=1+1", "-5", "ok"], "num_jobs": [-1, 2, 3]})
    assert to_csv(made).splitlines()[1:] == ['"\'=1+1",-1', '"-5",2', '"ok",3']
    assert json.loads(to_json(made))["rows"][0] == {"state": "=1+1", "num_jobs": -1}


@pytest.mark.parametrize(
    ("units", "unit"),
    [({}, "gpu"), ({"c": "cpu"}, "cpu"), ({"c": "cpu", "d": "gpu"}, "gpu"), ({"c": "gpu"}, "gpu")],
)
def test_the_unit_is_processors_only_where_all_clusters_count_them(
    units: dict[str, Any], unit: str
) -> None:
    assert unit_of(replace(result("states", TABLE), units=units)) == unit


def test_a_table_in_a_file_is_whole_and_has_no_trailing_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    wide: dict[str, list[Any]] = {"state": ["x"], **{f"num_{n}": [123456] for n in range(9)}}
    write_result(result("states", wide), "table", tmp_path / "t.txt", ["and this"])
    lines = (tmp_path / "t.txt").read_text().splitlines()
    assert lines[2].split() == [*wide] and lines[-1] == "and this"
    assert not any(line.endswith(" ") for line in lines)
    assert capsys.readouterr() == ("", "")


def test_notes_are_indented_under_what_they_belong_to() -> None:
    made = result("states", {"state": ["x"]})
    lines = [text for text, _ in result_lines(made, 24, ["  one two three four five", "more"])]
    assert lines[-4:] == ["c: 100 of 100 jobs", "  one two three four", "    five", "more"]


def test_markdown_escapes_its_bars_and_counts_the_rows_left_off() -> None:
    text = to_markdown(result("states", TABLE), max_rows=2, where=" --by user")
    assert text.splitlines()[2:6] == [
        "| state | num_jobs | mean_h | share |",
        "|---|---|---|---|",
        "| completed | 12,345 | 1.500 | 98.77% |",
        "| failed | 6 | – | 0.01% |",
    ]
    assert "1 more row: `hakaru show states --by user`" in text
    whole = to_markdown(result("states", TABLE))
    assert "| a\\|b | 0 | – | 0.00% |" in whole and "more row" not in whole


def test_parquet_carries_its_notes(tmp_path: Path) -> None:
    made = result("states", TABLE, {"that ran": 40}, synthetic=True)
    write_parquet(made, tmp_path / "x.parquet", ["and this"])
    stored = pq.read_schema(tmp_path / "x.parquet").metadata
    assert stored[b"hakaru.notes"].decode().splitlines() == [
        "c (SYNTHETIC data): 60 of 100 jobs",
        "  left out 40: only jobs that ran",
        "and this",
    ]
    assert stored[b"hakaru.synthetic"] == b"true" and stored[b"hakaru.clusters"] == b"c"
    assert pq.read_table(tmp_path / "x.parquet")["num_jobs"].to_pylist() == [12345, 6, 0]


def test_csv_goes_to_the_file_and_its_notes_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = result(
        "states", {"state": ["completed", None], "num_jobs": [12345, 6]}, {"that ran": 40}
    )
    write_result(made, "csv", tmp_path / "x.csv", ["and this"])
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert lines == ['"state","num_jobs"', '"completed",12345', ",6"]
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "c: 60 of 100 jobs",
        "  left out 40: only jobs that ran",
        "and this",
    ]


@pytest.mark.parametrize(
    ("format", "name", "chosen"),
    [
        (None, None, "table"),
        ("csv", None, "csv"),
        (None, "a.JSON", "json"),
        (None, "a.txt", "table"),
        ("csv", "a.csv", "csv"),
        ("csv", "a.dat", "csv"),
    ],
)
def test_the_format_is_the_option_s_or_the_ending_s(
    format: str | None, name: str | None, chosen: str
) -> None:
    known = ("table", "csv", "json")
    assert choose_format(format, Path(name) if name else None, known) == chosen


@pytest.mark.parametrize(("format", "name"), [("csv", "a.json"), (None, "a.md"), (None, "a")])
def test_an_ending_that_says_another_format_is_refused(format: str | None, name: str) -> None:
    with pytest.raises(HakaruError, match=name):
        choose_format(format, Path(name), ("table", "csv", "json"))


def test_a_wrapped_sentence_keeps_number_and_unit_together() -> None:
    assert wrapped("jobs wait for 12 h and 5 % of them longer", 17) == [
        "jobs wait for",
        "  12 h and 5 % of",
        "  them longer",
    ]
    assert wrapped("", 10) == [""]
