from __future__ import annotations

import statistics
from collections.abc import Callable

import pandas as pd
import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

MOMENTS = [
    "2018-01-01T09:10:00",  # Monday
    "2018-01-01T09:50:00",
    "2018-01-02T09:00:00",
    "2018-01-10T23:59:59",  # Wednesday of the week after: ten days in all
]


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    return lake_of([job(i, submitted_at=utc(moment)) for i, moment in enumerate(MOMENTS)])


def test_hours_without_jobs_count_as_zero(small: Lake) -> None:
    rows = ask(small, "arrivals-by-hour").rows
    assert [r["hour"] for r in rows] == list(range(24))
    nine = rows[9]
    assert (nine["num_days"], nine["num_jobs"], nine["most"]) == (10, 3, 2)
    assert nine["mean"] == pytest.approx(0.3)
    assert nine["sd"] == pytest.approx(statistics.stdev([2, 1] + [0] * 8))
    assert (rows[0]["mean"], rows[0]["sd"], rows[0]["most"]) == (0.0, 0.0, 0.0)


def test_only_days_with_a_job(small: Lake) -> None:
    nine = ask(small, "arrivals-by-hour", {"days": "active"}).rows[9]
    assert nine["num_days"] == 3
    assert nine["mean"] == 1.0
    assert nine["sd"] == pytest.approx(statistics.stdev([2, 1, 0]))


def test_weekdays(small: Lake) -> None:
    rows = ask(small, "arrivals-by-weekday").rows
    assert [r["weekday"] for r in rows] == list(range(7))
    assert [r["num_days"] for r in rows] == [2, 2, 2, 1, 1, 1, 1]
    assert [r["num_jobs"] for r in rows] == [2, 1, 1, 0, 0, 0, 0]
    assert rows[0]["mean"] == 1.0
    assert rows[0]["sd"] == pytest.approx(statistics.stdev([2, 0]))
    assert rows[6]["sd"] is None
    assert [r["most"] for r in rows] == [2, 1, 1, 0, 0, 0, 0]
    active = ask(small, "arrivals-by-weekday", {"days": "active"}).rows
    assert [r["num_days"] for r in active[:3]] == [1, 1, 1]


def test_hours_are_the_sites(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, submitted_at=utc("2018-01-01T20:30:00"))], '{"zone": "Asia/Kolkata"}')
    assert [r["hour"] for r in ask(lake, "arrivals-by-hour").rows if r["num_jobs"]] == [2]
    assert [r["weekday"] for r in ask(lake, "arrivals-by-weekday").rows if r["num_jobs"]] == [1]


def test_the_chosen_period_counts_whole(small: Lake) -> None:
    rows = ask(small, "arrivals-by-weekday", since="2018-01-01", until="2018-01-31").rows
    assert [r["num_days"] for r in rows] == [5, 5, 5, 4, 4, 4, 4]
    assert rows[6]["mean"] == 0.0
    nine = ask(small, "arrivals-by-hour", since="2018-01-01", until="2018-01-31").rows[9]
    assert (nine["num_days"], nine["mean"]) == (31, pytest.approx(3 / 31))


def test_groups_are_averaged_over_the_same_days(lake_of: Callable[..., Lake]) -> None:
    rows = [job(i, user=f"u{i}", submitted_at=utc(f"2018-01-0{i}T09:00:00")) for i in (1, 4)]
    table = ask(lake_of(rows), "arrivals-by-hour", by="user").rows
    assert {r["num_days"] for r in table} == {4}
    assert [r["mean"] for r in table if r["hour"] == 9] == [0.25, 0.25]


def test_a_weekday_that_the_period_lacks_has_no_mean(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([job(1)]), "arrivals-by-weekday").rows
    assert [(r["num_days"], r["mean"], r["most"]) for r in rows[:2]] == [
        (1, 1.0, 1.0),
        (0, None, None),
    ]


def test_by_gpu_hours(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, num_gpus=4), job(2), job(3, run_s=None)])
    result = ask(lake, "arrivals-by-hour", weight="gpu-hours")
    assert (result.rows[0]["mean"], result.rows[0]["num_jobs"]) == (5.0, 2)
    assert [entry.num_jobs for entry in result.left_out] == [1]


def test_working_hours(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([job(1)], '{"working_hours": [8, 10]}'), "arrivals-by-hour").rows
    assert [r["hour"] for r in rows if r["is_working"]] == [8, 9]


def test_no_jobs_no_rows(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([])
    assert ask(lake, "arrivals-by-hour").rows == []
    assert ask(lake, "arrivals-by-weekday").rows == []


def test_the_published_log(aaic_lake: Lake, aaic_files: list) -> None:
    """Against pandas, which counts hour by hour over all 536 days."""
    frames = [pd.read_csv(path, skipinitialspace=True) for path in aaic_files]
    moments = pd.to_datetime(pd.concat(frames)["time_submit"], unit="s", utc=True)
    local = moments.dt.tz_convert("Asia/Tokyo")
    days = pd.date_range(local.min().date(), local.max().date())
    grid = pd.crosstab(local.dt.date, local.dt.hour).reindex(days.date, fill_value=0)
    rows = ask(aaic_lake, "arrivals-by-hour").rows
    assert len(days) == 536
    assert [r["mean"] for r in rows] == pytest.approx(list(grid.mean()))
    assert [r["sd"] for r in rows] == pytest.approx(list(grid.std()))
    daily = grid.sum(axis=1)
    weekday = daily.groupby([day.weekday() for day in grid.index])
    rows = ask(aaic_lake, "arrivals-by-weekday").rows
    assert [r["mean"] for r in rows] == pytest.approx(list(weekday.mean()))
    assert [r["sd"] for r in rows] == pytest.approx(list(weekday.std()))
