"""Metrics of users and groups whose waits are skewed, and the groups themselves: sizes, classes, months."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from hakaru.sim.metrics import bounded_slowdown, groups_of, measure, measure_by, month_bounds
from tests.sim._jobs import play, workload

# One after the other on one PE: ann waits 0 and 100 s, ben 110 s, cy 115 s; eve may never run.
USERS = [
    (0, 100, 1, {"user": "ann"}), (0, 10, 1, {"user": "ann"}), (0, 5, 1, {"user": "ben"}),
    (0, 1, 1, {"user": "cy"}), (0, 1, 1, {"user": "eve"}), (0, 1, 1, {"user": None}),
]  # fmt: skip


def test_users_of_unequal_waits() -> None:
    held = [sim.Limit("user", "running-jobs", 0, only="eve")]
    got = play(USERS, sim.Machine.flat(1), "fcfs", limits=held)
    assert got.wait.tolist()[:4] == [0, 100, 110, 115] and got.start[4] == -1
    whole = measure(got)
    assert whole["worst_user_wait_s"] == 115
    # means of 50, 110 and 115 s: (−2 × 50 + 0 × 110 + 2 × 115) / (3 × 275)
    assert whole["gini_wait"] == pytest.approx(130 / 825)
    assert (whole["num_jobs"], whole["num_unstarted"]) == (6, 1)
    others = measure(got, got.workload.user != 2)  # without cy
    assert others["worst_user_wait_s"] == 110


def test_a_group_s_mean_median_and_percentile_differ() -> None:
    """Four of one queue wait 0, 100, 110 and 1,110 s, one of another 2,110 s."""
    runs = (100, 10, 1000, 1000, 1)
    jobs = [(0, run, 1, {"queue": "b" if run > 1 else "a"}) for run in runs]
    a, b = measure_by(play(jobs, sim.Machine.flat(1), "fcfs"), "queue").to_pylist()
    assert (a["queue"], a["num_jobs"], a["mean_wait_s"], a["p95_wait_s"]) == ("a", 1, 2110, 2110)
    assert (b["queue"], b["mean_wait_s"], b["median_wait_s"]) == ("b", 330, 105)
    assert b["p95_wait_s"] == pytest.approx(110 + 0.85 * 1000)
    # 1, 110/10, 1110/1000 and 2110/1000
    assert b["mean_bounded_slowdown"] == pytest.approx((1 + 11 + 1.11 + 2.11) / 4)


def test_a_run_of_ten_seconds_counts_as_such_and_a_shorter_one_as_ten() -> None:
    jobs = [(0, 100, 1), (0, 10, 1), (0, 9, 1), (500, 5, 1)]
    got = bounded_slowdown(play(jobs, sim.Machine.flat(1), "fcfs"))
    # at least 1, though 5 s are half of ten
    assert got.tolist() == pytest.approx([1, 11, 11.9, 1])


def test_sizes_are_up_to_each_power_of_two() -> None:
    jobs = workload(*((0, 1, pes) for pes in (1, 2, 3, 4, 5, 8, 9, 16, 17)))
    codes, names = groups_of(jobs, "size")
    assert list(names) == ["1", "2", "3-4", "5-8", "9-16", "17-32"]
    assert codes.tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 5]
    codes, names = groups_of(workload((0, 1, 6), (0, 1, 64)), "size")
    assert (codes.tolist(), list(names)) == ([0, 1], ["5-8", "33-64"])  # without those of no job


def test_classes_are_by_the_nodes_of_the_log() -> None:
    sizes = [(1, 1), (1, None), (4, 1), (4, 2), (4, None), (4, 0)]
    jobs = workload(*((0, 1, pes, {"span_nodes": nodes}) for pes, nodes in sizes))
    codes, names = groups_of(jobs, "class")
    assert [names[code] for code in codes] == [
        "single-pe", "single-pe", "single-node", "multi-node", "unknown-nodes", "unknown-nodes",
    ]  # fmt: skip


def test_groups_are_by_name_and_the_unknown_last() -> None:
    jobs = workload(*((0, 1, 1, {"queue": name}) for name in ("b", None, "c", "a", "b")))
    codes, names = groups_of(jobs, "queue")
    assert (list(names), codes.tolist()) == (["a", "b", "c", "(unknown)"], [1, 3, 2, 0, 1])


def test_what_jobs_cannot_be_grouped_by() -> None:
    with pytest.raises(HakaruError) as caught:
        groups_of(workload((0, 1, 1)), "queu")
    assert str(caught.value) == "cannot measure by 'queu'; did you mean queue?"


@pytest.mark.parametrize(
    ("zone", "begin", "names"),
    [
        ("UTC", "2017-11-01T00:00:00+00:00", ["2017-11", "2017-12", "2018-01"]),
        ("Asia/Kolkata", "2017-12-01T00:00:00+05:30", ["2017-12", "2018-01"]),
        ("America/St_Johns", "2017-11-01T00:00:00-02:30", ["2017-11", "2017-12"]),
    ],
)
def test_months_begin_on_the_site_s_clock(zone: str, begin: str, names: list[str]) -> None:
    """From 20:00 on 30 November to 02:00 on 1 January, in UTC."""
    moments = (datetime(2017, 11, 30, 20, tzinfo=UTC), datetime(2018, 1, 1, 2, tzinfo=UTC))
    jobs = workload(*((moment.timestamp(), 1, 1) for moment in moments))
    begins, got = month_bounds(jobs, zone)
    assert got == names
    assert begins[0] == datetime.fromisoformat(begin).timestamp()
    assert len(begins) == len(names) + 1
    codes, present = groups_of(jobs, "month", zone)
    assert list(present) == [names[0], names[-1]]  # nobody submits in between
    assert codes.tolist() == [0, 1]


def test_a_job_in_the_first_second_of_a_month_is_of_that_month() -> None:
    june = datetime(2018, 6, 1, tzinfo=UTC).timestamp()
    codes, names = groups_of(workload((june - 1, 1, 1), (june, 1, 1)), "month")
    assert (codes.tolist(), list(names)) == ([0, 1], ["2018-05", "2018-06"])
    assert month_bounds(workload()) == ([], [])


def test_nothing_is_known_of_jobs_that_never_begin() -> None:
    held = [sim.Limit("all", "running-jobs", 0)]
    got = measure(play([(0, 1, 1)], sim.Machine.flat(1), "fcfs", limits=held))
    assert (got["num_jobs"], got["num_unstarted"]) == (1, 1)
    assert math.isnan(got["worst_user_wait_s"]) and math.isnan(got["median_bounded_slowdown"])
