"""Advice: its limits, its words and its lines for Slurm, at their edges."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.sim.advise import (
    Constraints,
    Effort,
    Objective,
    Rule,
    Space,
    advise,
    slurm_lines,
    split_at,
)
from hakaru.sim.advise.case import Case
from hakaru.sim.advise.losses import Loss
from hakaru.sim.advise.search import Search
from hakaru.sim.advise.sureness import change_of
from hakaru.sim.advise.verdict import verdict_of
from hakaru.sim.advise.words import change_text, losses_text, name_of
from hakaru.sim.whatif.intervals import Weeks
from hakaru.sim.words import value_text
from tests.sim._jobs import play
from tests.sim.test_advise import ANYBODY, EASY, MACHINE, jobs_of, weeks
from tests.sim.test_verdict import evidence, measured

DAY, HOUR, WEEK = 86400, 3600, 7 * 86400


def test_three_weeks_are_split_by_their_time() -> None:
    """Seven tenths of seventeen days; two weeks of three would be fourteen."""
    log = jobs_of([(day * DAY, 1, 1, "a", "b") for day in (0, 8, 17)])
    assert split_at(log, 0.7) == round(0.7 * 17 * DAY)


def test_a_rule_by_which_jobs_never_begin_is_broken() -> None:
    jobs, lost = weeks(2), Constraints(loses=ANYBODY)
    case = Case(
        jobs, MACHINE, sim.Options(), Objective("mean_wait_s"), lost, np.ones(len(jobs), bool)
    )
    case.set_baseline(EASY)
    stopped = Rule(EASY.policy, (sim.Limit("user", "running-jobs", 0, only="hog"),))
    assert case.of(stopped).broken == ("every job begins",)
    assert case.of(EASY).broken == ()


def test_only_what_is_better_and_broken_is_refused() -> None:
    known = {1: ("b", measured(600, 0.1)), 2: ("a", measured(500, 0.1)), 3: ("c", measured(400))}
    known |= {4: ("d", measured(1500, 0.1)), 5: ("e", measured(1000, 0.1))}
    search: Any = SimpleNamespace(baseline=measured(1000), known=known)
    assert [point for point, _ in Search.forbidden(search)] == ["a", "b"]
    assert [point for point, _ in Search.allowed(search)] == ["c"]
    assert Search.broken(search) == {"no user loses": 4}


def test_jobs_that_no_longer_begin_are_in_no_interval() -> None:
    """Of twenty jobs a week one of the two that waited 1000 s never begins; the other waits 400 s."""
    jobs = SimpleNamespace(submit=np.repeat(np.arange(12), 20) * WEEK + 5, user=np.zeros(240, int))
    before = SimpleNamespace(wait=np.tile([0.0] * 18 + [1000.0] * 2, 12), start=np.zeros(240, int))
    after = SimpleNamespace(
        wait=np.tile([0.0] * 18 + [400.0, -9e9], 12), start=np.tile([0] * 19 + [-1], 12)
    )
    before.workload = after.workload = jobs
    case: Any = SimpleNamespace(
        objective=Objective("mean_wait_s"),
        weeks=Weeks.of(jobs.submit, 1, 200),
        keep=np.ones(240, bool),
    )
    assert change_of(case, before, after) == pytest.approx((-600 / 19, -600 / 19))  # type: ignore[arg-type]


def test_as_many_trials_as_were_asked_for() -> None:
    lost = Constraints(loses=ANYBODY)
    got = advise(weeks(10), MACHINE, EASY, ("limits",), Objective("mean_wait_s"), lost, Effort(6))
    assert got.num_trials == 6


def test_how_far_weights_are_turned() -> None:
    space = Space.of(weeks(1), MACHINE, EASY, ("weights",))
    assert {knob.name: (knob.low, knob.high) for knob in space.knobs} == {
        "age": (0, 100_000),
        "size": (-500_000, 500_000),
        "fair_share": (0, 100_000),
        "half_life_h": (6, 1440),
    }
    weights = space.rule({**space.now, "half_life_h": 12}).policy.weights
    assert weights is not None and weights.half_life_s == 12 * HOUR


def test_a_qos_has_no_priority_below_zero() -> None:
    policy = replace(
        sim.POLICIES.get("multifactor"), weights=sim.Weights(qos={"low": -5, "high": 7})
    )
    commands = slurm_lines(Rule(policy), EASY).commands
    assert [line.rpartition(" ")[2] for line in commands] == ["Priority=0", "Priority=7"]


def test_the_machine_s_use_grows_by_what_is_used_after_less_what_was_before() -> None:
    """One PE, busy for a day of each of twelve weeks, then for two."""
    before, after = (
        play([(week * WEEK, days * DAY, 1) for week in range(12)], sim.Machine.flat(1), "fcfs")
        for days in (1, 2)
    )
    weekly = Weeks.of(before.workload.submit, 1, 200)
    case: Any = SimpleNamespace(objective=Objective("utilisation"), weeks=weekly)
    assert change_of(case, before, after) == pytest.approx((1 / 7, 1 / 7))


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("p95_wait_s", 5400.0, "90.0 min"),
        ("utilisation", 0.625, "62.5 %"),
        ("mean_bounded_slowdown", 1234.5, "1,234.50"),
        ("mean_wait_s", float("nan"), "–"),
        ("mean_wait_s", None, "–"),
        ("num_unstarted", 1234.0, "1,234"),
        ("gini_wait", -0.004, "0.00"),
    ],
)
def test_values_of_metrics(metric: str, value: float | None, text: str) -> None:
    assert value_text(metric, value) == text
    assert name_of("p95_wait_s") == "p95 wait"


def test_changes_in_percent() -> None:
    pairs = (
        (100.0, 90.0),
        (100.0, 125.0),
        (0.0, 5.0),
        (5.0, 5.0),
        (1e6, 1e6 + 1),
        (float("nan"), 1.0),
    )
    assert [change_text(*pair) for pair in pairs] == [
        "−10.0 %",
        "+25.0 %",
        "new",
        "0.0 %",
        "0.0 %",
        "–",
    ]


def test_five_who_lose_are_named() -> None:
    losses = [Loss("user", f"u{n}", 9, 100.0, 400.0) for n in range(6)]
    assert losses_text(losses[:1]) == "user u0 (100 s to 6.7 min on average, +300.0 %)"
    assert losses_text(losses[:5]).endswith("user u4 (100 s to 6.7 min on average, +300.0 %)")
    assert losses_text(losses).endswith("+300.0 %), and 1 more")
    assert losses_text([Loss("account", "a", 9, 0.5, 61.0)]).endswith("on average, +60.5 s)")


@pytest.mark.parametrize(("num_trials", "is_few"), [(49, True), (50, False)])
def test_fifty_trials_are_not_few(num_trials: int, is_few: bool) -> None:
    same = evidence().baseline
    (why,) = verdict_of(evidence(found=same, num_trials=num_trials)).why
    assert ("trials are few" in why) == is_few


def test_ten_weeks_without_an_interval_are_not_few() -> None:
    (why,) = verdict_of(evidence(interval=None, num_weeks=10)).why
    assert why.startswith("this change has no interval")
    assert measured(1.0, broken=0.0).broken == (), "what is just kept is not broken"
