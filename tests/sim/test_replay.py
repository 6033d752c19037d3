"""The replay beside the record: differences and months worked by hand, and AAIC's."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.sim import whatif
from hakaru.sim.advise._advice import _compared
from hakaru.sim.machine import Change
from hakaru.sim.replay import (
    Known,
    differences,
    months_of,
    off_by,
    overload,
    rank_correlation,
    recorded_measures,
    trusted_jobs,
)
from hakaru.sim.whatif.fidelity import Fidelity
from tests.sim._jobs import play, workload

DAY = 86400
MAY, JUNE, JULY = (int(datetime(2018, month, 1, tzinfo=UTC).timestamp()) for month in (5, 6, 7))


def recorded(submit: int, run: int, pes: int, wait: float | None, **more: Any) -> tuple[Any, ...]:
    """A job that began so long after its submission, as the log says."""
    start = None if wait is None else datetime.fromtimestamp(submit + wait, UTC)
    return submit, run, pes, {"wait_s": wait, "started_at": start, **more}


# On two processors the second job waits 100 s for the first, the third 190 s.
JOBS = [
    recorded(0, 100, 2, 0.0),
    recorded(0, 100, 2, 600.0, queue="long"),
    recorded(10, 50, 2, 380.0),
    recorded(5000, 50, 1, None),
]


def test_waits_side_by_side_worked_by_hand():
    schedule = play(JOBS, sim.Machine.flat(2), "fcfs")
    assert schedule.wait.tolist() == [0, 100, 190, 0]
    (row,) = differences(schedule).to_pylist()
    assert row["num_jobs"] == 3  # nobody knows how long the last one waited
    assert row["recorded_mean_s"] == pytest.approx(980 / 3)
    assert row["simulated_mean_s"] == pytest.approx(290 / 3)
    assert (row["recorded_median_s"], row["simulated_median_s"]) == (380, 100)
    assert row["median_apart_s"] == 190  # of 0, 500 and 190
    assert row["share_within_5min"] == pytest.approx(2 / 3)
    assert row["share_within_twice"] == pytest.approx(2 / 3)  # 380 is just twice 190
    assert row["rank_correlation"] == pytest.approx(0.5)  # ranks 1 3 2 and 1 2 3


def test_waits_by_group_and_of_some_jobs():
    schedule = play(JOBS, sim.Machine.flat(2), "fcfs")
    long, normal = differences(schedule, "queue").to_pylist()
    assert (long["queue"], long["recorded_mean_s"], long["simulated_mean_s"]) == ("long", 600, 100)
    assert math.isnan(long["rank_correlation"])
    assert (normal["num_jobs"], normal["recorded_mean_s"]) == (2, 190)
    (none,) = differences(schedule, keep=schedule.start < 0).to_pylist()
    assert (none["num_jobs"], none["recorded_mean_s"]) == (0, None)


def test_short_waits_are_alike():
    schedule = play([recorded(0, 10, 1, 5.0)], sim.Machine.flat(1), "fcfs")
    (row,) = differences(schedule).to_pylist()
    assert (row["simulated_mean_s"], row["share_within_twice"]) == (0, 1)


def test_rank_correlation_with_ties():
    # ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5
    assert rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert rank_correlation([1, 2, 3], [9, 8, 7]) == pytest.approx(-1)
    assert math.isnan(rank_correlation([1, 1], [1, 2]))
    assert math.isnan(rank_correlation([1], [1]))


def test_overload_worked_by_hand():
    # 3 PEs of 2 are taken from 50 to 100, and exactly 2 from 100 to 150
    jobs = workload(recorded(0, 100, 1, 0.0), recorded(0, 100, 2, 50.0))
    machine = sim.Machine.flat(2)
    assert overload(jobs, machine, [0, 100, 200]).tolist() == [0.5, 0]
    assert overload(jobs, machine, [0, 100, 200], times=1.5).tolist() == [0, 0]


def test_overload_knows_the_nodes_that_were_there():
    jobs = workload(recorded(0, 100, 2, 0.0))
    lost = sim.Machine.of_nodes(2, 1, changes=(Change(60, 1, "down"), Change(80, 1, "up")))
    assert overload(jobs, lost, [0, 100]).tolist() == [0.2]


def test_a_node_that_drains_is_there_until_those_have_ended_who_were_on_it():
    drained = sim.Machine.of_nodes(2, 1, changes=(Change(60, 1, "drain"),))
    before, after = recorded(0, 100, 2, 0.0), recorded(0, 50, 2, 150.0)
    assert overload(workload(before), drained, [0, 100]).tolist() == [0]
    assert overload(workload(before, after), drained, [0, 100, 200]).tolist() == [0, 0.5]


def test_months_that_the_record_contradicts():
    jobs = [
        recorded(MAY, 3 * DAY, 4, 0.0),
        recorded(MAY, 25 * DAY, 4, 0.0),  # the same time, twice the machine
        recorded(JUNE, DAY, 1, 0.0),
        recorded(JULY, DAY, 1, 0.0),
    ]
    schedule = play(jobs, sim.Machine.flat(4), "fcfs")
    may, june, july = months_of(schedule)
    assert may.far_overload == may.overload == pytest.approx(3 / 31)
    assert (may.trusted, june.trusted, july.trusted) == ("no", "yes", "yes")
    assert "9.7 % of the time" in may.why
    assert trusted_jobs(schedule, [may, june, july]).tolist() == [False, False, True, True]


def test_a_backlog_carries_over_and_a_little_more_is_a_little():
    jobs = [
        recorded(MAY, 20 * DAY, 4, 0.0),
        recorded(MAY, 20 * DAY, 4, 0.0),
        recorded(MAY, 20 * DAY, 4, 0.0),  # begins on 10 June in the replay
        recorded(JUNE, DAY, 1, 0.0),
        recorded(JULY, 20 * DAY, 4, 0.0),
        recorded(JULY, 20 * DAY, 1, 0.0),  # 5 of 4: no more than a quarter too many
    ]
    may, june, july = months_of(play(jobs, sim.Machine.flat(4), "fcfs"))
    assert (june.backlog, june.trusted, june.overload) == (1, "no", 0)
    assert "1 job of such a month still waits" in june.why
    assert (july.trusted, july.backlog) == ("partly", 0)
    assert "64.5 % of the time" in july.why
    assert may.backlog == 0


def test_no_jobs_have_no_months():
    assert months_of(play([], sim.Machine.flat(4), "fcfs")) == []


def test_aaic_says_which_months_can_be_trusted(aaic_lake: Lake):
    query = f"SELECT {', '.join(sim.COLUMNS)} FROM jobs ORDER BY {sim.ORDER}"
    with open_session(aaic_lake) as session:
        jobs = sim.Workload.of(session.ask(query, Selection(clusters=("aaic",))))
    schedule = sim.simulate(jobs, sim.Machine.of_nodes(38, 8), sim.POLICIES.get("easy"))
    months = {month.name: month for month in months_of(schedule, "Asia/Tokyo")}
    far = {name: month.far_overload for name, month in months.items() if month.far_overload > 0.01}
    assert far == {
        "2018-04": pytest.approx(0.35, abs=0.01),
        "2018-05": pytest.approx(0.07, abs=0.01),
    }
    no = [name for name, month in months.items() if month.trusted == "no"]
    assert no == ["2018-04", "2018-05", "2018-06"]
    keep = trusted_jobs(schedule, list(months.values()), "Asia/Tokyo")
    (row,) = differences(schedule, keep=keep).to_pylist()
    assert row["recorded_mean_s"] == pytest.approx(2065, abs=5)
    assert row["simulated_mean_s"] == pytest.approx(1885, rel=0.05)


def test_errors_are_told_month_by_month_as_they_cancel_in_the_whole():
    """Two months: ten seconds too long in one and too short in the other, and none in the mean of both."""
    keep, month = np.ones(4, bool), np.array([0, 0, 1, 1])
    recorded, simulated = np.array([0.0, 20, 30, 50]), np.array([10.0, 30, 20, 40])
    known = Known(recorded, simulated, month, ["2018-01", "2018-02"], keep)
    assert known.errors()["mean_wait_s"] == known.errors()["median_wait_s"] == 10
    assert known.errors(np.array([True, False, False, False])) == dict.fromkeys(known.errors(), 10)
    assert known.errors(np.zeros(4, bool)) == {}
    assert known.worst_month() == ("2018-01", 2, 10, 20)
    assert off_by(120.0, 90.0) == -0.25
    assert off_by(0.0, 30.0) == 0.5  # a wait below a minute counts as one
    assert off_by(None, 1.0) is None


def test_a_months_error_counts_by_its_jobs():
    """Three jobs off by 10 s in one month, one off by 50 s in the other: 20 s on average."""
    month, keep = np.array([0, 0, 0, 1]), np.ones(4, bool)
    recorded, simulated = np.array([0.0, 0, 0, 100]), np.array([10.0, 10, 10, 50])
    known = Known(recorded, simulated, month, ["2018-01", "2018-02"], keep)
    assert known.errors() == dict.fromkeys(known.errors(), pytest.approx(20))
    assert known.worst_month() == ("2018-02", 1, 100, 50)
    # ten seconds of a minute at least, and half of 100 s
    assert known.months_off() == [pytest.approx(1 / 6), -0.5]


def test_a_percentile_of_a_month_is_that_of_its_jobs():
    """Waits of 0 to 100 s recorded, and none replayed: the median is off by 50 s, the 95th by 95 s."""
    recorded = np.arange(101.0)
    known = Known(recorded, np.zeros(101), np.zeros(101, int), ["2018-01"], np.ones(101, bool))
    assert known.errors() == {
        "mean_wait_s": 50, "median_wait_s": 50, "p95_wait_s": 95, "p99_wait_s": 99,
    }  # fmt: skip


def test_what_is_recorded_stands_beside_only_if_nearly_all_is_known():
    def told(num_unknown: int) -> dict[str, float]:
        jobs = [recorded(10 * i, 5, 1, None if i < num_unknown else 7.0) for i in range(100)]
        return recorded_measures(play(jobs, sim.Machine.flat(4), "fcfs"))

    assert told(6) == told(100) == {}
    assert told(5)["mean_wait_s"] == 7


def test_who_begins_in_the_first_second_of_a_month_has_waited_until_then():
    half = (JUNE - MAY) // 2
    jobs = [recorded(MAY, half, 4, 0.0) for _ in range(3)] + [recorded(JUNE, DAY, 1, 0.0)]
    schedule = play(jobs, sim.Machine.flat(4), "fcfs")
    assert schedule.start.tolist()[2] == JUNE
    assert [month.backlog for month in months_of(schedule)] == [0, 1]


@pytest.mark.parametrize(
    ("months", "counted"),
    [
        ("trusted", {"2018-05"}),
        ("plausible", {"2018-05", "2018-07"}),
        ("all", {"2018-05", "2018-06", "2018-07"}),
    ],
)
def test_months_are_chosen_alike_by_what_if_and_advice(months, counted):
    """May fits; June needs twice the machine for a week, July a quarter more for two."""
    jobs = [
        recorded(MAY, DAY, 1, 0.0),
        recorded(JUNE, 7 * DAY, 4, 0.0),
        recorded(JUNE, 7 * DAY, 4, 0.0),
        recorded(JULY, 14 * DAY, 4, 0.0),
        recorded(JULY, 14 * DAY, 1, 0.0),
    ]
    schedule = play(jobs, sim.Machine.flat(4), "fcfs")
    assert [month.trusted for month in months_of(schedule)] == ["yes", "no", "partly"]
    scenario = whatif.read(f"months = '{months}'\n[[variant]]\nnodes = 1\n")
    fidelity = Fidelity.of(schedule, scenario, "UTC")
    names = {month.name for month in months_of(schedule)}
    assert (fidelity.months or names) == counted
    chosen, (num, total) = _compared(schedule, months, "UTC")
    assert (num, total) == (len(counted), 3)
    assert chosen.tolist() == [
        month in counted for month in ("2018-05", *["2018-06"] * 2, *["2018-07"] * 2)
    ]
