"""The verdict of advice: one of three, by its own numbers, and lines for Slurm only with a change."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.sim import POLICIES, Machine, simulate
from hakaru.sim.advise import Advice, Constraints, Effort, Found, Loss, Measured, Objective, advise
from hakaru.sim.advise.case import _worse
from hakaru.sim.advise.losses import Waits, excess_h, losses_of
from hakaru.sim.advise.search import Search
from hakaru.sim.advise.space import Knob, Rule, Space
from hakaru.sim.advise.sureness import change_of
from hakaru.sim.advise.verdict import Evidence, verdict_of
from hakaru.sim.whatif.intervals import Weeks
from tests.sim.test_advise import ANYBODY, EASY, MACHINE, P95_OF_ANN, WEEK, Row, jobs_of, weeks


def gentle(num: int) -> list[Row]:
    """Eight jobs of 1000 s at once on 4 PEs, and four short ones that wait for both rounds.

    Before the second round the short ones wait 1000 s less, and that round 100 s more: in the mean of the
    eight 50 s, which is a tenth of their 500 s, and less than a minute.
    """
    rows: list[Row] = []
    for at in range(0, num * WEEK, WEEK):
        rows += [(at, 1000, 1, "hog", "big", 0)] * 4 + [(at, 1000, 1, "hog", "big", 1000)] * 4
        rows += [(at + s, 100, 1, "ann", "lab", 2000 - s) for s in (100, 300, 500, 700)]
    return rows


def test_a_real_gain_by_which_nobody_loses_is_advised():
    effort = Effort(num_trials=24, seed=1)
    got = advise(jobs_of(gentle(34)), MACHINE, EASY, ("weights",), P95_OF_ANN, effort=effort)
    assert got.verdict.kind == "change"
    assert got.rule is not None and got.verdict.why == ()
    assert got.constraints.loses == {"account": 0.1, "user": 0.1}
    # p95 of waits of 1900, 1700, 1500 and 1300 s, and of 900 to 300 s
    assert got.baseline.held_out.value == pytest.approx(1900, abs=40)
    assert got.advised.held_out.value == pytest.approx(900, abs=40)
    assert got.verdict.sentence.startswith(
        "Change the settings below: p95 wait of ann's jobs goes from "
    )
    assert got.verdict.sentence.endswith(
        " No account loses more than 10 % and no user loses more than 10 % in mean wait."
    )
    check(got, "p95_wait_s")


def test_a_gain_within_the_replays_error_is_none():
    """The log has ann wait an hour longer than the replay: a gain of half an hour is no evidence."""
    lost = Constraints(loses=ANYBODY)
    effort = Effort(num_trials=8, seed=1)
    got = advise(weeks(34, off=3600), MACHINE, EASY, ("limits",), P95_OF_ANN, lost, effort)
    assert got.gain > 0.9
    assert (got.verdict.kind, got.rule) == ("keep", None)
    assert "farther from the record (by 60.0 min in a month's p95 wait of" in got.verdict.why[0]
    assert got.verdict.why[0].endswith("on average over the weeks held out)")
    assert "Change" not in got.verdict.sentence
    check(got, "p95_wait_s")


def test_what_has_no_interval_or_no_known_error_is_to_be_tried():
    lost, effort = Constraints(loses=ANYBODY), Effort(num_trials=8, seed=1)
    few = advise(weeks(10), MACHINE, EASY, ("limits",), P95_OF_ANN, lost, effort)
    assert (few.verdict.kind, few.rule) == ("try", None)
    assert few.verdict.why == (
        "an interval needs 10 weeks held out and has 3, so how much of the gain is chance is not known",
    )
    slowdown = replace(P95_OF_ANN, metric="mean_bounded_slowdown")
    unknown = advise(weeks(34), MACHINE, EASY, ("limits",), slowdown, lost, effort)
    assert unknown.verdict.kind == "try"
    assert unknown.verdict.why == (
        "how far the replay is from the record in mean bounded slowdown is not known",
    )
    for got, metric in ((few, "p95_wait_s"), (unknown, "mean_bounded_slowdown")):
        assert got.verdict.sentence.startswith(
            "Try the settings below on a part of the machine first: "
        )
        check(got, metric)


# Worked by hand: may lose a tenth, but a minute at least.
@pytest.mark.parametrize(
    ("before", "after", "most", "loses"),
    [
        (2.0, 3.0, 0.1, False),  # half as much again, and one second
        (0.0, 60.0, 0.1, False),
        (0.0, 61.0, 0.1, True),
        (600.0, 660.0, 0.1, False),
        (600.0, 661.0, 0.1, True),
        (6000.0, 6600.0, 0.1, False),
        (6000.0, 6601.0, 0.1, True),
        (6000.0, 6601.0, 0.2, False),
        (6000.0, 1.0, 0.1, False),
        (math.nan, math.nan, 0.1, False),
    ],
)
def test_who_loses(before, after, most, loses):
    was, then = (
        Waits("user", ("ann", "ben"), np.array([value, 5.0]), np.array([5, 9]))
        for value in (before, after)
    )
    assert (excess_h(was, then, most) > 0) == loses
    assert losses_of(was, then, most) == ([Loss("user", "ann", 5, before, after)] if loses else [])


def test_the_mean_of_a_few_jobs_is_named_but_refuses_nothing():
    was, then = (
        Waits("user", ("ann", "ben"), np.array([0.0, 100.0]), np.array([4, 9])) for _ in range(2)
    )
    then = replace(then, mean_s=np.array([7200.0, 100.0]))
    assert excess_h(was, then, 0.1) < 0
    (loss,) = losses_of(was, then, 0.1)
    assert (loss.name, loss.is_certain) == ("ann", False)
    assert losses_of(was, replace(then, mean_s=np.array([500.0, 900.0])), 0.1)[0].name == "ben"


def test_a_log_without_accounts_asks_nothing_of_them_unless_it_is_asked_to():
    rows = jobs_of(gentle(2))
    nameless = replace(rows, names={**rows.names, "account": ()})
    assert Constraints().resolved(nameless).loses == {"user": 0.1}
    assert Constraints(loses={"user": math.inf}).resolved(nameless).loses == {}
    with pytest.raises(HakaruError, match="the log knows no accounts"):
        Constraints(loses={"account": 0.1}).resolved(nameless)


def measured(value: float, broken: float = -1.0, losses: tuple[Loss, ...] = ()) -> Measured:
    return Measured(value, {"p95_wait_s": value}, {}, {"no user loses": broken}, losses)


def evidence(**changed: Any) -> Evidence:
    """From 1000 s to 500 s on both parts, surely, with an error of 100 s."""
    knob = Knob("gpus_per_user", 4, 1, 4)
    space = Space(EASY, (knob,), 4)
    plain: dict[str, Any] = {
        "objective": Objective("p95_wait_s"),
        "constraints": Constraints(loses={"user": 0.1}),
        "space": space,
        "rule": EASY,
        "baseline": Found({}, measured(1000), measured(1000)),
        "found": Found({}, measured(500), measured(500)),
        "refused": None,
        "interval": (-700.0, -300.0),
        "num_weeks": 12,
        "error": 100.0,
        "num_trials": 100,
        "num_settings": 90,
    }
    return Evidence(**(plain | changed))


FEW, MANY = (Loss("user", "eve", num, 100.0, 400.0) for num in (4, 5))


@pytest.mark.parametrize(
    ("changed", "kind", "why"),
    [
        ({}, "change", None),
        ({"found": Found({}, measured(1000), measured(500))}, "keep", "none of the 90 settings"),
        ({"found": Found({}, measured(500), measured(1000))}, "keep", "no better than what you have"),
        ({"found": Found({}, measured(500), measured(500, 0.1, (MANY,)))}, "keep", "user eve (100 s to"),
        ({"found": Found({}, measured(500), measured(500, -1.0, (FEW,)))}, "try", "fewer than 5 jobs"),
        ({"interval": (-700.0, 0.0)}, "keep", "holds zero"),
        ({"interval": (-700.0, -1.0)}, "change", None),
        ({"interval": None}, "try", "has no interval"),
        ({"interval": None, "num_weeks": 9}, "try", "an interval needs 10 weeks held out and has 9"),
        ({"error": 500.0}, "keep", "farther from the record (by 8.3 min"),
        ({"error": 499.0}, "change", None),
        ({"error": None}, "try", "how far the replay is from the record"),
        ({"rule": Rule(POLICIES.get("easy-sjbf"))}, "try", "Slurm cannot backfill in this way"),
    ],
)  # fmt: skip
def test_one_verdict_from_the_evidence(changed, kind, why):
    got = verdict_of(evidence(**changed))
    assert got.kind == kind
    assert [why in each for each in got.why] == ([] if why is None else [True])
    begins = {"change": "Change ", "try": "Try ", "keep": "Do not change "}
    assert got.sentence.startswith(begins[kind])


def test_what_is_to_be_raised_counts_the_other_way():
    """Utilisation from 50 % to 60 %: what is made small is its negative."""
    sides = [Measured(-share, {"utilisation": share}, {}) for share in (0.5, 0.6)]
    found = {"baseline": Found({}, sides[0], sides[0]), "found": Found({}, sides[1], sides[1])}
    raised = {"objective": Objective("utilisation"), "error": 0.01, **found}
    assert verdict_of(evidence(**raised, interval=(0.05, 0.15))).kind == "change"
    assert verdict_of(evidence(**raised, interval=(-0.01, 0.15))).kind == "keep"


def random_log(seed: int) -> Any:
    """Bursts of a few users over twenty-four weeks; recorded as replayed, but for some seconds."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    for at in range(0, 24 * WEEK, WEEK):
        for user, scale in (("hog", 3000), ("ann", 200), ("ben", 900)):
            for _ in range(int(random.integers(0, 9))):
                submit = at + int(random.integers(0, 3000))
                run = 1 + int(random.exponential(scale))
                rows.append((submit, run, int(random.integers(1, 4)), user, user[0]))
    plain = sorted(rows, key=lambda row: row[0])
    waits = simulate(jobs_of(plain), MACHINE, EASY.policy).wait + random.integers(
        0, 300, len(plain)
    )
    return jobs_of([(*row, int(wait)) for row, wait in zip(plain, waits, strict=True)])  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(12))
