"""The metrics of a schedule, worked by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from hakaru.errors import HakaruError
from hakaru.sim import POLICIES, Limit, Machine, Options, Workload, simulate
from hakaru.sim.metrics import gini, measure, measure_by, why_waited


def jobs_of(rows: list[tuple[int, int, int, str | None, str]], begin: int = 0) -> Workload:
    """Jobs as (submit, run, PEs, user, queue) that ask for what they run."""
    num = len(rows)
    times = [datetime.fromtimestamp(begin + row[0], UTC) for row in rows]
    return Workload.of(
        pa.table(
            {
                "cluster": ["c"] * num,
                "job_id": [str(number) for number in range(num)],
                "user": pa.array([row[3] for row in rows], pa.string()),
                "account": pa.array([None] * num, pa.string()),
                "queue": [row[4] for row in rows],
                "qos": pa.array([None] * num, pa.string()),
                "gpu_model": pa.array([None] * num, pa.string()),
                "num_pes": [row[2] for row in rows],
                "span_nodes": pa.array([1.0] * num, pa.float64()),
                "requested_s": [float(row[1]) for row in rows],
                "submitted_at": pa.array(times, pa.timestamp("us", "UTC")),
                "started_at": pa.array(times, pa.timestamp("us", "UTC")),
                "run_s": [float(row[1]) for row in rows],
                "wait_s": [0.0] * num,
                "state": ["completed"] * num,
            }
        )
    )


# On 4 processors in order: 0 runs from 0 to 100; 1 needs all and runs from 100 to 200; 2 is behind it and
# runs from 200 to 205, where the last one, which has no user, finds room beside it.
ROWS = [
    (0, 100, 3, "ann", "a"),
    (10, 100, 4, "ben", "a"),
    (20, 5, 1, "ann", "b"),
    (100, 50, 2, None, "b"),
]


@pytest.fixture(scope="module")
def schedule():
    return simulate(jobs_of(ROWS), Machine.flat(4), POLICIES.get("fcfs"))


def test_waits_and_slowdowns_are_those_worked_by_hand(schedule):
    assert schedule.wait.tolist() == [0, 90, 180, 100]
    got = measure(schedule)
    assert got["num_jobs"] == 4 and got["num_unstarted"] == 0
    assert got["mean_wait_s"] == 92.5
    assert got["median_wait_s"] == 95
    assert got["p95_wait_s"] == pytest.approx(168)  # 0.95 × 3 = 2.85: 100 + 0.85 × 80
    # 1, 190/100, 185/10 (its five seconds count as ten), 150/50
    assert got["mean_bounded_slowdown"] == pytest.approx((1 + 1.9 + 18.5 + 3) / 4)
    assert got["median_bounded_slowdown"] == pytest.approx((1.9 + 3) / 2)


def test_the_machine_is_used_as_worked_by_hand(schedule):
    got = measure(schedule)
    busy = 100 * 3 + 100 * 4 + 5 * 1 + 50 * 2
    assert got["utilisation"] == pytest.approx(busy / (4 * 250))
    assert got["idle_while_waiting"] == pytest.approx(
        90 * 1 / (4 * 250)
    )  # one is free from 10 to 100
    assert got["pe_hours_lost"] == 0


def test_fairness_is_between_the_users_who_are_known(schedule):
    got = measure(schedule)
    # ann waits 90 in the mean, ben 90: the same
    assert got["gini_wait"] == 0
    assert got["worst_user_wait_s"] == 90


def test_gini_of_known_shares():
    assert gini([1, 1, 1]) == pytest.approx(0)
    assert gini([0, 0, 0, 1]) == pytest.approx(0.75)
    assert gini([1, 3]) == pytest.approx(0.25)
    assert gini([0, 0]) == 0
    assert min(gini(np.full(n, 0.1 * n)) for n in range(1, 200)) >= 0  # rounding is no inequality
    assert math.isnan(gini([]))


def test_a_mask_chooses_whose_waits_count(schedule):
    got = measure(schedule, np.array([False, True, False, True]))
    assert (got["num_jobs"], got["mean_wait_s"]) == (2, 95)
    assert got["utilisation"] == measure(schedule)["utilisation"]


def test_nothing_is_known_of_no_jobs():
    got = measure(simulate(jobs_of([]), Machine.flat(4), POLICIES.get("fcfs")))
    assert got["num_jobs"] == 0
    assert all(
        math.isnan(got[name]) for name in ("mean_wait_s", "p99_wait_s", "utilisation", "gini_wait")
    )


def test_by_queue(schedule):
    assert measure_by(schedule, "queue").to_pylist() == [
        {
            "queue": "a", "num_jobs": 2, "mean_wait_s": 45.0, "median_wait_s": 45.0,
            "p95_wait_s": pytest.approx(85.5), "mean_bounded_slowdown": pytest.approx(1.45),
        },
        {
            "queue": "b", "num_jobs": 2, "mean_wait_s": 140.0, "median_wait_s": 140.0,
            "p95_wait_s": pytest.approx(176), "mean_bounded_slowdown": pytest.approx(10.75),
        },
    ]  # fmt: skip


def test_by_size_user_account_and_class(schedule):
    sizes = measure_by(schedule, "size")
    assert sizes["size"].to_pylist() == ["1", "2", "3-4"]
    assert sizes["mean_wait_s"].to_pylist() == [180, 100, 45]
    users = measure_by(schedule, "user")
    assert users["user"].to_pylist() == ["ann", "ben", "(unknown)"]
    assert users["mean_wait_s"].to_pylist() == [90, 90, 100]
    assert measure_by(schedule, "account")["account"].to_pylist() == ["(unknown)"]
    classes = measure_by(schedule, "class")
    assert classes["class"].to_pylist() == ["single-pe", "single-node"]
    assert classes["num_jobs"].to_pylist() == [1, 3]


def test_by_month_on_the_sites_clock():
    end_of_june = int(datetime(2018, 6, 30, 23, 0, tzinfo=UTC).timestamp())
    rows = [(0, 10, 1, "ann", "a"), (7200, 10, 1, "ann", "a")]
    got = simulate(jobs_of(rows, end_of_june), Machine.flat(4), POLICIES.get("fcfs"))
    assert measure_by(got, "month")["month"].to_pylist() == ["2018-06", "2018-07"]
    assert measure_by(got, "month", "Asia/Tokyo")["month"].to_pylist() == ["2018-07"]


def test_an_unknown_group_is_refused_with_what_there_is(schedule):
    with pytest.raises(HakaruError, match="queue"):
        measure_by(schedule, "queues")


def test_why_jobs_waited(schedule):
    rows = why_waited(schedule).to_pylist()
    assert sum(row["num_jobs"] for row in rows) == 3
    assert sum(row["share_of_jobs"] for row in rows) == pytest.approx(0.75)
    assert sum(row["share_of_wait"] for row in rows) == pytest.approx(1)
    # The third is behind the second until that begins, and then too little is free.
    assert [row["reason"] for row in rows] == ["resources"]


def test_reasons_are_weighed_by_jobs_and_by_waiting():
    # At 20 the third would fit beside the first, but nobody overtakes; both begin at 100.
    rows = [(0, 100, 2, "a", "q"), (10, 100, 3, "a", "q"), (20, 5, 1, "a", "q")]
    got = why_waited(simulate(jobs_of(rows), Machine.flat(4), POLICIES.get("fcfs"))).to_pylist()
    assert got == [
        {
            "reason": "resources", "num_jobs": 1,
            "share_of_jobs": pytest.approx(1 / 3), "share_of_wait": pytest.approx(90 / 170),
        },
        {
            "reason": "behind others", "num_jobs": 1,
            "share_of_jobs": pytest.approx(1 / 3), "share_of_wait": pytest.approx(80 / 170),
        },
    ]  # fmt: skip


def test_a_group_counts_the_jobs_that_never_begin():
    rows = [(0, 100, 2, "ann", "q"), (10, 100, 2, "ann", "q"), (20, 5, 1, "ben", "q")]
    held = Options(limits=[Limit("user", "running-jobs", 0, only="ben")])
    got = simulate(jobs_of(rows), Machine.flat(2), POLICIES.get("fcfs"), held)
    ann, ben = measure_by(got, "user").to_pylist()
    assert (ann["num_jobs"], ann["num_unstarted"], ann["mean_wait_s"]) == (2, 0, 45)
    assert ben["num_jobs"] == ben["num_unstarted"] == 1 and math.isnan(ben["mean_wait_s"])
    whole = measure(got)
    assert (whole["num_jobs"], whole["num_unstarted"], whole["mean_wait_s"]) == (3, 1, 45)


def test_each_percentile_is_its_own():
    """One after the other on one PE: waits of 0, 100, ..., 10,000 s less a second each."""
    rows = [(number, 101, 1, "ann", "q") for number in range(101)]
    got = measure(simulate(jobs_of(rows), Machine.flat(1), POLICIES.get("fcfs")))
    assert [got[f"{name}_wait_s"] for name in ("median", "p95", "p99")] == [5000, 9500, 9900]
    assert got["mean_wait_s"] == 5000
    # (wait + 101) / 101: in the median 5101/101
    assert got["median_bounded_slowdown"] == pytest.approx(5101 / 101)
