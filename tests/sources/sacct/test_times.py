"""Local times: their zone, and the hour that comes twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.settings import load
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.sacct._text import line, one, read_lines

LOCAL = ("JobID", "State", "Submit", "Start", "End", "Elapsed", "Timelimit")
LOCAL_ROW = (
    "7|COMPLETED|2018-01-01T09:00:00|2018-01-01T09:00:10|2018-01-02T10:00:10|1-01:00:00|UNLIMITED"
)


@pytest.mark.parametrize(
    ("options", "submitted"),
    [
        ({"zone": "Asia/Tokyo"}, "2018-01-01T00:00:00"),
        ({"site_zone": "Asia/Tokyo"}, "2018-01-01T00:00:00"),
        ({"zone": "UTC"}, "2018-01-01T09:00:00"),
        ({"zone": "UTC", "site_zone": "Asia/Tokyo"}, "2018-01-01T09:00:00"),
    ],
)
def test_local_times_are_read_in_the_zone_that_is_given(
    tmp_path: Path, options: dict[str, str], submitted: str
) -> None:
    (row,) = read_lines(tmp_path, LOCAL_ROW, fields=LOCAL, **options)
    assert row["submitted_at"] == utc(submitted)
    assert (row["run_s"], row["wait_s"], row["requested_s"]) == (90000.0, 10.0, None)


def test_local_times_without_a_zone_are_not_guessed(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    fix = "add --zone Asia/Tokyo (where sacct ran), or write with SLURM_TIME_FORMAT=%s"
    with pytest.raises(SourceError) as caught:
        ingest(lake, [path], "c", options={"zone": None})
    assert str(caught.value) == f"{path}: its times have no offset: {fix}"


def test_the_zone_of_the_site_is_that_of_its_local_times(lake: Lake, tmp_path: Path) -> None:
    (lake.workspace / "hakaru.toml").write_text('[clusters.c]\nzone = "Asia/Tokyo"\n')
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    assert ingest(lake, [path], "c").since == utc("2018-01-01T00:00:00")
    with pytest.raises(SourceError, match="no offset"):
        ingest(lake, [path], "another")


def test_a_zone_that_was_given_once_is_the_sites(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("|".join(LOCAL) + f"\n{LOCAL_ROW}\n")
    ingest(lake, [path], "c", options={"zone": "Asia/Tokyo"})
    site = load(lake.workspace, lake.facts()).cluster("c")
    assert (site.zone, site.has_zone) == ("Asia/Tokyo", True)
    assert ingest(lake, [path], "c").upsert.num_unchanged == 1


def test_epochs_need_no_zone_whatever_a_job_is_called(tmp_path: Path) -> None:
    row = one(tmp_path, JobName="2018-01-01T09:00:00")
    assert (row["_reason"], row["submitted_at"]) == (None, utc("2018-01-01T00:00:00"))


def test_local_times_far_below_epochs_are_rejected(tmp_path: Path) -> None:
    epochs = [line(JobID=str(i)) for i in range(1, 801)]
    rows = read_lines(tmp_path, *epochs, line(JobID="900", Start="2018-01-01T09:00:10"))
    assert sum(row["_reason"] is None for row in rows) == 800
    assert rows[-1]["_reason"].startswith("Start has no offset: add --zone Asia/Tokyo")


def new_york(tmp_path: Path, day: str = "2024-11-03", **clocks: str) -> dict[str, Any]:
    """A job of the night in which 01:00 to 02:00 came twice: until 05:59:59 UTC, and from 06:00 on."""
    elapsed = clocks.pop("Elapsed", "")
    times = {name: f"{day}T{clock}:00" for name, clock in clocks.items()}
    text = line(**{"Eligible": times["Submit"], **times, "ElapsedRaw": elapsed})
    (row,) = read_lines(tmp_path, text, zone="America/New_York")
    return row


@pytest.mark.parametrize(
    ("submit", "start", "end", "elapsed", "expected"),
    [
        # nothing says that it was not the first time
        ("01:10", "01:20", "01:40", "1200", ("05:10", "05:20", "05:40")),
        ("00:50", "01:20", "02:10", "", ("04:50", "05:20", "07:10")),
        # the end shows an earlier clock than the start
        ("01:10", "01:50", "01:20", "1800", ("05:10", "05:50", "06:20")),
        ("01:10", "01:50", "01:20", "", ("05:10", "05:50", "06:20")),
        # the start shows an earlier clock than the submission, and draws the end with it
        ("01:50", "01:20", "01:40", "1200", ("05:50", "06:20", "06:40")),
        ("01:50", "01:20", "02:40", "4800", ("05:50", "06:20", "07:40")),
        # the order is right, but it ran for longer than the first reading has
        ("01:10", "01:20", "01:40", "4800", ("05:10", "05:20", "06:40")),
        # the end is certain, and the run time says which start it was
        ("00:50", "01:20", "02:10", "3000", ("04:50", "06:20", "07:10")),
        ("00:50", "01:20", "02:10", "6600", ("04:50", "05:20", "07:10")),
        # suspended for a while: the first start cannot be told from the second
        ("00:50", "01:20", "02:10", "2900", ("04:50", "05:20", "07:10")),
    ],
)
def test_an_hour_that_comes_twice(
    tmp_path: Path, submit: str, start: str, end: str, elapsed: str, expected: tuple[str, ...]
) -> None:
    row = new_york(tmp_path, Submit=submit, Start=start, End=end, Elapsed=elapsed)
    assert row["_reason"] is None
    times = (row["submitted_at"], row["started_at"], row["ended_at"])
    assert times == tuple(utc(f"2024-11-03T{clock}:00") for clock in expected)
    assert row["wait_s"] == (times[1] - times[0]).total_seconds()
    assert row["run_s"] == (float(elapsed) if elapsed else (times[2] - times[1]).total_seconds())


def test_an_hour_that_comes_twice_far_east_of_greenwich(tmp_path: Path) -> None:
    """On Sunday, 7 April 2024, Sydney's clocks went from 03:00 to 02:00, on Saturday at 16:00 UTC."""
    times = {"Submit": "02:10", "Eligible": "02:10", "Start": "02:50", "End": "02:20"}
    text = line(**{name: f"2024-04-07T{clock}:00" for name, clock in times.items()}, ElapsedRaw="")
    (row,) = read_lines(tmp_path, text, zone="Australia/Sydney")
    assert row["started_at"] == utc("2024-04-06T15:50:00")
    assert row["ended_at"] == utc("2024-04-06T16:20:00")


