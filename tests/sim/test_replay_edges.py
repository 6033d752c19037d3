"""The replay beside the record at its edges: what counts as too much, as known, and as waiting over."""

from __future__ import annotations

import numpy as np
import pytest

from hakaru import sim
from hakaru.sim.machine import Change
from hakaru.sim.replay import (
    Known,
    Month,
    difference,
    differences,
    months_of,
    off_by,
    overload,
    recorded_measures,
)
from tests.sim._jobs import play, workload
from tests.sim.test_replay import DAY, JUNE, MAY, recorded


@pytest.mark.parametrize(
    ("over", "far", "backlog", "trusted", "why"),
    [
        (0.01, 0.01, 0, "yes", "the recorded jobs fit the machine"),
        (
            0.011,
            0.01,
            0,
            "partly",
            "the recorded jobs need a little more than the machine 1.1 % of the time: it may have been "
            "larger then",
        ),
        (
            0.5,
            0.011,
            3,
            "no",
            "the recorded jobs need more than 1.25 times the machine 1.1 % of the time: they cannot have had "
            "all that is recorded",
        ),
        (0.5, 0.0, 1, "no", "1 job of such a month still waits in the replay when it begins"),
        (
            0.0,
            0.0,
            1500,
            "no",
            "1,500 jobs of such a month still wait in the replay when it begins",
        ),
    ],
)
def test_what_a_month_is_trusted_for(
    over: float, far: float, backlog: int, trusted: str, why: str
) -> None:
    month = Month("2018-05", 9, over, far, backlog)
    assert (month.trusted, month.why) == (trusted, why)


def test_jobs_of_a_month_that_fits_may_wait_into_the_next() -> None:
    """Recorded one after the other, as they are replayed: the second begins in June."""
    late = JUNE - DAY
    jobs = [
        recorded(late, 2 * DAY, 4, 0.0),
        recorded(late, DAY, 4, 2.0 * DAY),
        recorded(JUNE, 60, 1, 3.0 * DAY),
    ]
    schedule = play(jobs, sim.Machine.flat(4), "fcfs")
    assert schedule.start.tolist()[1] == JUNE + DAY
    assert [(month.backlog, month.trusted) for month in months_of(schedule)] == [(0, "yes")] * 2


def test_months_without_jobs_are_not_listed_and_jobs_are_counted() -> None:
    jobs = [recorded(MAY, 60, 1, 0.0)] * 3 + [recorded(MAY + 70 * DAY, 60, 1, 0.0)]
    months = months_of(play(jobs, sim.Machine.flat(4), "fcfs"))
    assert [(month.name, month.num_jobs) for month in months] == [("2018-05", 3), ("2018-07", 1)]


def test_overload_before_and_after_the_bounds_does_not_count() -> None:
    jobs = workload(recorded(0, 50, 3, 0.0), recorded(100, 10, 3, 0.0), recorded(200, 50, 3, 0.0))
    assert overload(jobs, sim.Machine.flat(2), [100, 200]).tolist() == [0.1]


def test_jobs_whose_start_is_unknown_need_nothing() -> None:
    jobs = workload(recorded(0, 100, 9, None), recorded(0, 50, 3, 0.0))
    assert overload(jobs, sim.Machine.flat(2), [0, 100]).tolist() == [0.5]


def test_a_drained_node_waits_for_the_one_who_ends_last() -> None:
    """A short job begins after the long one and ends before: the long one still holds the nodes."""
    changes = (Change(60, 2, "drain"), Change(60, 1, "drain"))
    drained = sim.Machine.of_nodes(3, 1, changes=changes)
    jobs = workload(recorded(0, 100, 2, 0.0), recorded(10, 10, 1, 0.0))
    assert overload(jobs, drained, [0, 100]).tolist() == [0]


def test_a_drained_node_that_fails_is_gone_then() -> None:
    changes = (Change(80, 1, "down"), Change(60, 1, "drain"))
    lost = sim.Machine.of_nodes(2, 1, changes=changes)
    assert overload(workload(recorded(0, 100, 2, 0.0)), lost, [0, 100]).tolist() == [0.2]


