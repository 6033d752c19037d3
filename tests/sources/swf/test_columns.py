"""SWF's eighteen fields: each in its column, -1 as unknown, and what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.lake import Lake
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.swf._log import GOOD, SAMPLE, jobs_of, read


def test_each_number_becomes_its_column(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    job = jobs_of(lake)[0]
    assert {name: value for name, value in job.items() if value is not None} == {
        "cluster": "c",
        "job_id": "1",
        "user": "1",
        "account": "1",
        "queue": "batch",
        "state": "completed",
        "num_cpus": 8,
        "memory_mib": 8192.0,  # 1,048,576 kB for each of 8 processors
        "requested_s": 7200.0,
        "submitted_at": utc("2017-07-14T02:40:00"),  # 1,500,000,000
        "started_at": utc("2017-07-14T02:40:10"),
        "ended_at": utc("2017-07-14T03:40:10"),
        "wait_s": 10.0,
        "run_s": 3600.0,
    }


def test_unknown_is_null_and_zero_is_zero(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    _, no_wait, fractions, cancelled, zeros, no_request = jobs_of(lake)

    assert no_wait["wait_s"] is no_wait["started_at"] is no_wait["ended_at"] is None
    assert no_wait["state"] is no_wait["requested_s"] is no_wait["memory_mib"] is None
    assert (no_wait["run_s"], no_wait["num_cpus"], no_wait["queue"]) == (120.0, 16, "interactive")

    assert fractions["started_at"] == utc("2017-07-14T02:41:40")
    assert fractions["ended_at"] == utc("2017-07-14T02:42:10.250000")
    assert (fractions["num_cpus"], fractions["state"], fractions["queue"]) == (4, "failed", "2")

    assert (cancelled["state"], cancelled["num_cpus"]) == ("cancelled", 32)
    assert cancelled["started_at"] is cancelled["run_s"] is cancelled["wait_s"] is None
    assert cancelled["ended_at"] == utc("2017-07-14T02:50:00")  # given up 500 s after its submit

    assert (zeros["wait_s"], zeros["run_s"]) == (0.0, 0.0)
    assert zeros["ended_at"] == zeros["started_at"] == zeros["submitted_at"]
    assert zeros["user"] is zeros["account"] is zeros["queue"] is None

    assert (no_request["requested_s"], no_request["user"]) == (None, "0")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        (1, "-1", "field 1 (job number) is unknown or negative"),
        (1, "1.5", "field 1 (job number) is not a whole number"),
        (2, "-1", "field 2 (submit time) is unknown or negative"),
        (2, "1e300", "field 2 (submit time) is too large"),
        (2, "noon", "field 2 (submit time) is not a number"),
        (3, "-7", "field 3 (wait time) is negative, and not -1 for unknown"),
        (4, "nan", "field 4 (run time) is not a number"),
        (4, "inf", "field 4 (run time) is not a number"),
        (5, "0.5", "field 5 (allocated processors) is not a whole number"),
        (11, "6", "status 6 is not -1 to 5"),
        (11, "-2", "field 11 (status) is negative, and not -1 for unknown"),
        (18, "-1 -1", "expected 18 columns, found 19"),
        (18, "x", "field 18 (think time) is not a number"),
    ],
)
def test_a_bad_field_is_rejected_with_its_reason(
    field: int, value: str, reason: str, lake: Lake, tmp_path: Path
) -> None:
    cells = GOOD.split()
    cells[field - 1] = value
    before = GOOD.replace("9", "8", 1)
    summary = read(lake, tmp_path, "; Version: 2.2", before, " ".join(cells))
    assert [(line, said) for _, line, said in summary.first_rejects] == [(3, reason)]
    assert [job["job_id"] for job in jobs_of(lake)] == ["8"]


def test_parts_of_a_checkpointed_job_do_not_count_twice(lake: Lake, tmp_path: Path) -> None:
    """Job 1 ran for 100 s in two parts; job 2 has only a part, so it is a job of unknown end."""
    summary = read(
        lake,
        tmp_path,
        "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1",
        "1 0 5  60 4 -1 -1 4 200 -1 2 1 1 -1 1 -1 -1 -1",
        "1 -1 30 40 4 -1 -1 4 200 -1 3 1 1 -1 1 -1 -1 -1",
        "2 10 5 100 4 -1 -1 4 200 -1 2 1 1 -1 1 -1 -1 -1",
        "3 20 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1",
    )
    jobs = jobs_of(lake)
    assert [(job["job_id"], job["run_s"], job["state"]) for job in jobs] == [
        ("1", 100.0, "completed"),
        ("2", 100.0, None),
        ("3", 100.0, "completed"),
    ]
    part = "a part of a checkpointed job; the line of the whole job counts"
    assert summary.rejected_by_reason == {part: 2}


@pytest.mark.parametrize(
    ("status", "state"), [(1, "completed"), (0, "failed"), (5, "cancelled"), (-1, None)]
)
def test_the_whole_line_of_a_checkpointed_job_may_end_in_any_way(
    lake: Lake, tmp_path: Path, status: int, state: str | None
) -> None:
    summary = read(
        lake,
        tmp_path,
        "1 0 5 60 4 -1 -1 4 200 -1 2 1 1 -1 1 -1 -1 -1",
        "1 -1 30 40 4 -1 -1 4 200 -1 4 1 1 -1 1 -1 -1 -1",
        f"1 0 5 100 4 -1 -1 4 200 -1 {status} 1 1 -1 1 -1 -1 -1",
    )
    (job,) = jobs_of(lake)
    assert (job["run_s"], job["state"], summary.num_rejected) == (100.0, state, 2)


def test_tabs_and_narrow_columns_are_read(lake: Lake, tmp_path: Path) -> None:
    summary = read(lake, tmp_path, "\t".join(GOOD.split()), "  " + GOOD.replace("9", "10", 1))
    assert (summary.num_read, summary.num_rejected) == (2, 0)


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("12", "12"),
        ("007", "7"),
        ("3.0", "3"),
        ("-1", None),
        ("9007199254740993", "9007199254740993"),  # 2^53 + 1, which no float holds
        ("18446744073709551615", "18446744073709551615"),
        ("-6148914691236517206", "-6148914691236517206"),
        ("u9f86d081884c7d65", "u9f86d081884c7d65"),
    ],
)
def test_ids_of_users_and_groups_may_be_large_hashes(
    lake: Lake, tmp_path: Path, text: str, id: str | None
) -> None:
    cells = GOOD.split()
    cells[11] = cells[12] = text
    summary = read(lake, tmp_path, " ".join(cells))
    assert summary.num_rejected == 0
    assert [(job["user"], job["account"]) for job in jobs_of(lake)] == [(id, id)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("1.5", "field 12 (user) is not a whole number"), ("nan", "field 12 (user) is not a number")],
)
def test_an_id_that_is_a_quantity_is_rejected(
    lake: Lake, tmp_path: Path, text: str, reason: str
) -> None:
    cells = GOOD.split()
    cells[11] = text
    summary = read(lake, tmp_path, GOOD.replace("9", "8", 1), " ".join(cells))
    assert list(summary.rejected_by_reason) == [reason]


@pytest.mark.parametrize(
    ("run", "procs", "run_s"),
    [("0", "0", None), ("-1", "-1", None), ("60", "-1", 60.0), ("60", "0", 60.0), ("0", "4", 0.0)],
)
def test_a_cancelled_job_never_started_if_it_neither_ran_nor_had_processors(
    run: str, procs: str, run_s: float | None, lake: Lake, tmp_path: Path
) -> None:
    read(lake, tmp_path, f"9 130 5 {run} {procs} -1 -1 4 60 -1 5 1 1 -1 1 -1 -1 -1")
    (job,) = jobs_of(lake)
    assert job["run_s"] == run_s
    assert (job["started_at"] is None, job["wait_s"]) == (
        run_s is None,
        None if run_s is None else 5.0,
    )