def test_a_hold_that_ends_in_the_second_of_two_hours(tmp_path: Path) -> None:
    row = new_york(tmp_path, Submit="01:50", Eligible="01:10", Start="01:30", End="03:00")
    assert row["eligible_at"] == utc("2024-11-03T06:10:00")
    assert row["started_at"] == utc("2024-11-03T06:30:00")


def test_a_time_in_the_hour_that_clocks_skip_is_that_much_later(tmp_path: Path) -> None:
    """02:00 to 03:00 did not come on 10 March 2024: at 07:00 UTC it was 03:00."""
    row = new_york(tmp_path, "2024-03-10", Submit="01:50", Start="02:30", End="03:40")
    assert row["_reason"] is None
    # 02:30 is read as 03:30 of summer time, as Python's fold=0 does
    assert row["started_at"] == utc("2024-03-10T07:30:00")
    assert (row["wait_s"], row["run_s"]) == (2400.0, 600.0)


@pytest.mark.parametrize(
    ("submit", "start", "end", "name"),
    [
        ("01:50", "02:30", "03:10", "Start"),
        ("02:40", "03:20", "03:50", "Submit"),
        ("03:05", "03:50", "02:40", "End"),
    ],
)
def test_backwards_in_the_hour_that_clocks_skip_names_the_time(
    tmp_path: Path, submit: str, start: str, end: str, name: str
) -> None:
    row = new_york(tmp_path, "2024-03-10", Submit=submit, Start=start, End=end)
    clock = {"Submit": submit, "Start": start, "End": end}[name]
    assert row["_reason"] == (
        f"{name} is a time that the clocks of America/New_York skipped: 2024-03-10T{clock}:00; "
        "is --zone right? Or write with SLURM_TIME_FORMAT=%s"
    )


def test_backwards_on_another_day_of_the_zone_is_left_to_the_common_checks(tmp_path: Path) -> None:
    row = new_york(tmp_path, "2024-03-12", Submit="01:50", Start="02:30", End="02:10")
    assert row["_reason"] is None


@pytest.mark.parametrize(
    ("start", "end", "elapsed"),
    [("00:30", "01:20", ""), ("02:30", "01:20", ""), ("01:50", "01:20", "7200")],
    ids=["starts too early", "ends too early", "ran for longer than either"],
)
def test_backwards_either_way_is_rejected_with_what_to_do(
    tmp_path: Path, start: str, end: str, elapsed: str
) -> None:
    row = new_york(tmp_path, Submit="01:10", Start=start, End=end, Elapsed=elapsed)
    told = (
        "its times run backwards in an hour that the clock repeats; write with SLURM_TIME_FORMAT=%s"
    )
    assert row["_reason"] == told


def test_backwards_on_another_day_has_no_such_excuse(tmp_path: Path) -> None:
    row = new_york(tmp_path, day="2024-11-04", Submit="01:10", Start="01:50", End="01:20")
    assert (row["_reason"], row["ended_at"]) == (None, utc("2024-11-04T06:20:00"))
