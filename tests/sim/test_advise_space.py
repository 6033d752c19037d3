"""What may be turned: from where to where, from what there is now, and the rule that a point stands for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.sim import POLICIES, Limit, Machine, Weights
from hakaru.sim.advise import Rule, Space
from hakaru.sim.advise.space import Knob
from tests.sim.test_advise import EASY, MACHINE, WEEK, Row, jobs_of, weeks

DAY = 86400
JOBS = weeks(1)


def space_of(
    *parts: str, baseline: Rule = EASY, machine: Machine = MACHINE, jobs: Any = JOBS
) -> Space:
    return Space.of(jobs, machine, baseline, parts)


def test_knobs_of_weights_begin_at_what_there_is() -> None:
    weights = Weights(age=1500.6, size=-20, fair_share=700, half_life_s=36.6 * 3600)
    now = Rule(replace(POLICIES.get("multifactor"), weights=weights))
    assert space_of("weights", baseline=now).knobs == (
        Knob("age", 1501, 0, 100_000, 1000),
        Knob("size", -20, -500_000, 500_000, 5000),
        Knob("fair_share", 700, 0, 100_000, 1000),
        Knob("half_life_h", 37, 6, 1440, log=True),
    )


def test_knobs_of_limits_and_of_backfilling() -> None:
    limits, backfill = space_of("limits").knobs, space_of("backfill").knobs
    assert limits == (
        Knob("gpus_per_user", 4, 1, 4, log=True),
        Knob("jobs_per_user", 4, 1, 4, log=True),
    )
    assert backfill == (Knob("backfill", "easy", choices=("easy", "easy-sjbf", "easy++")),)
    for name in ("easy-sjbf", "easy++"):
        assert space_of("backfill", baseline=Rule(POLICIES.get(name))).now == {"backfill": name}


def test_parts_are_in_the_order_asked_for_and_once() -> None:
    names = [knob.name for knob in space_of("backfill", "limits", "backfill").knobs]
    assert names == ["backfill", "gpus_per_user", "jobs_per_user"]


@pytest.mark.parametrize(
    ("limits", "now"),
    [
        ((), (4, 4)),
        ((Limit("user", "running-gpus", 3), Limit("user", "running-jobs", 2)), (3, 2)),
        ((Limit("user", "running-gpus", 3), Limit("user", "running-gpus", 2)), (2, 4)),
        ((Limit("user", "running-gpus", 99),), (4, 4)),  # more than the machine has
        ((Limit("user", "running-gpus", 0),), (0, 4)),
        ((Limit("account", "running-gpus", 3), Limit("all", "running-jobs", 2)), (4, 4)),
        ((Limit("user", "queued-jobs", 3),), (4, 4)),
        ((Limit("user", "running-gpus", 3, queue="q"),), (4, 4)),
        ((Limit("user", "running-gpus", 3, only="u"),), (4, 4)),
        ((Limit("user", "running-gpus", 3, hours=(9, 18)),), (4, 4)),
    ],
)
def test_limits_of_each_user_that_hold_now(limits: tuple[Limit, ...], now: tuple[int, int]) -> None:
    space = space_of("limits", baseline=Rule(EASY.policy, limits))
    assert tuple(space.now.values()) == now


def test_only_what_is_changed_is_in_the_rule() -> None:
    own = (Limit("user", "running-gpus", 3), Limit("account", "running-jobs", 2))
    space = space_of("weights", "limits", "backfill", baseline=Rule(EASY.policy, own))
    assert space.rule(space.now) == space.baseline
    fewer = space.rule({**space.now, "gpus_per_user": 2})
    assert fewer.limits == (own[1], Limit("user", "running-gpus", 2))
    assert fewer.policy == EASY.policy
    more = space.rule({**space.now, "gpus_per_user": 4, "jobs_per_user": 1})
    assert more.limits == (
        own[1],
        Limit("user", "running-gpus", 4),
        Limit("user", "running-jobs", 1),
    )


def test_weights_of_a_point_keep_how_jobs_are_backfilled() -> None:
    plus = POLICIES.get("easy++")
    space = space_of("weights", "backfill", baseline=Rule(plus))
    turned = {"age": 1000, "size": -5000, "fair_share": 2000, "half_life_h": 12}
    policy = space.rule({**space.now, **turned}).policy
    assert (policy.scan, policy.predictor) == (plus.scan, plus.predictor)
    assert policy.weights is not None
    weights = policy.weights
    assert (weights.age, weights.size, weights.fair_share) == (1000, -5000, 2000)
    assert weights.half_life_s == 12 * 3600
    assert policy.id == "multifactor"
    plain = space.rule({**space.now, "backfill": "easy"}).policy
    easy = POLICIES.get("easy")
    assert (plain.scan, plain.predictor, plain.weights) == (easy.scan, easy.predictor, None)


def test_what_is_not_turned_stays_as_it_is() -> None:
    weights = Weights(age=10.4, queue={"short": 5}, qos={"high": 7}, max_age_s=9, half_life_s=1200)
    now = Rule(replace(POLICIES.get("multifactor"), weights=weights))
    space = space_of("weights", baseline=now)
    turned = space.rule({**space.now, "size": 5000}).policy.weights
    assert turned == replace(weights, size=5000.0)  # a third of an hour, though a knob has none


def test_a_limit_is_for_the_busiest_user() -> None:
    """Ann needs 28 days of 6 PEs within 28 days: 3 in twice the time; ben, who has more jobs, less."""
    rows: list[Row] = [(0, 28 * DAY, 3, "ann", "a")] * 2
    rows += [(n, 60, 1, "ben", "b") for n in range(20)]
    space = space_of("limits", jobs=jobs_of(rows), machine=Machine.flat(16))
    assert [(knob.low, knob.high) for knob in space.knobs] == [(3, 16), (1, 16)]


def test_in_less_than_four_weeks_they_count_as_four() -> None:
    """Four weeks of one PE, ten times in one week: ten at once within four weeks, five within eight."""
    rows: list[Row] = [(n, 4 * WEEK, 1, "ann", "a") for n in range(10)]
    space = space_of("limits", jobs=jobs_of(rows), machine=Machine.flat(16))
    assert [knob.low for knob in space.knobs] == [5, 5]
    rows = [(n * WEEK, 4 * WEEK, 1, "ann", "a") for n in range(10)]  # 40 weeks of work within 9
    space = space_of("limits", jobs=jobs_of(rows), machine=Machine.flat(16))
    assert [knob.low for knob in space.knobs] == [3, 3]


def test_jobs_of_nobody_need_no_limit_but_room() -> None:
    jobs = jobs_of([(0, 4 * WEEK, 3, "ann", "a")] * 9)
    nobody = replace(jobs, user=jobs.user * 0 - 1)
    space = space_of("limits", jobs=nobody, machine=Machine.flat(16))
    assert [knob.low for knob in space.knobs] == [3, 1]


def test_what_cannot_be_turned_is_left_out() -> None:
    """The largest job takes the whole machine: no limit of GPUs is below it."""
    jobs = jobs_of([(0, 60, 4, "ann", "a")])
    assert [knob.name for knob in space_of("limits", jobs=jobs).knobs] == ["jobs_per_user"]
    alone = jobs_of([(0, 60, 1, "ann", "a")])
    with pytest.raises(HakaruError) as caught:
        space_of("limits", jobs=alone, machine=Machine.flat(1))
    assert str(caught.value) == (
        "nothing to search: the largest job takes the whole machine, so that no limit of a user's GPUs can "
        "be set; add weights with --search weights"
    )


@pytest.mark.parametrize(
    ("policy", "parts", "said"),
    [
        ("easy", ("limit", "x"), "--search 'limit': did you mean limits?"),
        ("easy", (), "nothing to search: choose among weights, limits, backfill"),
        (
            "conservative",
            ("weights",),
            "conservative knows neither limits nor weights, so that there is nothing to search: begin from "
            "--policy easy or multifactor",
        ),
        (
            "sjf",
            ("weights",),
            "weights replace the order of sjf: search them from easy or multifactor",
        ),
        (
            "fcfs",
            ("weights",),
            "fcfs does not backfill as EASY does: search only limits with it, or begin from --policy easy or "
            "multifactor",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(policy: str, parts: tuple[str, ...], said: str) -> None:
    with pytest.raises(HakaruError) as caught:
        space_of(*parts, baseline=Rule(POLICIES.get(policy)))
    assert str(caught.value) == said


def test_limits_alone_go_with_any_queue() -> None:
    for policy in ("fcfs", "sjf"):
        assert space_of("limits", baseline=Rule(POLICIES.get(policy))).knobs


def test_a_knob_suggests_what_it_may_be() -> None:
    asked: list[Any] = []

    class Trial:
        def suggest_int(self, *given: Any, **more: Any) -> int:
            asked.append((given, more))
            return 7

        def suggest_categorical(self, *given: Any) -> str:
            asked.append(given)
            return "b"

    trial = Trial()
    assert Knob("n", 5, 1, 9, 2).suggest(trial) == 7
    assert Knob("m", 5, 2, 8, log=True).suggest(trial) == 7
    assert Knob("c", "a", choices=("a", "b")).suggest(trial) == "b"
    assert asked == [
        (("n", 1, 9), {"step": 2, "log": False}),
        (("m", 2, 8), {"step": 1, "log": True}),
        ("c", ("a", "b")),
    ]
    assert [
        knob.is_open
        for knob in (Knob("n", 1, 1, 1), Knob("n", 1, 1, 2), Knob("c", "a", choices=("a",)))
    ] == [False, True, False]
