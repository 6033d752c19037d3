"""Advice on made-up weeks where the best setting is known, and how it is written for Slurm."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hakaru.errors import HakaruError
from hakaru.sim import POLICIES, Limit, Machine, Policy, Weights, Workload
from hakaru.sim.advise import (
    Constraints,
    Effort,
    Objective,
    Rule,
    Space,
    advise,
    metric_of,
    slurm_lines,
    split_at,
)
from hakaru.sim.advise.slurm_conf import duration

WEEK = 7 * 86400
EASY = Rule(POLICIES.get("easy"))
MACHINE = Machine.flat(4)
P95_OF_ANN = Objective("p95_wait_s", lambda w: _of(w, "user", "ann"), "ann's jobs")
QUICK = Effort(num_trials=24, seed=1)
# submitted, run time, PEs, user, account, and the recorded wait where it is not 0
Row = tuple[int, int, int, str, str] | tuple[int, int, int, str, str, int]
ANYBODY = {"user": math.inf, "account": math.inf}  # may lose as much as it takes


def _of(workload: Workload, kind: str, name: str) -> Any:
    return getattr(workload, kind) == workload.names[kind].index(name)


def jobs_of(rows: list[Row]) -> Workload:
    num = len(rows)
    waits = [float(row[5]) if len(row) > 5 else 0.0 for row in rows]
    moment = pa.timestamp("us", "UTC")
    times = pa.array([datetime.fromtimestamp(row[0], UTC) for row in rows], moment)
    starts = [datetime.fromtimestamp(r[0] + wait, UTC) for r, wait in zip(rows, waits, strict=True)]
    nothing = pa.array([None] * num, pa.string())
    columns = {
        "cluster": ["c"] * num,
        "job_id": [str(number) for number in range(num)],
        "user": [row[3] for row in rows],
        "account": [row[4] for row in rows],
        "queue": nothing,
        "qos": nothing,
        "gpu_model": nothing,
        "num_pes": [row[2] for row in rows],
        "span_nodes": [1.0] * num,
        "requested_s": [float(row[1]) for row in rows],
        "submitted_at": times,
        "started_at": pa.array(starts, moment),
        "run_s": [float(row[1]) for row in rows],
        "wait_s": waits,
        "state": ["completed"] * num,
    }
    return Workload.of(pa.table(columns))


def week(
    number: int, hog: str = "hog", small: str = "ann", late: int = 0, off: int = 0
) -> list[Row]:
    """Eight jobs of 1000 s at once from one user, and five short ones, one after the other, from another.

    On 4 PEs the hog's jobs run in two rounds (mean wait 500 s) and the short ones wait for both. A limit of 3
    leaves a PE to them: they never wait, and the hog's wait 0, 1000 and 2000 s (mean 875). With 2 its mean is
    1500, with 1 it is 3500. The waits are recorded as on 4 PEs, but for those of the short jobs, which are
    `off` by as much.
    """
    at = number * WEEK
    short = [100 + late + 200 * i for i in range(5)]
    return [
        *[(at, 1000, 1, hog, "big", 0)] * 4,
        *[(at, 1000, 1, hog, "big", 1000)] * 4,
        *[(at + s, 100, 1, small, "lab", 2000 - s + off) for s in short[:4]],
        (at + short[4], 100, 1, small, "lab", 2100 - short[4] + off),
    ]


def weeks(num: int, off: int = 0) -> Workload:
    return jobs_of([row for number in range(num) for row in week(number, off=off)])


@pytest.fixture(scope="module")
def limited():
    # the hog may wait 1000 s: only a limit of 3 is allowed
    constraints = Constraints(loses={"user": 1.0, "account": 1.0})
    return advise(weeks(34), MACHINE, EASY, ("limits",), P95_OF_ANN, constraints, QUICK)


def test_the_limit_that_is_best_by_construction_is_found(limited):
    assert limited.verdict.kind == "change"
    assert [limit.value for limit in limited.rule.limits] == [3]
    assert limited.baseline.held_out.value == pytest.approx(1900, abs=100)
    assert limited.advised.held_out.value == 0
    assert limited.gain == 1


def test_a_setting_that_brings_nothing_is_left_as_it_is(limited):
    """Either limit alone does it; the point must not hold both."""
    changed = {n: v for n, v in limited.point.items() if v != limited.space.now[n]}
    assert list(changed.values()) == [3]
    assert limited.without == {next(iter(changed)): limited.baseline.searched.value}


def test_the_evidence_is_that_of_the_weeks_held_out(limited):
    assert limited.split == 24 * WEEK
    assert (limited.num_searched, limited.num_held_out) == (24 * 13, 10 * 13)
    assert limited.advised.held_out.all_jobs["num_jobs"] == 10 * 13
    assert limited.advised.held_out.chosen["num_jobs"] == 10 * 5
    assert limited.advised.searched.chosen["num_jobs"] == 24 * 5
    assert 1 <= len(limited.best) <= 5
    assert all(not found.searched.broken for found in limited.best)
    assert set(limited.importance) <= {"gpus_per_user", "jobs_per_user"}


def test_nobody_may_lose_more_than_was_said():
    """By default a tenth: a limit of 3 serves ann best and takes the hog from 500 s to 875 s."""
    got = advise(weeks(34), MACHINE, EASY, ("limits",), P95_OF_ANN, effort=QUICK)
    assert (got.verdict.kind, got.rule) == ("keep", None)
    (why,) = got.verdict.why
    assert "beats what you have" in why
    assert "user hog (8.3 min to " in why and "account big (8.3 min to " in why
    assert got.refused.searched.value < got.baseline.searched.value
    assert {(loss.kind, loss.name) for loss in got.refused.held_out.losses} == {
        ("user", "hog"),
        ("account", "big"),
    }
    assert got.best == []


def test_a_metric_is_kept():
    """The mean wait of all falls with a limit of 3 and of 2, but the hog's p99 grows to 2000 s and more."""
    kept = Constraints(keep={"p99_wait_s": 0.0}, loses=ANYBODY)
    got = advise(weeks(34), MACHINE, EASY, ("limits",), P95_OF_ANN, kept, QUICK)
    assert got.rule is None
    lost = Constraints(loses=ANYBODY)
    free = advise(weeks(34), MACHINE, EASY, ("limits",), P95_OF_ANN, lost, QUICK)
    assert free.rule is not None
    assert free.num_allowed == free.num_settings > 6 and free.broken == {}
    values = [found.searched.value for found in free.best]
    assert len(values) == 5 and values == sorted(values)
    assert got.broken["keep p99_wait_s"] == got.num_settings - got.num_allowed > 0


