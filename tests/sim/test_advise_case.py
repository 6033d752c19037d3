"""What a rule is measured by, worked by hand: the objective, what must be kept, who loses, and how sure."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from hakaru.sim.advise import Advice, Constraints, Loss, Objective, Rule, metric_of, split_at
from hakaru.sim.advise._advice import _check_jobs, _compared
from hakaru.sim.advise.case import METRICS, Case
from hakaru.sim.advise.losses import waits_of
from hakaru.sim.advise.sureness import change_of
from hakaru.sim.whatif.intervals import Weeks
from tests.sim._jobs import play
from tests.sim.test_advise import EASY, MACHINE, WEEK, Row, jobs_of, week, weeks

THREE = Rule(EASY.policy, (sim.Limit("user", "running-jobs", 3),))
ANN = Objective("mean_wait_s", lambda w: w.user == w.names["user"].index("ann"), "ann's jobs")


def case_of(
    objective: Objective = ANN, constraints: Constraints | None = None, counted: Any = None
) -> Case:
    """Two weeks in which the hog's eight jobs wait 500 s on average, and ann's five 1,520 s."""
    jobs = weeks(2)
    keep = np.ones(len(jobs), bool) if objective.of is None else objective.of(jobs)
    chosen = constraints or Constraints()
    case = Case(jobs, MACHINE, sim.Options(), objective, chosen, keep, counted)
    case.set_baseline(EASY)
    return case


def test_a_rule_is_measured_of_the_chosen_jobs_and_kept_for_all() -> None:
    """With a limit of 3 ann does not wait and the hog waits 875 s: of all, 11,600 s become 7,000 s."""
    keep = {"mean_wait_s": 0.1, "p99_wait_s": 0.25}
    case = case_of(constraints=Constraints(keep, {"user": 0.1, "account": 2.0}))
    assert case.baseline is not None
    assert (case.baseline.value, case.baseline.constraints) == (1520, {})
    got = case.of(THREE)
    assert (got.value, got.chosen["mean_wait_s"]) == (0, 0)
    assert got.all_jobs["mean_wait_s"] == pytest.approx(7000 / 13)
    assert got.chosen["num_jobs"] == 10 and got.all_jobs["num_jobs"] == 26
    assert got.constraints["keep mean_wait_s"] == pytest.approx(-4600 / 11600 - 0.1)
    before, after = (each.all_jobs["p99_wait_s"] for each in (case.baseline, got))
    assert got.constraints["keep p99_wait_s"] == pytest.approx(after / before - 1 - 0.25)
    # a minute is more than a tenth of 500 s; accounts may lose twice as much
    assert got.constraints["no user loses"] == pytest.approx((375 - 60) / 3600)
    assert got.constraints["no account loses"] == pytest.approx((375 - 1000) / 3600)
    assert got.losses == (Loss("user", "hog", 16, 500.0, 875.0),)
    assert got.constraints["every job begins"] == 0
    assert got.broken == ("no user loses",)


def test_only_jobs_that_count_are_measured() -> None:
    """The second week alone: half of the jobs, of which five are ann's; use is that of the week."""
    counted = np.arange(26) >= 13
    case = case_of(counted=counted, constraints=Constraints(loses={"user": 0.1}))
    got = case.of(THREE)
    assert (got.chosen["num_jobs"], got.all_jobs["num_jobs"]) == (5, 13)
    assert got.losses[0].num_jobs == 8
    assert case.weeks.begins.tolist() == [WEEK]
    assert got.all_jobs["utilisation"] == pytest.approx(8500 / (4 * WEEK))


def test_what_is_to_be_raised_is_made_small_as_its_negative() -> None:
    case = case_of(Objective("utilisation"))
    assert case.baseline is not None
    assert case.baseline.value == pytest.approx(-8500 / (4 * WEEK))


