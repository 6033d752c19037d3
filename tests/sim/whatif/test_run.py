"""A scenario played: worked by hand on a small machine, the same in other processes, and on AAIC."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from hakaru.figures import figures_of_runs
from hakaru.lake import Lake
from hakaru.sim.site import Site, jobs_of
from hakaru.sim.whatif import Outcome, read, run
from hakaru.sim.whatif.curves import busy_of, busy_up_to, capacity_up_to, waits_of
from hakaru.sim.whatif.intervals import WEEK_S
from hakaru.sim.whatif.runners import play_all
from hakaru.sim.whatif.table import rows
from hakaru.sim.whatif.variants import prepare
from hakaru.sim.workload import Workload
from tests.sim._jobs import play, workload

POOL = """
[machine]
processors = {}
[[variant]]
name = "twice"
machine = {{ processors = {} }}
"""


def weekly(num_weeks: int = 12) -> Workload:
    """Every week forty jobs of ann and forty of bob at once, 100 s each, on one processor each.

    On 40 processors ann's begin at once and bob's, which come second, 100 s later. On 80 nobody waits.
    """
    week = [("ann", "vision")] * 40 + [("bob", "nlp")] * 40
    return workload(
        *(
            (number * WEEK_S, 100, 1, {"user": user, "account": account, "queue": user})
            for number in range(num_weeks)
            for user, account in week
        )
    )


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return run(read(POOL.format(40, 80)), weekly(), site=Site(unit="cpu"), num_processes=1)


def test_waits_worked_by_hand(outcome: Outcome) -> None:
    (twice,) = outcome.variants
    assert outcome.baseline.metrics["mean_wait_s"] == 50
    assert twice.metrics["mean_wait_s"] == 0
    change = twice.changes["mean_wait_s"]
    assert (change.change, change.low, change.high, change.relative) == (-50, -50, -50, -1)
    assert change.is_sure
    # in a week 80 jobs × 100 s on 40 and on 80 processors
    assert outcome.baseline.metrics["utilisation"] == pytest.approx(8000 / (40 * WEEK_S))
    assert twice.metrics["utilisation"] == pytest.approx(8000 / (80 * WEEK_S))


def test_groups_worked_by_hand(outcome: Outcome) -> None:
    groups = {(each.by, each.group): each for each in outcome.variants[0].groups}
    ann, bob = groups["queue", "ann"].changes, groups["account", "nlp"].changes
    assert (ann["mean_wait_s"].change, ann["mean_wait_s"].is_sure) == (0, False)
    assert (bob["mean_wait_s"].before, bob["p95_wait_s"].change) == (100, -100)
    assert groups["class", "single-pe"].num_jobs == 960


def test_sentences_claim_only_what_is_sure(outcome: Outcome) -> None:
    assert outcome.sentences[0] == (
        "twice: against “baseline”, the mean wait falls from 50 s to 0 s (−50 s, −100.0 %, 95 % interval "
        "−50 s to −50 s from 12 weeks); the 95th percentile of waits falls from 100 s to 0 s (−100 s, "
        "−100.0 %, 95 % interval −100 s to −100 s from 12 weeks)."
    )
    by_queue = next(each for each in outcome.sentences if "by queue" in each)
    assert by_queue == (
        "twice, by queue: shorter mean waits for jobs of queue bob (−100 s, −100.0 %, interval −100 s to "
        "−100 s from 12 weeks)."
    )
    claims = [each for each in outcome.sentences if "nothing can be said" not in each]
    assert not any("queue ann" in each or "account vision" in each for each in claims)
    assert "jobs of queue ann" in outcome.sentences[-1]


def test_too_few_weeks_claim_nothing() -> None:
    few = run(read(POOL.format(40, 80)), weekly(9), site=Site(unit="cpu"), num_processes=1)
    assert few.variants[0].changes["mean_wait_s"].low is None
    assert few.sentences == ("twice: no change of waits as a whole can be told from “baseline”.",)
    assert "The log has 9 weeks; intervals need 10, so nothing is claimed." in few.notes


def test_the_known_error_is_told() -> None:
    jobs = weekly()
    recorded = jobs.table.set_column(
        jobs.table.column_names.index("wait_s"), "wait_s", [[20.0] * len(jobs)]
    )
    told = run(
        read(POOL.format(40, 80)),
        replace(jobs, table=recorded),
        site=Site(unit="cpu"),
        num_processes=1,
    )
    assert (
        "a mean wait of 20 s and the baseline gives 50 s; 100.0 % of the waits" in told.known_error
    )
    # all recorded waits are the same, so that no rank can be told
    assert (
        "are within 5 min of the recorded ones. Month by month the mean is off by 30 s"
        in told.known_error
    )


def test_an_outcome_is_plain_data(outcome: Outcome) -> None:
    held = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert held["variants"][0]["changes"]["mean_wait_s"]["low"] == -50
    assert held["baseline"]["changes"] == {}
    assert held["sentences"] == list(outcome.sentences)
    assert {"known_error", "notes", "num_weeks", "seed", "unit", "zone"} <= set(held)


STOPS = """
[machine]
processors = 8
[baseline]
name = "as it is"
[[variant]]
name = "limit"
{}
"""


def wide_and_narrow(num_weeks: int = 12) -> Workload:
    """Every week forty wide jobs of wes come first and forty narrow ones of nan with them.

    On 8 processors a wide job of 100 s is alone: the n-th waits n·100 s, and the narrow ones come after all.
    """
    week = [("wes", 8)] * 40 + [("nan", 1)] * 40
    return workload(
        *(
            (number * WEEK_S, 100, pes, {"user": user, "queue": user})
            for number in range(num_weeks)
            for user, pes in week
        )
    )


@pytest.mark.parametrize(
    "rule",
    [
        'limits = [{ scope = "user", what = "running-gpus", value = 3 }]',  # never begin
        "queues.wes = { max_gpus = 3 }",  # refused
        "machine = { processors = 3 }",  # larger than the machine
    ],
)
def test_no_gain_is_claimed_by_dropping_those_who_lose(rule: str) -> None:
    told = run(read(STOPS.format(rule)), wide_and_narrow(), site=Site(unit="cpu"), num_processes=1)
    (limit,) = told.variants
    assert limit.metrics["num_no_longer_run"] == 12 * 40
    assert limit.no_longer_run["queue"] == {"wes": 480}
    assert told.sentences[0].startswith("limit: 480 jobs no longer run, of those that begin under")
    assert "limit, by queue: 480 jobs of queue wes no longer run." in told.sentences
    wait = limit.changes["mean_wait_s"]
    assert (wait.low, wait.is_sure) == (None, False)
    assert wait.before == 4000 + (8 * 0 + 8 * 100 + 8 * 200 + 8 * 300 + 8 * 400) / 40  # nan's alone
    assert not any(
        "mean wait falls" in each or "for jobs of queue wes" in each for each in told.sentences
    )
    # the queue that loses no job does gain, and the class that holds both is not spoken of
    groups = {(each.by, each.group): each for each in limit.groups}
    assert ("queue", "wes") not in groups
    assert groups["queue", "nan"].changes["mean_wait_s"].is_sure
    assert groups["account", "lab"].num_no_longer_run == 480
    assert not groups["account", "lab"].changes["mean_wait_s"].is_sure
    assert rows(told)[1][:2] == ["limit", "480"]
    assert told.as_dict()["variants"][0]["metrics"]["num_no_longer_run"] == 480


def test_jobs_that_begin_only_in_the_variant_are_told() -> None:
    text = """
    [machine]
    processors = 8
    [baseline]
    limits = [{ scope = "user", what = "running-gpus", value = 3 }]
    [[variant]]
    name = "free"
    limits = []
    """
    told = run(read(text), wide_and_narrow(), site=Site(unit="cpu"), num_processes=1)
    (free,) = told.variants
    assert (free.metrics["num_newly_run"], free.metrics["num_no_longer_run"]) == (480, 0)
    assert told.sentences[0] == (
        "free: 480 jobs begin that never do under “baseline”, and count in no wait here."
    )
    wait = free.changes["mean_wait_s"]  # of nan's jobs, 3 at a time before; after wes's now
    assert (wait.after, wait.is_sure) == (4200, True)


def test_users_left_out_to_lower_the_load_are_not_stopped_by_a_rule() -> None:
    told = run(read(STOPS.format("load = 0.5")), weekly(12), site=Site(unit="cpu"), num_processes=1)
    assert told.variants[0].metrics["num_no_longer_run"] == 0


def test_copies_that_grow_the_load_are_not_compared() -> None:
    text = STOPS.format("load = 1.5").replace("8", "80")
    told = run(read(text), weekly(12), site=Site(unit="cpu"), num_processes=1)
    assert told.variants[0].metrics["num_jobs"] == 12 * 80
    assert len(told.variants[0].schedule.workload) == 12 * 120  # type: ignore[union-attr]


def test_an_empty_log_is_refused() -> None:
    with pytest.raises(HakaruError, match="there is no job to replay"):
        run(read(POOL.format(1, 2)), workload())


def test_a_machine_that_no_job_fits_is_told_and_drawn() -> None:
    jobs = workload(*((at * WEEK_S, 10, 5) for at in range(6)))
    told = run(read(POOL.format(2, 4)), jobs, site=Site(unit="cpu"), num_processes=1)
    assert told.baseline.notes == ("6 jobs left out: larger than the machine",)
    assert told.baseline.busy == ()
    assert len(figures_of_runs(told)) == 3


def test_other_processes_give_the_same_schedules() -> None:
    text = """
    seed = 3
    [machine]
    nodes = 3
    size = 2
    [baseline]
    policy = "multifactor"
    weights = { age = 10, size = 5 }
    [[variant]]
    name = "limit"
    estimates = "perfect"
    limits = [{ scope = "user", what = "running-jobs", value = 2 }]
    [[variant]]
    name = "more"
    load = 1.3
    """
    rng = np.random.default_rng(1)
    jobs = workload(
        *(
            (at * 40 + at // 50 * WEEK_S, int(run), int(pes), {"user": f"u{at % 12}"})
            for at, (run, pes) in enumerate(rng.integers([1, 1], [500, 8], (200, 2)))
        )
    )
    runs = prepare(read(text), jobs)
    told: list[tuple[int, int, str]] = []
    here = play_all(runs, num_processes=1)
    there = play_all(runs, num_processes=2, progress=lambda *each: told.append(each))
    for one, other in zip(here, there, strict=True):
        for name in ("start", "end", "reason", "num_nodes", "offset", "node"):
            assert getattr(one, name).tolist() == getattr(other, name).tolist()
        assert one.totals == other.totals
        assert one.workload.table.equals(other.workload.table)
        assert one.workload.left_out == other.workload.left_out
    assert here[0].workload.left_out == {"larger than the machine": int((jobs.pes > 6).sum())}
    assert [each[:2] for each in told] == [(1, 3), (2, 3), (3, 3)]
    assert {each[2] for each in told} == {"baseline", "limit", "more"}


def test_queues_that_yield_and_nodes_that_fail_are_played() -> None:
    text = """
    [machine]
    nodes = 1
    size = 1
    [[variant]]
    name = "yield"
    policy = "preempting"
    low_queues = ["low"]
    [[variant]]
    name = "fail"
    failures = [{ at = 1970-01-01T00:00:50Z, nodes = 1, hours = 1 }]
    """
    jobs = workload((0, 100, 1, {"queue": "low"}), (10, 20, 1))
    plain, stopped, failed = play_all(prepare(read(text), jobs), num_processes=1)
    assert plain.start.tolist() == [0, 100]
    assert stopped.start.tolist() == [30, 10]  # stopped at 10, begun anew at 30
    # lost at 50, and the node is back after an hour
    assert failed.start.tolist() == [3650, 3750]
    assert (stopped.num_restarts.tolist(), failed.num_restarts.tolist()) == ([1, 0], [1, 0])


def test_a_process_that_fails_says_why() -> None:
    runs = prepare(read(POOL.format(2, 4)), weekly(1))
    broken = replace(runs[1], recipe=replace(runs[1].recipe, policy="gone"))
    with pytest.raises(HakaruError, match="there is no policy 'gone'"):
        play_all([runs[0], broken], num_processes=2)


def test_busy_and_capacity_up_to_a_moment() -> None:
    schedule = play([(0, 100, 2), (0, 50, 2), (10, 100, 4)], sim.Machine.flat(4), "fcfs")
    # 4 busy to 50, 2 to 100, 4 to 200
    moments = np.array([0, 50, 75, 100, 200, 300])
    assert busy_up_to(schedule, moments).tolist() == [0, 200, 250, 300, 700, 700]
    assert busy_of(schedule, 0, 3600) == ((0, 700 / 3600),)
    machine = sim.Machine.over_time([(0, 2), (100, 3), (200, 1)], 8)
    assert capacity_up_to(machine, 0, np.array([100, 150, 200, 300])).tolist() == [
        1600,
        2800,
        4000,
        4800,
    ]


def test_the_curve_of_waits_reaches_one_at_the_longest() -> None:
    assert waits_of(np.array([5, 0, 0, 20])) == ((0.0, 0.5), (5.0, 0.75), (20.0, 1.0))
    assert waits_of(np.array([])) == ()


AAIC = """
seed = 1
[machine]
nodes = 38
size = 8
[baseline]
name = "as it is"
[[variant]]
name = "30 nodes more"
nodes = +30
[[variant]]
name = "the same"
policy = "easy"
"""


@pytest.fixture(scope="module")
def aaic(aaic_lake: Lake) -> tuple[Workload, Site]:
    from hakaru.analyses import Selection, open_session

    with open_session(aaic_lake) as session:
        chosen = Selection(clusters=("aaic",), since="2018-07-01")
        site = Site.of(session, "aaic")
        return site.workload(jobs_of(session, chosen)), site


def test_aaic_with_more_nodes_waits_less_and_with_the_same_no_less(
    aaic: tuple[Workload, Site],
) -> None:
    told = run(read(AAIC), *aaic, num_processes=1)
    more, same = told.variants
    wait = more.changes["mean_wait_s"]
    # waits are of a few weeks that follow one another, so that the interval is wide
    assert wait.change < 0 and wait.low < wait.change < wait.high
    assert wait.error == pytest.approx(940.5, abs=1) and not wait.is_within_error
    assert more.metrics["utilisation"] < told.baseline.metrics["utilisation"]
    for change in [*same.changes.values(), *(g.changes["mean_wait_s"] for g in same.groups)]:
        assert not change.is_sure
        assert change.change == 0 or np.isnan(change.change)
    assert [each for each in told.sentences if each.startswith("the same")] == [
        "the same: no change of waits as a whole can be told from “as it is”."
    ]
    # November needs a little more than the machine, so its jobs are replayed but not compared
    compared: Any = told.baseline.metrics["num_jobs"]
    assert 0 < compared < len(aaic[0])
    assert any("2018-11, as the recorded jobs need" in note for note in told.notes)
