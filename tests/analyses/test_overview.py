from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.errors import FilterError
from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, put_jobs, utc


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    """Four jobs of two users; the last is submitted on New Year's Eve in UTC, in January in Tokyo."""
    rows: list[dict[str, Any]] = [
        job(1, num_gpus=2),
        job(2, queue="short", state="failed", run_s=1800.0),
        job(3, user="bob", account="other"),
        job(4, user="bob", account="other", submitted_at=utc("2017-12-31T15:00:00")),
    ]
    return lake_of(rows, '{"zone": "Asia/Tokyo"}')


def test_queues(small: Lake) -> None:
    rows = ask(small, "queues").rows
    assert [(r["queue"], r["num_jobs"], r["pe_hours"], r["share"]) for r in rows] == [
        ("normal", 3, 4.0, 0.75),
        ("short", 1, 0.5, 0.25),
    ]
    assert rows[0]["max_requested_h"] == 2.0
    assert rows[0]["max_pes"] == 2


def test_queues_by_gpu_hours(small: Lake) -> None:
    rows = ask(small, "queues", weight="gpu-hours").rows
    assert [r["share"] for r in rows] == [4 / 4.5, 0.5 / 4.5]


def test_jobs_of_unknown_hours_are_left_out_and_counted(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1), job(2, state="running", run_s=None)])
    result = ask(lake, "states", weight="gpu-hours")
    assert [r["state"] for r in result.rows] == ["completed"]
    assert [entry.num_jobs for entry in result.left_out] == [1]


def test_no_hours_no_share(lake_of: Callable[..., Lake]) -> None:
    assert ask(lake_of([job(1, run_s=0.0)]), "queues", weight="gpu-hours").rows[0]["share"] is None


def test_what_cannot_be_weighted_says_so(small: Lake) -> None:
    with pytest.raises(
        FilterError, match=r"waits counts jobs; --weight gpu-hours works with: .*queues"
    ):
        ask(small, "waits", weight="gpu-hours")


def test_numbers_group_as_numbers(lake_of: Callable[..., Lake]) -> None:
    sizes: list[int | None] = [16, 2, None, 1]
    lake = lake_of([job(i, num_gpus=n) for i, n in enumerate(sizes)])
    assert [r["num_gpus"] for r in ask(lake, "states", by="num_gpus").rows] == [1, 2, 16, None]


def test_a_queue_called_unknown_is_not_the_missing_one(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, queue="unknown"), job(2, queue=None)])
    assert [r["queue"] for r in ask(lake, "states", by="queue").rows] == ["(unknown)", "unknown"]


def test_two_zones_each_by_its_own_clock(lake: Lake) -> None:
    moment = utc("2018-01-01T20:00:00")  # the 2nd in Tokyo, still the 1st in New York
    put_jobs(lake, [job(1, cluster="ny", submitted_at=moment)], '{"zone": "America/New_York"}')
    put_jobs(lake, [job(1, cluster="tk", submitted_at=moment)], '{"zone": "Asia/Tokyo"}')
    for chosen in ({"since": "2018-01-02"}, {"where": "submitted_at >= '2018-01-02'"}):
        rows = ask(lake, "states", by="cluster", **chosen).rows
        assert [(r["cluster"], r["num_jobs"]) for r in rows] == [("tk", 1)]


def test_states_grouped_by_user(small: Lake) -> None:
    rows = ask(small, "states", by="user").rows
    assert [(r["user"], r["state"], r["num_jobs"], r["share"]) for r in rows] == [
        ("ann", "completed", 1, 0.5),
        ("ann", "failed", 1, 0.5),
        ("bob", "completed", 2, 1.0),
    ]


def test_quarters_follow_the_sites_clock(small: Lake) -> None:
    rows = ask(small, "jobs-by-quarter").rows
    assert [(r["quarter"], r["num_jobs"]) for r in rows] == [("2018Q1", 4)]


def test_quarters_in_utc(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1), job(2, submitted_at=utc("2017-12-31T15:00:00"))])
    rows = ask(lake, "jobs-by-quarter").rows
    assert [(r["quarter"], r["num_jobs"]) for r in rows] == [("2017Q4", 1), ("2018Q1", 1)]


def test_quarter_of_the_end_or_the_log(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of(
        [job(1, job_id="a/1", ended_at=utc("2018-04-01T00:00:00")), job(2, job_id="b/1")]
    )
    ended = ask(lake, "jobs-by-quarter", {"quarter": "ended"}).rows
    assert [(r["quarter"], r["num_jobs"]) for r in ended] == [("2018Q1", 1), ("2018Q2", 1)]
    logs = ask(lake, "jobs-by-quarter", {"quarter": "log"}).rows
    assert [(r["quarter"], r["num_jobs"]) for r in logs] == [("a", 1), ("b", 1)]


def test_users_by_quarter(small: Lake) -> None:
    (row,) = ask(small, "users-by-quarter").rows
    assert (row["num_users"], row["num_accounts"], row["num_jobs"]) == (2, 2, 4)


def test_users_by_quarter_leaves_out_unknown_users(lake_of: Callable[..., Lake]) -> None:
    result = ask(lake_of([job(1), job(2, user=None)]), "users-by-quarter")
    assert result.rows[0]["num_users"] == 1
    assert [entry.num_jobs for entry in result.left_out] == [1]
    assert (result.num_selected, result.num_used) == (2, 1)


@pytest.mark.parametrize("id", ["queues", "states", "jobs-by-quarter", "users-by-quarter"])
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


def test_the_published_log(aaic_lake: Lake) -> None:
    jobs = {r["quarter"]: r["num_jobs"] for r in ask(aaic_lake, "jobs-by-quarter").rows}
    assert sum(jobs.values()) == 459_545
    assert min(jobs, key=lambda quarter: jobs[quarter]) == "2017Q3"
    users = ask(aaic_lake, "users-by-quarter", {"quarter": "log"}).rows
    assert [r["num_users"] for r in users] == [39, 61, 50, 39, 44, 42]
    states = {r["state"]: r["share"] for r in ask(aaic_lake, "states").rows}
    assert round(states["completed"], 2) == 0.83
