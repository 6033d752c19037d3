"""SWF's dates: counted from the header's start, from --start, or relative."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.settings import load
from tests.conftest import utc
from tests.sources.swf._log import GOOD, jobs_of, read


@pytest.mark.parametrize(
    "start", ["", "; UnixStartTime: 0", "; UnixStartTime: soon", "; UnixStartTime: inf"]
)
def test_without_a_start_times_count_from_1970(start: str, lake: Lake, tmp_path: Path) -> None:
    read(lake, tmp_path, start, GOOD)
    (job,) = jobs_of(lake)
    assert job["submitted_at"] == utc("1970-01-01T00:02:10")
    assert (job["wait_s"], job["run_s"]) == (1.0, 60.0)


def test_relative_dates_are_told_and_kept(lake: Lake, tmp_path: Path) -> None:
    summary = read(lake, tmp_path, GOOD)
    (warning,) = summary.warnings
    assert "its dates are relative" in warning and "--start 2014-03-01" in warning
    assert load(lake.workspace, lake.facts()).cluster("c").relative_dates


@pytest.mark.parametrize("header", ["; UnixStartTime: 1500000000", "; a remark"])
def test_absolute_dates_are_not_called_relative(header: str, lake: Lake, tmp_path: Path) -> None:
    job = GOOD if "Unix" in header else GOOD.replace("130", "1500000130", 1)
    summary = read(lake, tmp_path, header, job, zone="UTC")
    assert summary.warnings == []
    assert not load(lake.workspace, lake.facts()).cluster("c").relative_dates


@pytest.mark.parametrize(
    ("start", "options", "submitted"),
    [
        ("2014-03-01", {}, "2014-03-01T00:02:10"),
        ("2014-03-01", {"zone": "Asia/Tokyo"}, "2014-02-28T15:02:10"),
        ("2014-03-01T06:00", {}, "2014-03-01T06:02:10"),
        ("2014-03-01T06:00+09:00", {}, "2014-02-28T21:02:10"),
    ],
)
def test_start_sets_the_dates(
    start: str, options: dict[str, str], submitted: str, lake: Lake, tmp_path: Path
) -> None:
    summary = read(lake, tmp_path, GOOD, start=start, **options)
    assert jobs_of(lake)[0]["submitted_at"] == utc(submitted)
    assert not any("relative" in warning for warning in summary.warnings)
    assert not load(lake.workspace, lake.facts()).cluster("c").relative_dates


def test_start_over_a_header_that_has_one_is_told(lake: Lake, tmp_path: Path) -> None:
    header = ("; UnixStartTime: 1500000000", "; TimeZoneString: Asia/Tokyo")
    summary = read(lake, tmp_path, *header, GOOD, start="2014-03-01")
    assert jobs_of(lake)[0]["submitted_at"] == utc("2014-02-28T15:02:10")
    assert (
        "replaces the header's UnixStartTime, which is 2017-07-14 02:40 UTC" in summary.warnings[0]
    )


def test_start_for_unix_times_is_refused(lake: Lake, tmp_path: Path) -> None:
    job = GOOD.replace("130", "1500000130", 1)
    with pytest.raises(SourceError, match="or --start: it holds Unix times"):
        read(lake, tmp_path, job, start="2014-03-01")