def test_a_metric_of_nobody_is_not_known() -> None:
    objective = Objective("p95_wait_s", lambda w: np.zeros(len(w), bool), "jobs of nobody")
    with pytest.raises(HakaruError) as caught:
        case_of(objective)
    assert str(caught.value) == (
        "p95_wait_s of jobs of nobody is not known under what you have: choose another metric or other jobs"
    )


def test_every_metric_has_a_name_that_people_write() -> None:
    for metric in METRICS:
        short = metric.removesuffix("_s").replace("_", "-")
        assert metric_of(short) == metric_of(metric) == metric
    with pytest.raises(HakaruError) as caught:
        metric_of("mean-wiat")
    assert str(caught.value).startswith("there is no metric 'mean-wiat'; did you mean mean-wait")


def test_who_may_lose_by_default_and_as_asked() -> None:
    jobs = weeks(1)
    assert Constraints().resolved(jobs).loses == {"account": 0.1, "user": 0.1}
    given = Constraints({"p95_wait_s": 0.0}, {"user": 0.0}).resolved(jobs)
    assert (given.loses, given.keep) == ({"account": 0.1, "user": 0.0}, {"p95_wait_s": 0.0})
    nameless = replace(jobs, names={**jobs.names, "user": ()})
    with pytest.raises(HakaruError) as caught:
        Constraints(loses={"user": 0.1}).resolved(nameless)
    assert str(caught.value) == (
        "the log knows no users, so that none can be kept from losing: leave out --no-user-loses-more-than"
    )


def test_mean_waits_are_of_jobs_that_begin_and_count() -> None:
    rows = [
        (0, 100, 1, {"user": "ann"}), (0, 100, 1, {"user": "ann"}), (0, 100, 1, {"user": None}),
        (0, 100, 1, {"user": "ben"}), (0, 100, 1, {"user": "cy"}),
    ]  # fmt: skip
    held = [sim.Limit("user", "running-jobs", 0, only="ben")]
    got = play(rows, sim.Machine.flat(1), "fcfs", limits=held)
    waits = waits_of(got, "user", np.array([False, True, True, True, True]))
    assert (list(waits.names), waits.num_jobs.tolist()) == (["ann", "ben", "cy"], [1, 0, 1])
    assert waits.mean_s[[0, 2]].tolist() == [100, 300] and math.isnan(waits.mean_s[1])


@pytest.mark.parametrize(
    ("given", "part", "week_of_split"),
    [
        ((0, 1, 2, 3), 0.7, 3),
        ((0, 1, 2, 3), 0.1, 1),  # one week at least is searched
        ((0, 1, 2, 3), 0.99, 3),  # and one is held out
        ((0, 1, 5, 9), 0.5, 5),  # weeks without jobs do not count
        ((0, 1, 5, 9, 12), 0.5, 5),
    ],
)
def test_a_part_of_the_weeks_is_searched(
    given: tuple[int, ...], part: float, week_of_split: int
) -> None:
    rows: list[Row] = [(50 + number * WEEK, 1, 1, "a", "b") for number in given]
    assert split_at(jobs_of(rows), part) == 50 + week_of_split * WEEK


@pytest.mark.parametrize("part", [0, 1, -0.5, 1.5])
def test_a_part_is_between_nothing_and_all(part: float) -> None:
    with pytest.raises(HakaruError) as caught:
        split_at(weeks(5), part)
    assert str(caught.value) == (f"the part of the log to search is between 0 and 1, found {part}")


def test_too_few_jobs_to_search() -> None:
    with pytest.raises(
        HakaruError, match=r"^a log of no jobs cannot be searched and judged: give a"
    ):
        split_at(jobs_of([]), 0.5)
    many = jobs_of([(n, 1, 1, "a", "b") for n in range(1200)])
    with pytest.raises(HakaruError) as caught:
        split_at(many, 0.5, np.zeros(1200, bool))
    assert str(caught.value) == (
        "only 0 of 1,200 jobs are of months the log can reproduce: too few to search and to judge. Check the "
        "size of the machine with `hakaru simulate --replay`, or count every month with --months all"
    )


