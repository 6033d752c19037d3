"""The lines of AAIC's files: order, numbers, rounding, and which reason leaves a job out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from tests.conftest import job, utc
from tests.export._roundtrip import Rows, write_rows

START = 1514764800  # 2018-01-01T00:00:00Z


def aaic(tmp_path: Path, rows: Rows, **options: Any) -> list[dict[str, str]]:
    write_rows(rows, "aaic", tmp_path / "x.csv", overwrite=True, **options)
    header, *lines = (tmp_path / "x.csv").read_text().splitlines()
    return [dict(zip(header.split(", "), line.split(", "), strict=True)) for line in lines]


@pytest.mark.parametrize(
    ("state", "code"),
    [("completed", "0"), ("failed", "1"), ("timeout", "2"), ("cancelled", "3"), ("killed", "4")],
)
def test_each_state_has_its_code(state: str, code: str, tmp_path: Path) -> None:
    (line,) = aaic(tmp_path, [job(1, state=state)])
    assert line["termcode"] == code


def test_ids_that_are_numbers_stay_and_give_the_order(tmp_path: Path) -> None:
    """Nine comes before ten, and time does not matter; with a word among them all are numbered by time."""
    late = {"submitted_at": utc("2018-01-01T00:00:09")}
    lines = aaic(tmp_path, [job(10), job(9, **late), job(100)])
    assert [line["id"] for line in lines] == ["9", "10", "100"]
    lines = aaic(tmp_path, [job("b", queue="short"), job("a", queue="long"), job("9", **late)])
    assert [(line["id"], line["queue"]) for line in lines] == [("0", "3"), ("1", "1"), ("2", "0")]


def test_fractions_of_a_second_are_rounded_and_give_the_order(tmp_path: Path) -> None:
    """Times to the second before, durations to the nearest."""
    half = {"submitted_at": utc("2018-01-01T00:00:00") + timedelta(milliseconds=750)}
    half |= {"started_at": utc("2018-01-01T00:00:10") + timedelta(milliseconds=900)}
    half |= {"ended_at": utc("2018-01-01T01:00:10") + timedelta(milliseconds=900)}
    rows = [
        job("a", **half, wait_s=10.15, run_s=3600.75, requested_s=7200.25, user="zoe"),
        job("b", submitted_at=utc("2018-01-01T00:00:00") + timedelta(milliseconds=250)),
    ]
    first, second = aaic(tmp_path, rows)
    assert (first["user"], second["user"]) == ("0", "1"), "b is submitted half a second before a"
    named = ("time_submit", "time_start", "time_end", "waittime", "walltime", "walltime_req")
    assert [second[name] for name in named] == [
        *(f"{START}", f"{START + 10}", f"{START + 3610}", "10", "3601", "7200"),
    ]


@pytest.mark.parametrize(
    "column", ["submitted_at", "started_at", "ended_at", "requested_s", "wait_s", "run_s"]
)
def test_each_rounded_number_is_counted(column: str, tmp_path: Path) -> None:
    value = job(1)[column]
    half = value + (0.5 if isinstance(value, float) else timedelta(milliseconds=500))
    done = write_rows([job(1), job(2) | {column: half}], "aaic", tmp_path)
    assert done.manifest["changed"] == {"times or durations were rounded to whole seconds": 1}


def test_gpus_are_those_of_one_node(tmp_path: Path) -> None:
    (line,) = aaic(tmp_path, [job(1, num_gpus=24, num_nodes=3)])
    assert (line["nodes"], line["gpus"]) == ("3", "8")


def test_a_job_is_left_out_for_the_first_reason_only(tmp_path: Path) -> None:
    rows = [
        job(1),
        job(2, queue="gpu", state="preempted", num_gpus=0, user=None),
        job(3, state="preempted", num_gpus=0, account=None),
        job(4, started_at=None, ended_at=None, run_s=None, requested_s=None),
        job(5, num_nodes=0),
    ]
    done = write_rows(rows, "aaic", tmp_path)
    assert done.manifest["left_out"] == {
        "the queue is not one of normal, short, middle, long": 1,
        "the state preempted has no termcode": 1,
        "no start": 1,
        "no node, or an unknown number": 1,
    }


def test_one_log_may_go_to_a_file_and_several_to_a_folder(tmp_path: Path) -> None:
    """The log's name is cut from its own ids only."""
    rows = [job("a/7", user="a/5", account="b/3"), job("a/10", user="a/6", account="b/3")]
    lines = aaic(tmp_path, rows)
    assert [(line["id"], line["user"], line["group"]) for line in lines] == [
        ("7", "5", "0"),
        ("10", "6", "0"),
    ]
    message = (
        "the jobs come from 3 logs whose ids hold within one file: name a folder instead of x.csv"
    )
    several = [*rows, job("b/7"), job("c/7")]
    with pytest.raises(HakaruError, match=f"^{message}$"):
        aaic(tmp_path, several)
    done = write_rows(several, "aaic", tmp_path / "out", synthetic=True)
    assert done.outcome.files == {
        "aaicwl-synthetic-a.csv.gz": 2,
        "aaicwl-synthetic-b.csv.gz": 1,
        "aaicwl-synthetic-c.csv.gz": 1,
    }
    mixed = write_rows([*rows, job("7")], "aaic", tmp_path / "mixed")
    assert mixed.outcome.files == {"c.csv.gz": 3}
    assert set(mixed.outcome.replaced) == {"job_id", "user", "account"}