def test_each_verdict_agrees_with_its_own_numbers(seed):
    metric = ("mean_wait_s", "p95_wait_s", "mean_bounded_slowdown")[seed % 3]
    loses = {} if seed % 2 else ANYBODY
    effort = Effort(num_trials=8, seed=seed, searched=0.5)
    objective = Objective(metric)
    parts = ("weights", "limits", "backfill")
    lost = Constraints(loses=loses)
    check(advise(random_log(seed), MACHINE, EASY, parts, objective, lost, effort), metric)


def check(got: Advice, metric: str) -> None:
    """What must be so of each verdict, from the numbers that stand beside it."""
    assert (got.rule is not None) == (got.verdict.kind == "change") == (not got.verdict.why)
    if got.verdict.kind == "keep":
        return
    before, after = (each.held_out.value for each in (got.baseline, got.advised))
    assert after < before and got.gain > 0
    assert not got.advised.held_out.broken
    assert not [loss for loss in got.advised.held_out.losses if loss.is_certain]
    if got.change is not None:
        assert max(got.change) < 0
    if (error := got.errors["chosen"].get(metric)) is not None:
        assert before - after > error
    if got.verdict.kind == "change":
        assert got.change is not None and error is not None
        assert not got.advised.held_out.losses
        now, then = got.baseline.held_out.all_jobs, got.advised.held_out.all_jobs
        assert now["num_unstarted"] == then["num_unstarted"]
        policy = got.rule.policy
        assert (policy.scan, policy.predictor) == ("queue-order", "given")