def test_no_advice_where_the_weeks_held_out_are_no_better():
    """In the last weeks ann has the many jobs, and a limit would hold her back."""
    rows = [row for number in range(7) for row in week(number)]
    rows += [row for number in range(7, 10) for row in week(number, hog="ann", small="ben")]
    lost = Constraints(loses=ANYBODY)
    got = advise(jobs_of(rows), MACHINE, EASY, ("limits",), P95_OF_ANN, lost, QUICK)
    assert (got.verdict.kind, got.rule) == ("keep", None)
    assert "held out" in got.verdict.why[0]
    assert got.advised.searched.value < got.baseline.searched.value
    assert got.gain <= 0


def test_no_advice_where_the_interval_of_the_gain_holds_zero():
    """A limit serves ann on the mean, but in a third of the weeks held out she has the many jobs.

    Forty weeks are searched, and all are like the first; twenty are held out.
    """
    rows = [row for number in range(40) for row in week(number)]
    for number in range(40, 60):
        turned = {"hog": "ann", "small": "ben"} if number in (41, 42, 47, 50, 53, 54, 55) else {}
        rows += week(number, **turned, late=number * 7 % 50)  # no two weeks are quite alike
    effort = Effort(num_trials=8, seed=1, searched=40 / 60)
    mean = replace(P95_OF_ANN, metric="mean_wait_s")
    lost = Constraints(loses=ANYBODY)
    got = advise(jobs_of(rows), MACHINE, EASY, ("limits",), mean, lost, effort)
    assert got.num_weeks == 20
    assert got.gain > 0.3
    assert got.change is None, "wider than the baseline's wait and three times the gain: not shown"
    assert got.rule is None and "holds zero" in got.verdict.why[0]