def test_both_parts_must_hold_jobs_of_the_objective() -> None:
    first = np.array([True, True, False])
    for keep, part in (([False, False, True], "searched"), ([True, False, False], "held out")):
        with pytest.raises(HakaruError) as caught:
            _check_jobs(np.array(keep), first, ANN)
        assert str(caught.value) == (
            f"the weeks {part} hold none of the ann's jobs: choose other jobs with --for, or another part "
            "with --search-part"
        )
    _check_jobs(np.array([True, False, True]), first, ANN)


def test_where_no_month_can_be_reproduced_all_count() -> None:
    rows = [(0, 20 * 86400, 4, "a", "b", 0)] * 2  # both at once on four PEs
    replayed = sim.simulate(jobs_of(rows), MACHINE, EASY.policy)
    jobs, months = _compared(replayed, "trusted", "UTC")
    assert (jobs.tolist(), months) == ([True, True], (1, 1))


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [(1000.0, 250.0, 0.75), (100.0, 150.0, -0.5), (-0.5, -0.6, 0.2), (0.0, 5.0, 0.0)],
)
def test_a_gain_is_a_part_of_what_it_was(before: float, after: float, gain: float) -> None:
    sides = (SimpleNamespace(held_out=SimpleNamespace(value=value)) for value in (before, after))
    advice: Any = SimpleNamespace(**dict(zip(("baseline", "advised"), sides, strict=True)))
    assert Advice.gain.fget(advice) == pytest.approx(gain)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        # of the two users one waits 300 s in the mean and the other 100 s, then both 100 s
        ("gini_wait", -0.25),
        # (wait + 100) / 100: 4, 2 and 2, then 2
        ("mean_bounded_slowdown", -2 / 3),
        ("median_bounded_slowdown", 0.0),
        ("worst_user_wait_s", None),
    ],
)
def test_which_metrics_have_an_interval(metric: str, change: float | None) -> None:
    """Twelve weeks alike, of one job of ann and two of ben that wait 300, 100 and 100 s, then 100 s."""
    submit = np.repeat(np.arange(12), 3) * WEEK
    jobs = SimpleNamespace(submit=submit, user=np.tile([0, 1, 1], 12))
    sides = []
    for wait in (300, 100):
        waits = np.tile([wait, 100, 100], 12)
        start = submit + waits
        sides.append(SimpleNamespace(wait=waits, start=start, end=start + 100, workload=jobs))
    case: Any = SimpleNamespace(
        objective=Objective(metric), weeks=Weeks.of(submit, 1, 200), keep=np.ones(36, bool)
    )
    got = change_of(case, *sides)  # type: ignore[arg-type]
    assert got == (None if change is None else pytest.approx((change, change)))


def test_only_chosen_jobs_are_in_the_interval() -> None:
    submit = np.repeat(np.arange(12), 2) * WEEK
    jobs = SimpleNamespace(submit=submit, user=np.zeros(24, int))
    before, after = (
        SimpleNamespace(wait=np.tile([wait, 500.0], 12), start=submit, workload=jobs)
        for wait in (300.0, 100.0)
    )
    case: Any = SimpleNamespace(
        objective=Objective("mean_wait_s"),
        weeks=Weeks.of(submit, 1, 200),
        keep=np.tile([True, False], 12),
    )
    assert change_of(case, before, after) == pytest.approx((-200, -200))  # type: ignore[arg-type]


def test_a_week_is_as_it_is_said() -> None:
    """The numbers above are of this week: waits of 500 s and 1,520 s on average."""
    got = sim.simulate(jobs_of(week(0)), MACHINE, EASY.policy)
    assert (got.wait[:8].mean(), got.wait[8:].mean()) == (500, 1520)
