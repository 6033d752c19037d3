"""A run beside the baseline: each group with its own error, and what is noted of jobs that do not run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.sim.machine import Change
from hakaru.sim.replay import Month
from hakaru.sim.site import Site
from hakaru.sim.whatif import Outcome, read, run
from hakaru.sim.whatif.compare import _left_out, groupings_of
from hakaru.sim.whatif.curves import busy_of, capacity_up_to, use_of
from hakaru.sim.whatif.fidelity import _left_out as months_left_out
from hakaru.sim.whatif.intervals import WEEK_S
from tests.sim._jobs import play, workload

TEXT = """
[machine]
processors = 2
[[variant]]
name = "four"
machine = { processors = 4 }
[[variant]]
name = "limit"
limits = ["user=bob:running-jobs=0"]
"""


def weekly(num_weeks: int = 12) -> Any:
    """Each week three jobs of ann and three of bob at once, 100 s each, on one PE each.

    On two PEs ann's wait 0, 0 and 100 s, bob's 100, 200 and 200 s; on four all of ann's begin at once, and
    bob's after 0, 100 and 100 s. Ann is recorded to wait 30 s longer than replayed, bob 60 s.
    """
    jobs = []
    replayed = [("ann", 0), ("ann", 0), ("ann", 100), ("bob", 100), ("bob", 200), ("bob", 200)]
    for at in range(0, num_weeks * WEEK_S, WEEK_S):
        for user, wait in replayed:
            longer = wait + (30.0 if user == "ann" else 60.0)
            started = datetime.fromtimestamp(at + longer, UTC)
            more = {"user": user, "queue": user, "wait_s": longer, "started_at": started}
            jobs.append((at, 100, 1, more))
    return workload(*jobs)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run(read(TEXT), weekly(), Site(unit="cpu"), num_processes=1)


def test_each_group_has_its_own_waits_and_its_own_error(outcome: Outcome) -> None:
    groups = {(each.by, each.group): each for each in outcome.variants[0].groups}
    ann, bob = (groups["queue", name] for name in ("ann", "bob"))
    assert (ann.num_jobs, bob.num_jobs) == (36, 36)
    mean, median, p95 = (ann.changes[f"{name}_wait_s"] for name in ("mean", "median", "p95"))
    assert (mean.before, mean.after) == (pytest.approx(100 / 3), 0)
    assert (median.before, median.after, p95.before, p95.after) == (0, 0, 100, 0)
    mean, median, p95 = (bob.changes[f"{name}_wait_s"] for name in ("mean", "median", "p95"))
    assert (mean.before, mean.after) == (pytest.approx(500 / 3), pytest.approx(200 / 3))
    assert (median.before, median.after, p95.before, p95.after) == (200, 100, 200, 100)
    assert [each.error for each in ann.changes.values()] == [pytest.approx(30)] * 3
    assert [each.error for each in bob.changes.values()] == [pytest.approx(60)] * 3
    assert (mean.low, mean.high, mean.num_weeks) == (pytest.approx(-100), pytest.approx(-100), 12)
    whole = outcome.variants[0].changes["mean_wait_s"]
    assert (whole.before, whole.after) == (pytest.approx(100), pytest.approx(100 / 3))
    assert whole.error == pytest.approx(45)


def test_where_a_group_no_longer_runs_its_changes_have_no_interval(outcome: Outcome) -> None:
    limit = outcome.variants[1]
    assert limit.metrics["num_no_longer_run"] == 36
    assert (limit.metrics["num_jobs"], limit.metrics["num_unstarted"]) == (72, 36)
    wait = limit.changes["mean_wait_s"]
    assert (wait.before, wait.low, wait.has_too_few_weeks) == (pytest.approx(100 / 3), None, False)
    assert wait.error == pytest.approx(30)  # of ann's jobs, which begin in both
    groups = {(each.by, each.group): each for each in limit.groups}
    assert ("queue", "bob") not in groups
    (account,) = [each for each in limit.groups if each.by == "account"]
    assert (account.num_jobs, account.num_no_longer_run) == (36, 36)
    assert account.changes["median_wait_s"].has_too_few_weeks is False
    assert account.changes["mean_wait_s"].error == pytest.approx(30)
    assert groups["queue", "ann"].changes["mean_wait_s"].low is not None
    assert limit.no_longer_run["queue"] == {"bob": 36}
    assert limit.notes == ("36 jobs never begin under these rules, and count in no wait",)


def test_without_a_record_there_is_no_error() -> None:
    jobs = [(at * WEEK_S, 100, 1) for at in range(12) for _ in range(3)]
    (variant, _) = run(read(TEXT.replace("bob", "ann")), workload(*jobs), num_processes=1).variants
    assert {change.error for change in variant.changes.values()} == {None}
    assert {change.error for each in variant.groups for change in each.changes.values()} == {None}


def test_too_few_weeks_are_said_only_where_an_interval_was_asked_for() -> None:
    four, _ = run(read(TEXT), weekly(9), Site(unit="cpu"), num_processes=1).variants
    asked = {name for name, change in four.changes.items() if change.has_too_few_weeks}
    assert asked == {
        "mean_wait_s", "median_wait_s", "p95_wait_s", "p99_wait_s", "mean_bounded_slowdown",
        "gini_wait", "utilisation",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("held", "notes"),
    [
        (0, ["1 job left out: larger than the machine"]),
        (
            1,
            [
                "1 job left out: larger than the machine",
                "1 job never begins under these rules, and counts in no wait",
            ],
        ),
        (
            2,
            [
                "1 job left out: larger than the machine",
                "2 jobs never begin under these rules, and count in no wait",
            ],
        ),
    ],
)
def test_jobs_that_do_not_run_are_noted(held: int, notes: list[str]) -> None:
    jobs = [(0, 1, 9), (0, 1, 1), *[(0, 1, 1, {"user": "eve"})] * held]
    limits = [sim.Limit("user", "running-jobs", 0, only="eve")] if held else []
    assert _left_out(play(jobs, sim.Machine.flat(2), "fcfs", limits=limits)) == notes


def test_several_months_that_are_left_out_name_the_worst() -> None:
    fits, little, far = (
        Month(f"2018-0{number}", number, over, much, 0)
        for number, over, much in ((5, 0.0, 0.0), (6, 0.5, 0.0), (7, 0.5, 0.25))
    )
    scenario: Any = None
    assert months_left_out([little, fits, far], [fits], scenario) == (
        "Compared are the 5 of 18 jobs submitted in months the log can reproduce (2018-05); all are "
        "replayed. Left out: 2018-06, 2018-07; 2018-07, for one, as the recorded jobs need more than 1.25 "
        "times the machine 25.0 % of the time: they cannot have had all that is recorded. `months = "
        '"plausible"` or "all" compares more.'
    )
    two = (little, Month("2018-08", 2000, 0.75, 0.0, 0))
    told = months_left_out([fits, *two], [fits], scenario)
    assert "the 5 of 2,011 jobs" in told
    assert (
        "Left out: 2018-06, 2018-08; 2018-06, for one, as the recorded jobs need a little" in told
    )


def test_the_busy_curve_goes_from_the_first_submission_to_the_last() -> None:
    """An hour on two PEs, then an hour of nothing, then a job submitted in the third."""
    hour = 3600
    got = play([(1000, hour, 2), (1000 + 2 * hour, 60, 1)], sim.Machine.flat(4), "fcfs")
    assert busy_of(got, 1000, 1000 + 2 * hour) == ((1000, 2.0), (1000 + hour, 0.0))
    told = run(
        read("[machine]\nprocessors = 4\n[[variant]]\nmachine = { processors = 8 }\n"),
        got.workload,
        num_processes=1,
    )
    assert told.baseline.busy == ((1000, 2.0), (1000 + hour, 0.0))


def test_use_is_of_what_is_there_in_each_span() -> None:
    """Of nodes of 1 and 4 PEs the larger comes at 50, and a job of a PE runs from 20 to 80."""
    groups = (sim.Group(1, 1), sim.Group(1, 4))
    changes = (Change(50, 1, "up"),)
    machine = sim.Machine(groups, closed=(1,), changes=changes)
    got = play([(20, 60, 1)], machine, "fcfs")
    begins = np.array([0, 50, 100])
    used, there = use_of(got, begins, 50)
    assert (used.tolist(), there.tolist()) == ([30, 30, 0], [50, 250, 250])


def test_what_changes_before_the_first_moment_counts_from_then_on() -> None:
    changes = tuple(Change(time, 1, kind) for time, kind in ((30, "up"), (10, "down"), (40, "up")))
    machine = sim.Machine.of_nodes(2, 3, changes=changes)
    moments = np.array([100, 110])
    assert capacity_up_to(machine, 100, moments).tolist() == [0, 60]
    assert capacity_up_to(machine, 0, moments).tolist() == [600 - 60, 660 - 60]


def test_groups_of_jobs_that_nobody_is_known_of() -> None:
    jobs = workload((0, 10, 1, {"user": None, "account": None, "queue": None}), (0, 10, 1))
    queue, _, users, accounts = groupings_of(jobs)
    assert list(queue.names) == ["normal", "(unknown)"]
    assert (users.code.tolist(), accounts.code.tolist()) == ([-1, 0], [-1, 0])
    assert list(users.names) == ["heavy users (1)", "medium users (0)", "light users (0)"]