def test_a_node_that_nobody_was_on_drains_at_once() -> None:
    """Who begins in the moment of the drain is not on the node that drains."""
    lost = sim.Machine.of_nodes(2, 1, changes=(Change(50, 1, "drain"),))
    assert overload(workload(recorded(50, 50, 2, 0.0)), lost, [0, 100]).tolist() == [0.5]


def test_nodes_that_come_later_are_not_there_before() -> None:
    """Of two nodes the larger comes at 40: two PEs of one until then."""
    groups = (sim.Group(1, 1), sim.Group(1, 4))
    machine = sim.Machine(groups, closed=(1,), changes=(Change(40, 1, "up"),))
    jobs = workload(recorded(0, 100, 2, 0.0))
    assert overload(jobs, machine, [0, 100]).tolist() == [0.4]
    assert overload(jobs, machine, [0, 100], times=2).tolist() == [0]


def test_statistics_of_skewed_waits() -> None:
    """Two jobs in a hundred were recorded to wait 1,000 s, and 18 to wait 100 s; the others not at all."""
    waits = [0.0] * 80 + [100.0] * 18 + [1000.0] * 2
    jobs = [recorded(10 * n, 5, 1, wait) for n, wait in enumerate(waits)]
    schedule = play(jobs, sim.Machine.flat(4), "fcfs")
    found = {"mean_wait_s": 38.0, "median_wait_s": 0.0, "p95_wait_s": 100.0, "p99_wait_s": 1000.0}
    assert recorded_measures(schedule) == pytest.approx(found)
    assert Known.of(schedule).errors() == pytest.approx(found)


def test_only_jobs_that_begin_and_are_kept_are_held_against_the_record() -> None:
    jobs = [recorded(n, 5, 1, wait, user=f"u{n}") for n, wait in enumerate((7.0, 9.0, None, 99.0))]
    held = [sim.Limit("user", "running-jobs", 0, only="u3")]
    schedule = play(jobs, sim.Machine.flat(9), "fcfs", limits=held)
    assert Known.of(schedule).keep.tolist() == [True, True, False, False]
    some = Known.of(schedule, keep=np.array([True, False, True, True]))
    assert some.errors()["mean_wait_s"] == 7
    (row,) = differences(schedule, keep=np.array([False, True, True, True])).to_pylist()
    assert (row["num_jobs"], row["recorded_mean_s"]) == (1, 9)


def test_the_record_is_by_the_month_of_the_site() -> None:
    """20:00 UTC on 31 May is 05:00 on 1 June in Tokyo."""
    at = JUNE - 4 * 3600
    schedule = play([recorded(at, 5, 1, 7.0)], sim.Machine.flat(1), "fcfs")
    for zone, name in (("UTC", "2018-05"), ("Asia/Tokyo", "2018-06")):
        assert differences(schedule, "month", zone)["month"].to_pylist() == [name]
        assert Known.of(schedule, zone).worst_month() == (name, 1, 7, 0)
        assert [month.name for month in months_of(schedule, zone)] == [name]
    nobody = Known.of(schedule, keep=np.array([False]))
    assert nobody.worst_month() is None and nobody.months_off() == []


def test_near_is_five_minutes_or_twice_at_most() -> None:
    recorded_s, simulated = np.array([0.0, 0, 0, 0]), np.array([300.0, 301, 120, 121])
    got = difference(recorded_s, simulated)
    assert (got["share_within_5min"], got["share_within_twice"]) == (0.75, 0.25)
    got = difference(np.array([100.0, 500]), np.array([200.0, 249]))
    assert (got["share_within_twice"], got["median_apart_s"]) == (0.5, 175.5)


@pytest.mark.parametrize(
    ("recorded_s", "simulated", "off"),
    [
        (60.0, 90.0, 0.5),
        (30.0, 90.0, 1.0),
        (61.0, 0.0, -1.0),
        (600.0, 900.0, 0.5),
        (1.0, None, None),
    ],
)
def test_by_which_part_a_mean_is_off(
    recorded_s: float, simulated: float | None, off: float | None
) -> None:
    assert off_by(recorded_s, simulated) == off
