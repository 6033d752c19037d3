"""A log with relative dates that gets real ones: its jobs are there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.sources import ingest
from tests._cli import hakaru
from tests.conftest import utc
from tests.sources.swf._log import jobs_of, plausible


def swf(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def test_the_advised_command_dates_the_jobs(tmp_path: Path) -> None:
    """Three jobs, submitted 0, 1000 and 2000 s after the log began."""
    log = swf(tmp_path / "old.swf", *plausible(3))
    command = ["ingest", log, "--cluster", "c", "-w", tmp_path / "w"]
    first = hakaru(*command).output
    assert "run this again with the log's first day added, e.g. --start 2014-03-01" in first
    shown = " ".join(hakaru("show", "arrivals-by-hour", "-w", tmp_path / "w").output.split())
    assert "read it again with the same command and its first day, e.g. --start 2014-03-01" in shown
    again = hakaru(*command, "--start", "2014-03-01")
    assert again.exit_code == 0
    assert "new 0, updated 3, unchanged 0" in again.output
    assert "3 jobs of c that had relative dates were replaced by these" in again.output
    lake = Lake.open(tmp_path / "w")
    assert [job["submitted_at"] for job in jobs_of(lake)] == [
        utc("2014-03-01T00:00:00"),
        utc("2014-03-01T00:16:40"),
        utc("2014-03-01T00:33:20"),
    ]
    assert "relative" not in hakaru("show", "arrivals-by-hour", "-w", tmp_path / "w").output
    assert "unchanged 3" in hakaru(*command, "--start", "2014-03-01").output


def test_a_log_that_was_moved_and_has_grown_dates_the_jobs_too(lake: Lake, tmp_path: Path) -> None:
    ingest(lake, [swf(tmp_path / "a.swf", *plausible(3))], "c")
    ingest(lake, [swf(tmp_path / "z.swf", *plausible(2))], "other")
    summary = ingest(
        lake, [swf(tmp_path / "b.swf", *plausible(5))], "c", options={"start": "2014-03-01"}
    )
    assert (summary.upsert.num_new, summary.upsert.num_updated) == (2, 3)
    jobs = jobs_of(lake)
    assert sorted(job["submitted_at"].year for job in jobs if job["cluster"] == "c") == [2014] * 5
    assert [job["submitted_at"].year for job in jobs if job["cluster"] == "other"] == [1970] * 2
    assert "relative_dates" not in lake.facts()["c"] and "relative_dates" in lake.facts()["other"]


@pytest.mark.parametrize(
    ("rows", "num_lost"),
    [
        (plausible(2), 1),  # the third job is not in it
        (plausible(3, f2=lambda i: 1500 * i), 2),  # other jobs with the same ids
    ],
)
def test_jobs_that_the_log_does_not_have_are_not_lost(
    lake: Lake, tmp_path: Path, rows: list[str], num_lost: int
) -> None:
    ingest(lake, [swf(tmp_path / "a.swf", *plausible(3))], "c")
    before = lake.version()
    with pytest.raises(SourceError) as told:
        ingest(lake, [swf(tmp_path / "b.swf", *rows)], "c", options={"start": "2014-03-01"})
    assert f"c has 3 jobs with relative dates, and {num_lost} of them are not in" in str(told.value)
    assert lake.version() == before
    command = str(told.value).splitlines()[-1].split()
    assert command[:3] == ["hakaru", "lake", "forget"]
    assert hakaru(*command[1:], "--yes").exit_code == 0
    ingest(lake, [tmp_path / "b.swf"], "c", options={"start": "2014-03-01"})
    assert {job["submitted_at"].year for job in jobs_of(lake)} == {2014}


def test_relative_dates_do_not_join_real_ones(lake: Lake, tmp_path: Path) -> None:
    log = swf(tmp_path / "a.swf", *plausible(3))
    ingest(lake, [log], "c", options={"start": "2014-03-01"})
    ingest(lake, [log], "tokyo", options={"start": "2014-03-01", "zone": "Asia/Tokyo"})
    for cluster in ("c", "tokyo"):
        told = r"jobs with real dates \(the last is of 2014-03-01\)"
        with pytest.raises(SourceError, match=told):
            ingest(lake, [log], cluster)
    assert len(jobs_of(lake)) == 6


def test_one_ingest_has_one_kind_of_dates(lake: Lake, tmp_path: Path) -> None:
    one = swf(tmp_path / "a.swf", *plausible(3))
    two = swf(tmp_path / "b.swf", "; UnixStartTime: 1500000000", *plausible(3))
    with pytest.raises(SourceError, match=r"a\.swf has relative dates and .*b\.swf real ones"):
        ingest(lake, [one, two], "c")
    assert lake.files(JOBS) == []
