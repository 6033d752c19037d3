"""The documented rules for jobs that were resized and jobs that never started."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.sacct._text import DONE, FIELDS, NEVER_STARTED, line, one, read_lines

# DONE is submitted at 00:00:00 UTC, starts at 00:00:10 and ends at 01:00:10 of 2018-01-01
END = DONE["End"]
LATER = {"Submit": END, "Eligible": END, "Start": DONE["Start"]}


def times(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["started_at"], row["ended_at"], row["wait_s"], row["run_s"]


def test_a_job_that_was_resized_twice_has_three_parts(tmp_path: Path) -> None:
    second = {**LATER, "State": "RESIZING", "End": "1514768500", "ElapsedRaw": "3690"}
    third = {**LATER, "Submit": "1514768500", "End": "1514768600", "ElapsedRaw": "3790"}
    rows = read_lines(tmp_path, line(State="RESIZING"), line(**second), line(**third))
    assert [row["state"] for row in rows] == ["completed"] * 3
    assert [row["_reason"] for row in rows] == [None] * 3
    assert [times(row) for row in rows] == [
        (utc("2018-01-01T00:00:10"), utc("2018-01-01T01:00:10"), 10.0, 3600.0),
        (utc("2018-01-01T01:00:10"), utc("2018-01-01T01:01:40"), None, 90.0),
        (utc("2018-01-01T01:01:40"), utc("2018-01-01T01:03:20"), None, 100.0),
    ]


def test_the_second_part_may_still_run(tmp_path: Path) -> None:
    second = line(**LATER, State="RUNNING", End="Unknown", ElapsedRaw="3700")
    rows = read_lines(tmp_path, line(State="RESIZING"), second)
    assert rows[1]["state"] == "running"
    assert times(rows[1]) == (utc("2018-01-01T01:00:10"), None, None, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"State": "NODE_FAIL"}, {}),
        ({"State": "RESIZING", "JobID": "8"}, {}),
        ({"State": "RESIZING"}, {"Submit": "1514768411", "Eligible": "1514768411"}),
    ],
    ids=["not resized", "another job", "another moment"],
)
def test_only_what_a_resize_left_behind_goes_on(
    lake: Lake, tmp_path: Path, first: dict[str, str], second: dict[str, str]
) -> None:
    """Any other job that starts before its submission is a fault of its row."""
    path = tmp_path / "sacct.txt"
    later = {**LATER, "End": "1514768500", "ElapsedRaw": "3690", **second}
    path.write_text("\n".join(["|".join(FIELDS), line(**first), line(**later)]) + "\n")
    summary = ingest(lake, [path], "c")
    assert summary.first_rejects[0][1:] == (3, "it starts before it is submitted")
    assert summary.num_rejected == 1


def test_what_waits_after_a_resize_is_a_job_with_its_own_wait(tmp_path: Path) -> None:
    again = {"Submit": END, "Eligible": END, "Start": "1514768420", "End": "1514768500"}
    rows = read_lines(tmp_path, line(State="RESIZING"), line(**again, ElapsedRaw="80"))
    assert times(rows[1])[2:] == (10.0, 80.0)


# ---- never started


FATES = ["CANCELLED by 61001", "FAILED", "TIMEOUT", "NODE_FAIL", "DEADLINE", "REVOKED"]


@pytest.mark.parametrize("state", FATES)
def test_an_end_without_nodes_is_an_end_without_a_start(tmp_path: Path, state: str) -> None:
    row = one(tmp_path, State=state, **NEVER_STARTED)
    assert times(row) == (None, utc("2018-01-01T01:00:10"), None, None)


@pytest.mark.parametrize(
    ("column", "never", "did"),
    [
        ("NodeList", "None assigned", "gpu01"),
        ("AllocNodes", "0", "1"),
        ("AllocTRES", "", "cpu=1,node=1"),
    ],
)
def test_any_of_three_columns_shows_it(tmp_path: Path, column: str, never: str, did: str) -> None:
    fields = ("JobID", "State", "Submit", "Start", "End", column)
    rows = [f"{i}|CANCELLED|100|110|200|{value}" for i, value in enumerate((never, did))]
    found = read_lines(tmp_path, *rows, fields=fields)
    assert [(row["wait_s"], row["run_s"]) for row in found] == [(None, None), (10.0, 90.0)]
    assert [row["started_at"] is None for row in found] == [True, False]


def test_the_list_of_nodes_decides_before_the_others(tmp_path: Path) -> None:
    fields = ("JobID", "State", "Submit", "Start", "End", "AllocNodes", "AllocTRES", "NodeList")
    rows = ("7|FAILED|100|110|200|1|cpu=1|None assigned", "8|FAILED|100|110|200|0||gpu01")
    found = read_lines(tmp_path, *rows, fields=fields)
    assert [row["wait_s"] for row in found] == [None, 10.0]


def test_without_those_columns_the_start_is_believed(tmp_path: Path) -> None:
    fields = ("JobID", "State", "Submit", "Start", "End")
    (row,) = read_lines(tmp_path, "7|CANCELLED|100|110|200", fields=fields)
    assert (row["wait_s"], row["run_s"]) == (10.0, 90.0)


def test_a_pending_job_has_no_start_though_one_is_planned(tmp_path: Path) -> None:
    row = one(tmp_path, State="PENDING", Start="1514764900", End="Unknown")
    assert times(row) == (None, None, None, None)


def test_a_running_job_has_started_whatever_its_nodes(tmp_path: Path) -> None:
    row = one(tmp_path, State="RUNNING", End="Unknown", NodeList="None assigned")
    assert (row["started_at"], row["wait_s"]) == (utc("2018-01-01T00:00:10"), 10.0)


def test_commas_of_tres_in_an_export_with_commas_are_named(lake: Lake, tmp_path: Path) -> None:
    """sacct quotes nothing: `cpu=4,mem=8G` is two cells, and Submit is read from another one."""
    path = tmp_path / "jobs.csv"
    path.write_text(f"{','.join(FIELDS)}\n{','.join(DONE.values())}\n")
    reason = "commas inside AllocTRES or ReqTRES split the row; write it again with --delimiter='|'"
    with pytest.raises(SourceError, match=re.escape(f"line 2: {reason}")):
        ingest(lake, [path], "c")
    plain = DONE | {"AllocTRES": "gres/gpu=2", "ReqTRES": "", "JobName": "a,b"}
    path.write_text(f"{','.join(FIELDS)}\n{','.join(plain.values())}\n")
    assert ingest(lake, [path], "c").upsert.num_new == 1