def test_a_gain_that_all_weeks_held_out_agree_on_is_sure():
    effort = Effort(num_trials=8, seed=1, searched=0.5)
    mean = replace(P95_OF_ANN, metric="mean_wait_s")
    lost = Constraints(loses=ANYBODY)
    got = advise(weeks(24), MACHINE, EASY, ("limits",), mean, lost, effort)
    assert (got.num_weeks, got.verdict.kind) == (12, "change")
    before, after = (found.held_out.value for found in (got.baseline, got.advised))
    assert got.change == pytest.approx((after - before, after - before))


def test_utilisation_is_that_of_the_weeks_held_out(limited):
    """13 jobs a week: 8 of 1000 s and 5 of 100 s, on 4 PEs; the whole replay would end with the last job."""
    used = limited.baseline.held_out.all_jobs["utilisation"]
    assert used == pytest.approx((8 * 1000 + 5 * 100) / (4 * WEEK))
    assert limited.advised.held_out.all_jobs["utilisation"] == pytest.approx(used)


def test_what_is_kept_is_asked_of_the_weeks_held_out_too():
    """A third user is alone in the last weeks and wide: a limit that nobody felt before holds them back."""
    rows = [row for number in range(10) for row in week(number)]
    rows += [(n * WEEK + 20_000, 1000, 1, "eve", "lab") for n in range(7, 10) for _ in range(4)]
    constraints = Constraints(loses={"user": 1.0, "account": math.inf})
    workload = jobs_of(sorted(rows, key=lambda row: row[0]))
    got = advise(workload, MACHINE, EASY, ("limits",), P95_OF_ANN, constraints, QUICK)
    assert got.rule is None
    assert "breaks: no user loses" in got.verdict.why[0]
    assert "who would lose: user eve (0 s to 4.2 min on average, +4.2 min)" in got.verdict.why[0]


def test_the_seed_decides_and_not_the_number_of_threads():
    def found(threads: int) -> Any:
        effort = Effort(num_trials=16, seed=3, threads=threads)
        lost = Constraints(loses=ANYBODY)
        parts = ("weights", "limits")
        got = advise(weeks(10), MACHINE, EASY, parts, P95_OF_ANN, lost, effort=effort)
        return got.point, got.advised, got.importance, [each.point for each in got.best]

    assert found(1) == found(1) == found(3)


def test_weights_bring_the_short_jobs_forward():
    lost = Constraints(loses=ANYBODY)
    got = advise(weeks(34), MACHINE, EASY, ("weights",), P95_OF_ANN, lost, QUICK)
    assert got.rule is not None
    assert got.rule.policy.weights.fair_share > 0
    assert got.advised.held_out.value <= 1000  # before the hog's second round
    assert not got.rule.limits


def test_the_search_ends_in_time_and_tells_how_far_it_is():
    told = []
    effort = Effort(num_trials=1000, seconds=0)
    advise(
        weeks(10), MACHINE, EASY, ("limits",), P95_OF_ANN, effort=effort,
        tell=lambda done, total, best: told.append((done, total)),
    )  # fmt: skip
    assert told == [(4, 1000)]


def test_a_limit_is_never_below_the_largest_job():
    rows = [*week(0), (50, 10, 3, "ann", "lab")]
    space = Space.of(jobs_of(sorted(rows)), MACHINE, EASY, ("limits",))
    assert {knob.name: (knob.low, knob.high) for knob in space.knobs} == {
        "gpus_per_user": (3, 4),
        "jobs_per_user": (1, 4),
    }


