"""Slurm's multifactor priority and preemption, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from tests.sim._jobs import play, starts, workload

ONE, FOUR = sim.Machine.flat(1), sim.Machine.flat(4)


def ranked(jobs: list[Any], machine: sim.Machine, **weights: Any) -> list[int]:
    policy = replace(sim.POLICIES.get("multifactor"), weights=sim.Weights(**weights))
    return sim.simulate(workload(*jobs), machine, policy).start.tolist()


def test_age_grows_up_to_a_bound() -> None:
    # At 10 the second is 9 s old, the third 8 s: in order. With a bound of 5 s both are as old as can be,
    # and the queue's points decide.
    vip = {"queue": "vip"}
    jobs = [(0, 10, 4), (1, 5, 4), (2, 5, 4, vip)]
    points = {"queue": {"vip": 0.5}, "period_s": 1}
    # 10 × 9/10 = 9 against 10 × 8/10 + 0.5 = 8.5; then 10 against 10.5.
    assert ranked(jobs, FOUR, age=10, max_age_s=10, **points) == [0, 10, 15]
    assert ranked(jobs, FOUR, age=10, max_age_s=5, **points) == [0, 15, 10]


def test_age_is_no_disadvantage() -> None:
    with pytest.raises(HakaruError, match="age has 0 points or more, found -1"):
        sim.Weights(age=-1)


def test_size_is_the_share_of_the_machine() -> None:
    # 10 × 1/4 = 2.5 against 10 × 4/4 = 10; with points for age 2.5 + 9 = 11.5 against 10 + 8 = 18, and with
    # twenty times as many 2.5 + 180 against 10 + 160.
    jobs = [(0, 10, 4), (1, 5, 1), (2, 5, 4)]
    assert ranked(jobs, FOUR, size=10, period_s=1) == [0, 15, 10]
    assert ranked(jobs, FOUR, size=10, age=10, max_age_s=10, period_s=1) == [0, 15, 10]
    assert ranked(jobs, FOUR, size=10, age=200, max_age_s=10, period_s=1) == [0, 10, 15]


def test_queues_have_points() -> None:
    jobs = [(0, 10, 4), (1, 5, 4), (2, 5, 4, {"queue": "vip"})]
    assert ranked(jobs, FOUR, queue={"vip": 5}) == [0, 15, 10]
    assert ranked(jobs, FOUR, queue={"normal": 5}) == [0, 10, 15]


def test_qos_have_points() -> None:
    high, low = {"qos": "high"}, {"qos": "low"}
    jobs = [(0, 10, 4), (1, 5, 4, low), (2, 5, 4, high), (3, 5, 4)]
    # 5, 2 and, of a job without a QOS, none.
    assert ranked(jobs, FOUR, qos={"high": 5, "low": 2}) == [0, 15, 10, 20]
    assert ranked(jobs, FOUR, qos={"low": -1}) == [0, 20, 10, 15]
    # With three points for its queue the second has five too, and came first.
    jobs[1] = (1, 5, 4, low | {"queue": "vip"})
    assert ranked(jobs, FOUR, qos={"high": 5, "low": 2}, queue={"vip": 3}) == [0, 10, 15, 20]
    with pytest.raises(HakaruError, match=r"no job has the qos 'hihg'.*high"):
        ranked(jobs, FOUR, qos={"hihg": 5})


BOB = {"user": "bob"}


def test_fair_share_counts_what_was_used() -> None:
    # At 150, when all is counted for the first time, Ann has used 100 s and Bob 50 s: 2/3 and 1/3 of all, or
    # 4/3 and 2/3 of their shares of a half. 100 × 2^(-4/3) = 39.7 against 100 × 2^(-2/3) = 63.0.
    jobs = [(0, 100, 1), (1, 50, 1, BOB), (110, 10, 1), (111, 10, 1, BOB)]
    assert ranked(jobs, ONE, fair_share=100, period_s=150) == [0, 100, 160, 150]
    # Ten points of queue do not make up for it, thirty do (69.7).
    ann_in = [*jobs[:2], (110, 10, 1, {"queue": "vip"}), jobs[3]]
    points = {"fair_share": 100, "period_s": 150}
    assert ranked(ann_in, ONE, queue={"vip": 10}, **points) == [0, 100, 160, 150]
    assert ranked(ann_in, ONE, queue={"vip": 30}, **points) == [0, 100, 150, 160]


def test_shares_are_equal_among_all_who_have_jobs() -> None:
    # At 100 all that was used is Ann's: twice her share of a half, though Bob has not run yet. With 60 points
    # for her queue she has 100 × 2^-2 + 60 = 85, and he 100. (Of a share of the whole she would have 110.)
    jobs = [(0, 100, 1), (50, 10, 1, {"queue": "vip"}), (60, 10, 1, BOB)]
    weights = {"fair_share": 100, "period_s": 100}
    assert ranked(jobs, ONE, queue={"vip": 60}, **weights) == [0, 110, 100]
    assert ranked(jobs, ONE, queue={"vip": 80}, **weights) == [0, 100, 110]


@pytest.mark.parametrize("step", [None, 100, 7], ids=["at once", "in steps", "in small steps"])
def test_what_is_used_is_forgotten_while_it_is_used(step: int | None) -> None:
    # Ann's 1000 s halve every 100 s: at 1000 there are 100 / ln 2 × (1 - 2^-10) = 144.1 left and at 1200 a
    # quarter, 36.0. Bob has 100 / ln 2 × (1 - 2^-2) = 108.2 of his 200. So she goes first, however often
    # somebody else makes the scheduler count meanwhile.
    others = [
        (at, 0, 1, {"user": "cy", "queue": "late"}) for at in range(10, 1000, step or 1000)[1:]
    ]
    jobs = [(0, 1000, 1), (1, 200, 1, BOB), *others, (1100, 10, 1, BOB), (1110, 10, 1)]
    weights = {"fair_share": 100, "period_s": 1, "half_life_s": 100}
    got = ranked([*jobs, (1111, 0, 1, {"queue": "late"})], ONE, queue={"late": -1000}, **weights)
    assert [got[0], got[1], *got[-3:-1]] == [0, 1000, 1210, 1200]


def test_usage_is_forgotten() -> None:
    # At 350 Ann, who ran until 200, has 100 / ln 2 × (2^-1.5 - 2^-3.5) = 38.3 s left, and Bob, who ran from
    # then on, 100 / ln 2 × (1 - 2^-1.5) = 93.3: she goes first, though she came last. Where nothing is
    # forgotten, he does.
    jobs = [(0, 200, 1), (1, 150, 1, BOB), (210, 10, 1, BOB), (220, 10, 1)]
    weights = {"fair_share": 100, "period_s": 100}
    assert ranked(jobs, ONE, half_life_s=100, **weights) == [0, 200, 360, 350]
    assert ranked(jobs, ONE, half_life_s=1e9, **weights) == [0, 200, 350, 360]


def test_priorities_are_counted_at_intervals() -> None:
    # Counted when it came (0 points of age) and, at 10, not yet anew: in order of submission but for the
    # queue's points. Counted at 10, age 9 beats 8 + 0.5.
    jobs = [(0, 10, 4), (1, 5, 4), (2, 5, 4, {"queue": "vip"})]
    points = {"age": 10, "max_age_s": 10, "queue": {"vip": 0.5}}
    assert ranked(jobs, FOUR, period_s=11, **points) == [0, 15, 10]
    assert ranked(jobs, FOUR, period_s=10, **points) == [0, 10, 15]


LOW = {"queue": "low"}
YIELD = {"low_queues": ["low"]}


def test_a_job_of_a_low_queue_yields() -> None:
    # Ten seconds are lost; it begins anew when the other has ended.
    got = play([(0, 100, 1, LOW), (10, 5, 1)], ONE, "preempting", **YIELD)
    assert (got.start.tolist(), got.end.tolist()) == ([15, 10], [115, 15])
    assert (got.num_restarts.tolist(), got.totals["lost_s"]) == ([1, 0], 10)
    assert starts([(0, 100, 1, LOW), (10, 5, 1)], ONE, "easy", **YIELD) == [0, 100]


def test_low_jobs_wait_behind_all_others_and_stop_nobody() -> None:
    jobs = [(0, 10, 1), (1, 5, 1, LOW), (2, 5, 1), (3, 1, 1, LOW)]
    assert starts(jobs, ONE, "preempting", **YIELD) == [0, 15, 10, 20]


def test_the_latest_is_stopped_first() -> None:
    jobs = [(0, 100, 1, LOW), (5, 100, 1, LOW), (10, 5, 1)]
    assert starts(jobs, sim.Machine.flat(2), "preempting", **YIELD) == [0, 15, 10]


def test_only_jobs_on_the_nodes_that_are_taken_are_stopped() -> None:
    # Nodes of two PEs: the first and the third share node 0, the second has node 1. Latest first, the third
    # frees one PE, the second frees node 1: only the second need go.
    jobs = [(0, 100, 1, LOW), (1, 100, 2, LOW), (2, 100, 1, LOW), (10, 5, 2)]
    got = play(jobs, sim.Machine.of_nodes(2, 2), "preempting", **YIELD)
    assert got.start.tolist() == [0, 15, 2, 10]
    assert got.num_restarts.tolist() == [0, 1, 0, 0]
    assert got.nodes_of(3) == [1]


def test_nobody_is_stopped_in_vain() -> None:
    # At 10 there would be no room even without the low job: it goes on until 50, when there is.
    got = play([(0, 100, 1, LOW), (0, 50, 3), (10, 5, 4)], FOUR, "preempting", **YIELD)
    assert got.start.tolist() == [55, 0, 50]
    assert got.totals["lost_s"] == 50


def test_nobody_is_stopped_who_may_as_well_go_on() -> None:
    # Four are needed. The last two have three, so the first must go, and with its eight they need not.
    jobs = [(0, 100, 8, LOW), (1, 100, 2, LOW), (2, 100, 1, LOW), (10, 5, 4)]
    got = play(jobs, sim.Machine.flat(11), "preempting", **YIELD)
    assert got.start.tolist() == [15, 1, 2, 10]
    assert (got.num_restarts.tolist(), got.totals["lost_s"]) == ([1, 0, 0, 0], 80)
    assert got.table()["why_waited"].to_pylist() == ["preempted", "none", "none", "none"]


def test_of_another_model_or_under_another_switch_nobody_is_stopped() -> None:
    # The last wants a node of model a: the job on b, though the latest, goes on.
    groups = (sim.Group(1, 4, "a"), sim.Group(1, 4, "b"))
    a, b = ({"gpu_model": model} for model in "ab")
    jobs = [(0, 100, 4, LOW | a), (1, 100, 4, LOW | b), (10, 5, 2, a)]
    got = play(jobs, sim.Machine(groups), "preempting", **YIELD)
    assert got.num_restarts.tolist() == [1, 0, 0]
    # Two nodes under one switch: 0 and 1, of which a job that does not yield has one until 50; or 2 and 3.
    apart = sim.Placement(locality="required")
    machine = sim.Machine.of_nodes(4, 2, switch_size=2, placement=apart)
    low = [(0, 100, 2, LOW), (0, 100, 2, LOW), (0, 100, 2, LOW)]
    got = play([(0, 50, 2), *low, (10, 5, 4, {"span_nodes": 2})], machine, "preempting", **YIELD)
    assert got.nodes_of(4) == [2, 3]
    assert got.num_restarts.tolist() == [0, 0, 1, 1, 0]


def test_who_is_stopped_makes_room_for_the_one_it_was_stopped_for() -> None:
    # The hub may run one job. Its second waits for the low one; that is stopped for the lab's at 10, which
    # begins then, and not the hub's.
    hub = {"account": "hub"}
    jobs = [(0, 100, 1, LOW | hub), (5, 5, 1, hub), (10, 5, 1)]
    held = [sim.Limit("account", "running-jobs", 1)]
    assert starts(jobs, ONE, "preempting", limits=held, **YIELD) == [20, 15, 10]


def test_jobs_that_can_be_stopped_come_last_under_moving_priorities_too() -> None:
    policy = replace(
        sim.POLICIES.get("multifactor"), preempts=True, weights=sim.Weights(age=1000, period_s=1)
    )
    jobs = workload((0, 100, 1, LOW), (10, 5, 1))
    got = sim.simulate(jobs, ONE, policy, sim.Options(low_queues=["low"]))
    assert got.start.tolist() == [15, 10]


def test_a_low_queue_must_be_there() -> None:
    with pytest.raises(HakaruError, match="'lwo': no job has it; there are normal"):
        starts([(0, 1, 1)], ONE, "preempting", low_queues=["lwo"])


def test_usage_halves_in_a_half_life() -> None:
    """Ann's 10,000 PE seconds are 4,780 after 10,650 s if they halve every 10,000 s, and 3,450 if they fell
    to 1/e; Bob's 4,300 are 100 to 700 s old: about 4,150 or 4,050. Whoever has used less goes first.
    """
    hundred = sim.Machine.flat(100)
    jobs = [
        (0, 100, 100),
        (9_950, 100, 43, BOB),
        (10_100, 600, 100, {"user": "cat"}),
        (10_200, 10, 100),
        (10_300, 10, 100, BOB),
    ]
    weights = {"fair_share": 1000, "period_s": 1, "half_life_s": 10_000}
    assert ranked(jobs, hundred, **weights) == [0, 9_950, 10_100, 10_710, 10_700]
    # with 6,000 of his own Bob has used more than she
    jobs[1] = (9_950, 100, 60, BOB)
    assert ranked(jobs, hundred, **weights) == [0, 9_950, 10_100, 10_700, 10_710]