def test_a_machine_of_other_size_is_judged_alike():
    got = advise(
        jobs_of(gentle(34)), Machine.flat(8), EASY, ("weights",), P95_OF_ANN, effort=Effort(4)
    )
    assert got.verdict.kind == "keep"  # nobody waits: nothing beats it
    assert got.refused is None


@pytest.mark.parametrize(
    ("metric", "before", "after", "worse"),
    [
        ("mean_wait_s", 100.0, 110.0, 0.1),
        ("mean_wait_s", 100.0, 90.0, -0.1),
        ("utilisation", 0.5, 0.4, 0.2),  # less use is worse
        ("utilisation", 0.5, 0.6, -0.2),
        ("mean_wait_s", 0.0, 5.0, 5.0),
        ("mean_wait_s", math.nan, 5.0, 0.0),
    ],
)
def test_what_gets_worse(metric, before, after, worse):
    assert _worse(metric, before, after) == pytest.approx(worse)


@pytest.mark.parametrize(
    ("metric", "change"),
    [("median_wait_s", 0), ("p95_wait_s", -600), ("p99_wait_s", -600), ("mean_wait_s", -60)],
)
def test_the_interval_is_of_the_metric_that_is_asked_for(metric, change):
    """Twelve weeks alike: of twenty jobs the two that wait longest wait 400 s instead of 1000 s."""
    week = np.repeat(np.arange(12), 20)
    jobs = SimpleNamespace(submit=week * WEEK + 5, user=np.zeros(240, int))
    waits = [np.tile([0.0] * 18 + [long] * 2, 12) for long in (1000.0, 400.0)]
    before, after = (
        SimpleNamespace(wait=wait, start=np.zeros(240, int), workload=jobs) for wait in waits
    )
    case = SimpleNamespace(
        objective=Objective(metric), weeks=Weeks.of(jobs.submit, 1, 200), keep=np.ones(240, bool)
    )
    assert change_of(case, before, after) == pytest.approx((change, change))