def test_a_limit_lets_the_busiest_user_be_done_in_twice_the_time():
    """40 weeks of one PE each, all within 8 weeks: 5 at once on the mean, and 3 within 16 weeks."""
    rows = [(week * WEEK, 4 * WEEK, 1, "ann", "lab") for week in range(9)]
    rows += [(0, 4 * WEEK, 1, "ann", "lab")]
    space = Space.of(jobs_of(sorted(rows)), Machine.flat(16), EASY, ("limits",))
    assert [(knob.low, knob.high) for knob in space.knobs] == [(3, 16), (3, 16)]


def test_where_nothing_changes_the_rule_is_the_baseline():
    for baseline in (EASY, Rule(POLICIES.get("multifactor"), (Limit("user", "running-jobs", 2),))):
        space = Space.of(weeks(1), MACHINE, baseline, ("weights", "limits", "backfill"))
        assert space.rule(space.now) == baseline
        assert space.now["jobs_per_user"] == (2 if baseline.limits else 4)


def test_a_limit_replaces_the_one_that_is_there():
    other = Limit("user", "running-jobs", 1, queue="short")
    baseline = Rule(POLICIES.get("easy"), (Limit("user", "running-jobs", 2), other))
    space = Space.of(weeks(1), MACHINE, baseline, ("limits",))
    got = space.rule(space.now | {"jobs_per_user": 3})
    assert got.limits == (other, Limit("user", "running-jobs", 3))


