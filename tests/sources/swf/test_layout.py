"""Logs that only look like SWF are refused with what was seen; those of the right layout are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from tests.sources.swf._log import plausible, read


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        (
            [row + " 7" for row in plausible(20)],
            "expected 18 columns, found 19 in most lines (20 of the first 20",
        ),
        ([row + " 7 8 9" for row in plausible(20)], "found 21 in most lines"),
        ([",".join(row.split()) for row in plausible(5)], "found 1 in most lines"),
        (
            plausible(20, f11=lambda i: 10 + i),
            "field 11 (status) is not one of -1 to 5 in 20 of the first 20",
        ),
        (plausible(20, f11=lambda i: "COMPLETED"), "field 11 (status) is not one of"),
        (plausible(20, f1=lambda i: i % 3), "field 1 (job number) has only 3 values in 20 lines"),
        (plausible(20, f1=lambda i: i * 11 % 20), "do not rise together"),
        (plausible(20, f2=lambda i: 99_000 - 1000 * i), "do not rise together"),
        (plausible(20, f1=lambda i: 1000 * i, f2=lambda i: i + 1), "as if the two were exchanged"),
        (plausible(99, f3=lambda i: 1000 * i + 60), "as if it were a start time"),
        (
            ["; UnixStartTime: 1500000000", *plausible(5, f2=lambda i: 1_500_000_000 + 1000 * i)],
            "it holds Unix times",
        ),
    ],
)
def test_another_layout_is_refused_with_what_was_seen(
    log: list[str], seen: str, lake: Lake, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="not the Standard Workload Format") as caught:
        read(lake, tmp_path, *log)
    first = next(row for row in log if not row.startswith(";"))
    assert seen in str(caught.value)
    assert first[:60] in str(caught.value)
    assert str(tmp_path / "log.swf") in str(caught.value)
    assert lake.clusters() == []


@pytest.mark.parametrize(
    "log",
    [
        plausible(20),
        plausible(20)[::-1],
        plausible(20, f1=lambda i: 5 * i + 100),
        plausible(20, f2=lambda i: 1_500_000_000 + 1000 * i),
        plausible(20, f2=lambda i: i, f1=lambda i: i + 1),
        plausible(20, f3=lambda i: -1, f11=lambda i: -1),
        plausible(20)[:9] + ["garbage"] * 9 + plausible(20)[9:],
    ],
    ids=["plain", "unsorted", "gaps", "epochs without a start", "each second", "model", "half bad"],
)
def test_a_log_of_the_right_layout_is_not_refused(
    log: list[str], lake: Lake, tmp_path: Path
) -> None:
    summary = read(lake, tmp_path, *log)
    assert summary.upsert.num_new == 20
    assert summary.num_rejected == len(log) - 20


def _by(moment: Callable[[list[int]], int], ids: str) -> list[str]:
    """Forty jobs sorted by a moment; ids count the lines, count the submissions, or say nothing."""
    jobs = [[i, 100 * i, 60 * (i * 7 % 11), 90 * (i * 13 % 17)] for i in range(40)]
    rows = []
    for line, (i, submit, wait, run) in enumerate(sorted(jobs, key=moment)):
        number = {"lines": line + 1, "submissions": i + 1, "none": i * 17 % 40 + 1}[ids]
        rows.append(f"{number} {submit} {wait} {run} 4 -1 -1 4 9000 -1 1 3 1 1 1 -1 -1 -1")
    return rows


@pytest.mark.parametrize("ids", ["lines", "submissions", "none"])
@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_log_may_be_sorted_by_start_or_end(
    moment: str, ids: str, lake: Lake, tmp_path: Path
) -> None:
    key = {"start": lambda job: job[1] + job[2], "end": lambda job: sum(job[1:])}[moment]
    summary = read(lake, tmp_path, *_by(key, ids))
    assert (summary.upsert.num_new, summary.num_rejected) == (40, 0)


def test_jobs_in_no_order_at_all_are_refused(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="do not rise together"):
        read(lake, tmp_path, *_by(lambda job: job[0] * 17 % 40, "lines"))
