from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc


def test_the_week(lake_of: Callable[..., Lake]) -> None:
    moments = [
        "2018-01-01T09:10:00",  # Monday
        "2018-01-01T09:50:00",
        "2018-01-02T09:00:00",
        "2018-01-10T23:59:59",  # Wednesday of the week after: ten days in all
    ]
    lake = lake_of([job(i, submitted_at=utc(moment)) for i, moment in enumerate(moments)])
    rows = {(r["weekday"], r["hour"]): r for r in ask(lake, "arrivals-by-week").rows}
    assert len(rows) == 7 * 24
    assert [rows[day, 0]["num_days"] for day in range(7)] == [2, 2, 2, 1, 1, 1, 1]
    assert (rows[0, 9]["num_jobs"], rows[0, 9]["mean"]) == (2, 1.0)
    assert (rows[1, 9]["num_jobs"], rows[1, 9]["mean"]) == (1, 0.5)
    assert (rows[2, 23]["num_jobs"], rows[2, 23]["mean"]) == (1, 0.5)
    assert sum(r["num_jobs"] for r in rows.values()) == 4
    assert rows[6, 12]["mean"] == 0.0


def test_a_weekday_that_the_period_does_not_hold(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([job(1)]), "arrivals-by-week").rows  # a Monday alone
    assert {r["weekday"] for r in rows if r["mean"] is None} == {1, 2, 3, 4, 5, 6}


def test_the_week_by_the_sites_clock_and_by_hours(lake_of: Callable[..., Lake]) -> None:
    late = job(1, submitted_at=utc("2018-01-07T23:30:00"), num_gpus=2)  # Monday morning in Tokyo
    lake = lake_of([late], facts='{"zone": "Asia/Tokyo"}')
    rows = ask(lake, "arrivals-by-week", weight="gpu-hours").rows
    assert [(r["weekday"], r["hour"], r["mean"]) for r in rows if r["num_jobs"]] == [(0, 8, 2.0)]


@pytest.fixture
def strata(lake_of: Callable[..., Lake]) -> Lake:
    """90 jobs on one node, 20 on two, 3 on three or four, and 5 of which too little is known."""
    nodes = [1] * 90 + [2] * 20 + [3, 4, 4]
    rows = [job(i, num_nodes=n, num_gpus=8 * n, wait_s=36.0) for i, n in enumerate(nodes)]
    unknown = [job(200 + i, wait_s=None, started_at=None) for i in range(5)]
    return lake_of(rows + unknown)


def test_a_sample_from_each_number_of_nodes(strata: Lake) -> None:
    """30 in three strata are 10 each; the 7 that the last cannot give go to the others, 80 to 10.

    That is 6.2 and 0.8; the job that whole numbers leave over goes to where most are left.
    """
    result = ask(strata, "job-shapes", {"sample": 30})
    assert (result.num_used, result.num_selected) == (113, 118)
    drawn = Counter((r["num_nodes"] + 1) // 2 if r["num_nodes"] > 2 else r["num_nodes"] - 1
                    for r in result.rows)  # fmt: skip
    assert drawn == {0: 10 + 7, 1: 10 + 0, 2: 3}
    assert {(r["num_like_it"], r["num_sampled"]) for r in result.rows} == {
        (90, 17),
        (20, 10),
        (3, 3),
    }
    first = result.rows[0]
    assert (first["num_pes"], first["wait_h"], first["run_h"]) == (8, 0.01, 1.0)


def test_the_sample_is_the_same_for_the_same_seed(strata: Lake) -> None:
    def ids(seed: int) -> list[str]:
        params = {"sample": 30, "seed": seed}
        return [row["job_id"] for row in ask(strata, "job-shapes", params).rows]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    assert len(set(ids(1))) == 30


def test_a_sample_larger_than_the_log_is_the_log(strata: Lake) -> None:
    assert len(ask(strata, "job-shapes").rows) == 113


def test_a_sample_a_group(strata: Lake) -> None:
    rows = ask(strata, "job-shapes", {"sample": 10}, by="num_nodes").rows
    assert Counter(r["group_num_nodes"] for r in rows) == {1: 10, 2: 10, 3: 1, 4: 2}


def test_run_time_by_application(lake_of: Callable[..., Lake]) -> None:
    runs = {"pytorch": [10.0, 100.0, 100.0, 1000.0], "caffe": [1.0, 1000.0], "r": [10.0]}
    rows = [
        job(i, application=name, run_s=run_s)
        for i, (name, run_s) in enumerate((n, r) for n, each in runs.items() for r in each)
    ]
    lake = lake_of([*rows, job(99, application=None)])
    result = ask(lake, "walltime-by-application", {"top": 1})
    assert (result.num_used, result.num_selected) == (7, 8)
    seen = [
        (r["application"], round(r["run_h"] * 3600), r["num_jobs"], round(r["share"], 4))
        for r in result.rows
    ]
    assert seen == [
        ("pytorch", 10, 1, 0.25),
        ("pytorch", 100, 2, 0.75),
        ("pytorch", 1000, 1, 1.0),
        ("(others)", 1, 1, 0.3333),
        ("(others)", 10, 1, 0.6667),
        ("(others)", 1000, 1, 1.0),
    ]


def test_cells_of_request_and_run(lake_of: Callable[..., Lake]) -> None:
    """An eighth of a decade is 10^(1/8) = 1.334: 100 s ends the cell from 74.99 s."""
    rows = [
        job(1, requested_s=100.0, run_s=100.0),
        job(2, requested_s=100.0, run_s=99.0, num_gpus=4),
        job(3, requested_s=101.0, run_s=100.0),
        job(4, requested_s=100.0, run_s=59.0),
        job(5, requested_s=0.0, run_s=100.0),
    ]
    result = ask(lake_of(rows), "request-vs-run")
    assert [left.num_jobs for left in result.left_out] == [0, 0, 1, 1]
    cells = [
        [round(r[each] * 3600, 2) for each in r if each.endswith("_h")] + [r["num_jobs"]]
        for r in result.rows
    ]
    assert cells == [[74.99, 100.0, 74.99, 100.0, 2], [100.0, 133.35, 74.99, 100.0, 1]]
    assert [r["share"] for r in result.rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert result.rows[0]["pe_hours"] == pytest.approx((100 + 4 * 99) / 3600)


def test_on_the_real_log(aaic_lake: Lake) -> None:
    """The sums are the paper's: 459,545 jobs, and 360,756 of a minute or more."""
    week = ask(aaic_lake, "arrivals-by-week").rows
    assert sum(r["num_jobs"] for r in week) == 459_545
    assert sum(r["num_jobs"] for r in week if r["hour"] == 9) == 15_044  # as by hour of day
    cells = ask(aaic_lake, "request-vs-run").rows
    assert sum(r["num_jobs"] for r in cells) == 360_756
    assert len(ask(aaic_lake, "job-shapes").rows) == 1000


def test_ids_that_come_again_are_drawn_apart(lake_of: Callable[..., Lake]) -> None:
    """A scheduler that counts to 20 and begins anew: the sample is of jobs, not of ids."""
    rows = [
        job(i % 20, submitted_at=utc("2018-01-01T00:00:00") + timedelta(hours=i))
        for i in range(4000)
    ]
    lake = lake_of(rows)
    for seed in range(4):
        assert len(ask(lake, "job-shapes", {"sample": 100, "seed": seed}).rows) == 100