@pytest.mark.parametrize(
    ("policy", "parts", "told"),
    [
        ("easy", ("limit",), "limits"),
        ("easy", (), "nothing to search"),
        ("sjf", ("weights",), "order of sjf"),
        ("fcfs", ("backfill",), "does not backfill"),
        ("conservative", ("limits",), "knows neither limits nor weights"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(policy, parts, told):
    with pytest.raises(HakaruError, match=told):
        Space.of(weeks(1), MACHINE, Rule(POLICIES.get(policy)), parts)


def test_jobs_that_are_not_there_are_refused():
    nobody = Objective("p95_wait_s", lambda w: np.zeros(len(w), bool), "jobs of nobody")
    with pytest.raises(HakaruError, match="the weeks searched hold none of the jobs of nobody"):
        advise(weeks(10), MACHINE, EASY, ("limits",), nobody)
    with pytest.raises(HakaruError, match=r"a log of 1 job cannot .* give a longer one"):
        split_at(jobs_of([(0, 1, 1, "a", "b")]), 0.7)


def test_months_that_the_record_contradicts_are_named_as_the_reason():
    many = jobs_of([(0, 1, 1, "a", "b"), (9, 1, 1, "a", "b"), (99, 1, 1, "a", "b")])
    with pytest.raises(HakaruError, match=r"only 1 of 3 jobs are of months .* --months all"):
        split_at(many, 0.7, np.array([True, False, False]))


def test_a_short_log_is_split_within_a_week():
    assert split_at(jobs_of([(0, 1, 1, "a", "b"), (1000, 1, 1, "a", "b")]), 0.7) == 700


def test_metrics_are_named_as_people_write_them():
    assert metric_of("p95-wait") == metric_of("p95_wait_s") == "p95_wait_s"
    assert metric_of("utilisation") == "utilisation"
    with pytest.raises(HakaruError, match="p95-wait"):
        metric_of("p95-wiat")


def settings_of(lines: tuple[str, ...]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines)


def test_weights_as_lines_of_slurm_conf_say_the_same():
    weights = Weights(age=5000, size=-20_000, fair_share=9000, half_life_s=36 * 3600)
    got = slurm_lines(Rule(_weighted(weights)), EASY, "gpu")
    assert settings_of(got.conf) == {
        "PriorityType": "priority/multifactor",
        "PriorityWeightAge": "5000",
        "PriorityMaxAge": "7-00",
        "PriorityWeightFairshare": "9000",
        "PriorityWeightJobSize": "0",
        "PriorityWeightTRES": "gres/gpu=-20000",
        "PriorityWeightPartition": "20000",
        "PriorityCalcPeriod": "5",
        "PriorityDecayHalfLife": "1-12",
        "PriorityFlags": "NO_FAIR_TREE",
        "AccountingStorageTRES": "gres/gpu",
    }
    assert got.commands == ()
    assert "TRESBillingWeights" in " ".join(got.remarks)


def test_points_of_qos_are_their_priorities():
    # Slurm's factor is the priority over the highest: 500 × 200 / 500 = 200 points.
    got = slurm_lines(Rule(_weighted(Weights(qos={"high": 500, "normal": 200}))), EASY, "gpu")
    assert settings_of(got.conf)["PriorityWeightQOS"] == "500"
    assert got.commands == (
        "sacctmgr -i modify qos where name=high set Priority=500",
        "sacctmgr -i modify qos where name=normal set Priority=200",
    )
    assert "PriorityWeightQOS" not in settings_of(
        slurm_lines(Rule(_weighted(Weights())), EASY).conf
    )


def test_limits_as_commands_of_sacctmgr_say_the_same():
    limits = (Limit("user", "running-gpus", 24), Limit("user", "running-jobs", 6))
    got = slurm_lines(Rule(POLICIES.get("easy"), limits), EASY, "gpu", qos="batch")
    assert got.commands == (
        "sacctmgr -i modify qos where name=batch set MaxTRESPerUser=gres/gpu=24 MaxJobsPerUser=6",
    )
    assert settings_of(got.conf) == {
        "AccountingStorageEnforce": "associations,limits,qos",
        "AccountingStorageTRES": "gres/gpu",
    }
    assert "set MaxTRESPerUser=gres/gpu=-1 MaxJobsPerUser=-1." in got.remarks[0]


def test_on_a_machine_without_gpus_processors_are_limited():
    rule = Rule(POLICIES.get("easy"), (Limit("user", "running-gpus", 24),))
    got = slurm_lines(rule, EASY, "cpu")
    assert got.commands == ("sacctmgr -i modify qos where name=normal set MaxTRESPerUser=cpu=24",)
    assert settings_of(got.conf) == {"AccountingStorageEnforce": "associations,limits,qos"}


def test_what_slurm_cannot_do_is_said():
    got = slurm_lines(Rule(POLICIES.get("easy++")), EASY, "gpu")
    assert (got.conf, got.commands) == ((), ())
    assert ["cannot be told" in got.remarks[0], "time limit" in got.remarks[1]] == [True, True]
    assert got.text().splitlines()[0].startswith("# Backfilling shortest-first")


def test_what_stays_is_not_written():
    kept = Rule(POLICIES.get("multifactor"), (Limit("user", "running-jobs", 2),))
    assert slurm_lines(kept, kept).text() == "\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(7 * 86400, "7-00"), (6 * 3600, "0-06"), (90 * 60, "0-01:30:00")]
)
def test_durations_are_written_as_slurm_reads_them(seconds, text):
    assert duration(seconds) == text


def _weighted(weights: Weights) -> Policy:
    return replace(POLICIES.get("multifactor"), weights=weights)


def test_only_months_that_the_record_does_not_contradict_count():
    """In February eight jobs on four PEs are recorded at once, for two days: January and March count.

    With jobs in weeks 0 to 4 and 9 that count, the first four are searched.
    """
    rows = [row for number in range(10) for row in week(number)]
    rows += [(33 * 86400, 2 * 86400, 1, "eve", "lab")] * 8
    workload = jobs_of(sorted(rows, key=lambda row: row[0]))
    effort = Effort(num_trials=4)
    got = advise(workload, MACHINE, EASY, ("limits",), P95_OF_ANN, effort=effort)
    assert got.months == (2, 3)
    assert got.split == 4 * WEEK
    assert (got.num_searched, got.num_held_out) == (4 * 13, 2 * 13)
    every = advise(workload, MACHINE, EASY, ("limits",), P95_OF_ANN, effort=effort, months="all")
    assert every.months == (3, 3)
    assert every.num_searched + every.num_held_out == len(rows)