def test_a_setting_that_brings_less_than_a_hundredth_of_the_gain_is_put_back():
    """From 1000 s to 500 s: a hundredth is 5 s. Without `small` it would be 505 s, without `large` 506 s."""
    values = {(1, 1): 500.0, (0, 1): 505.0, (0, 0): 506.0, (1, 0): 506.0}
    search = SimpleNamespace(
        baseline=measured(1000),
        space=SimpleNamespace(now={"small": 0, "large": 0}),
        measured=lambda points, _: [measured(values[tuple(each.values())]) for each in points],
    )
    got = Search.simplified(search, {"small": 1, "large": 1}, measured(500), None)  # type: ignore[arg-type]
    assert got == {"small": 0, "large": 1}


def test_the_interval_of_a_verdict_is_the_one_that_is_shown_elsewhere():
    """A wait of 1000 s cannot fall by more, whatever the resampled weeks say."""
    told = verdict_of(evidence(interval=(-5000.0, -300.0)))
    assert told.kind == "change"
    assert "95 % interval of the change −16.7 min to −5.0 min from 12 weeks" in told.sentence


def test_an_interval_too_wide_to_say_anything_is_none():
    """From 1 % to 2 % of the machine, by +0.1 to +50 points: more than five times 2 %."""
    before, after = (Measured(-share, {"utilisation": share}, {}, {}) for share in (0.01, 0.02))
    found = evidence(
        objective=Objective("utilisation"),
        baseline=Found({}, before, before),
        found=Found({}, after, after),
        interval=(0.001, 0.5),
        error=0.001,
    )
    told = verdict_of(found)
    assert told.kind == "try"
    assert "this change has no interval" in told.sentence
