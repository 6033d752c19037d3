"""Numbers of the simulator that are easily taken for one another: at their limits, and none of them equal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hakaru import sim
from hakaru.analyses import open_session
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.schema import INGESTS, JOBS, REJECTS
from hakaru.settings import Capacity, Cluster, Queue
from hakaru.sim.advise.losses import Loss
from hakaru.sim.advise.verdict import verdict_of
from hakaru.sim.advise.words import change_text, losses_text, name_of, value_text
from hakaru.sim.machine import Change as NodeChange
from hakaru.sim.machine import Group, Machine
from hakaru.sim.metrics import measure, measure_by
from hakaru.sim.naive import scores
from hakaru.sim.queues import QueueRule
from hakaru.sim.replay import Known, months_of
from hakaru.sim.site import MachineSpec, Site
from hakaru.sim.whatif import table
from hakaru.sim.whatif.changes import make_accurate, widen_queue
from hakaru.sim.whatif.compare import groupings_of
from hakaru.sim.whatif.curves import busy_of, capacity_up_to
from hakaru.sim.whatif.intervals import bounds_of
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
from hakaru.sim.whatif.scenario import AccurateRequests, Failure
from hakaru.sim.whatif.words import duration, headlines, sentences
from tests.conftest import job, put, put_jobs
from tests.sim._jobs import play, workload
from tests.sim.test_replay import MAY, recorded
from tests.sim.test_verdict import evidence, measured

DAY, HOUR, WEEK = 86400, 3600, 7 * 86400


# ---- sites and machines


def test_reasons_of_rejects_are_counted_the_most_first(lake: Lake) -> None:
    """Seven reasons with 7, 6, … 1 lines: five are named, the other three lines are of other reasons."""
    put_jobs(lake, [job(1)])
    bad = {"cluster": "c", "file": "f", "source": "swf", "text": "…"}
    rows = [
        bad | {"line": 10 * n + m, "reason": f"why {'abcdefg'[n]} '{m}'"}
        for n in range(7)
        for m in range(n + 1)
    ]
    put(lake, REJECTS.name, [*rows, bad | {"cluster": "d", "line": 99, "reason": "another's"}])
    with open_session(lake) as session:
        rejected = Site.of(session, "c").rejected
    begins = "rejected when the log was read: why "
    assert rejected == {f"{begins}{name} …": n for name, n in zip("gfedc", range(7, 2, -1), strict=True)} | {
        "rejected when the log was read, for other reasons": 3
    }  # fmt: skip


@pytest.mark.parametrize(("sources", "is_swf"), [(["swf"], True), (["swf", "sacct"], False)])
def test_a_log_of_two_formats_is_no_swf(tmp_path: Path, sources: list[str], is_swf: bool) -> None:
    lake = Lake.create(tmp_path / "w")
    put(lake, JOBS.name, [job(1)])
    at = datetime(2018, 1, 1, tzinfo=UTC)
    times = {"started_at": at, "ended_at": at, "synthetic": False}
    rows = [{"ingest_id": name, "cluster": "c", "source": name} | times for name in sources]
    put(lake, INGESTS.name, rows)
    with open_session(lake) as session:
        assert Site.of(session, "c").is_swf == is_swf


def test_what_speaks_of_nodes() -> None:
    assert MachineSpec(whole_nodes=False).speaks_of_nodes and MachineSpec(size=4).speaks_of_nodes
    assert not MachineSpec(processors=9).speaks_of_nodes and not MachineSpec().speaks_of_nodes


def test_a_total_that_grew_is_no_pool() -> None:
    later = datetime(2018, 1, 1, tzinfo=UTC)
    grown = Cluster(cpus=(Capacity(4), Capacity(8, later)))
    assert (
        Site(cluster=Cluster(cpus=(Capacity(4),)), unit="cpu", is_swf=True)
        .machine()
        .machine.num_pes
        == 4
    )
    with pytest.raises(HakaruError, match="the size of the cluster is not known"):
        Site(cluster=grown, unit="cpu", is_swf=True).machine()


def test_for_how_long_of_a_span_each_node_takes_jobs() -> None:
    changes = (NodeChange(50, 0, "drain"), NodeChange(150, 1, "up"), NodeChange(300, 2, "down"))
    machine = Machine.of_nodes(3, 2, changes=changes, closed=(1,))
    assert machine.seconds_up(100, 200).tolist() == [0, 50, 100]
    assert machine.seconds_up(0, 400).tolist() == [50, 250, 300]
    # 4 PEs at first, 2 from 50, 4 from 150, 2 from 300 on
    assert capacity_up_to(machine, 0, np.array([50, 150, 300, 400])).tolist() == [
        200,
        400,
        1000,
        1200,
    ]


def test_a_machine_without_some_nodes_keeps_the_others_as_they_are() -> None:
    machine = Machine(
        (Group(2, 4), Group(2, 8, "v100")),
        changes=(NodeChange(9, 1, "down"), NodeChange(9, 3, "up")),
        closed=(0, 3),
        names=("a", "b", "c", "d"),
    )
    less = machine.without(["a", "c"])
    assert less.groups == (Group(1, 4), Group(1, 8, "v100"))
    assert (less.closed, less.names) == ((1,), ("b", "d"))
    assert less.changes == (NodeChange(9, 0, "down"), NodeChange(9, 1, "up"))
    assert Machine.of_nodes(10, 1).node_names[-1] == "node-9"
    assert Machine.of_nodes(11, 1).node_names[0] == "node-00"


# ---- jobs


def test_scaled_estimates_are_rounded_and_never_nothing() -> None:
    jobs = workload((0, 10, 1), (0, 1, 1), (0, 1000, 1))
    assert sim.estimates_of("scaled:0.26")(jobs).tolist() == [3, 1, 260]
    assert sim.estimates_of("perfect")(jobs).tolist() == [10, 1, 1000]


def test_a_second_is_some_time() -> None:
    assert "run for no time at all" not in workload((0, 1, 1), (0, 2, 1)).notes
    assert workload((0, 1, 1), (0, 0, 1)).notes["run for no time at all"] == 1


# ---- the replay


def test_a_third_more_than_the_machine_is_far_more() -> None:
    jobs = [recorded(MAY, 20 * DAY, 3, 0.0), recorded(MAY, 20 * DAY, 1, 0.0)]
    (far,) = months_of(play(jobs, sim.Machine.flat(3), "fcfs"))
    assert far.trusted == "no" and "1.25 times the machine" in far.why


def test_the_worst_month_is_weighed_by_its_jobs() -> None:
    """Six jobs off by 10 s are worse than one off by 50 s."""
    recorded_s = np.zeros(7)
    simulated = np.array([10.0] * 6 + [50.0])
    known = Known(
        recorded_s, simulated, np.array([0] * 6 + [1]), ["June", "July"], np.ones(7, bool)
    )
    assert known.worst_month() == ("June", 0, 10)


def test_each_score_is_its_own() -> None:
    """Recorded 0, 10, … 1000 s, replayed none: the 95th percentile is off by 950 s, the mean by 500 s."""
    jobs = [recorded(60 * n, 1, 1, 10.0 * n) for n in range(101)]
    replay, _ = scores(play(jobs, sim.Machine.flat(9), "fcfs"), "UTC", None)
    assert (replay.mean_off_s, replay.p95_off_s) == (500, 950)
    assert replay.share_within_5min == pytest.approx(31 / 101)


def test_hours_that_are_lost_and_classes_of_unknown_nodes() -> None:
    """A node of four PEs is lost after an hour, and its job begins anew."""
    machine = sim.Machine.of_nodes(2, 4, changes=(sim.Change(HOUR, 0, "down"),))
    jobs = [(0, 2 * HOUR, 4, {"span_nodes": None}), (1, 10, 1, {"span_nodes": None})]
    got = play(jobs, machine, "easy")
    assert measure(got)["pe_hours_lost"] == 4
    classes = measure_by(got, "class").to_pylist()
    assert [each["class"] for each in classes] == ["single-pe", "unknown-nodes"]


# ---- what-ifs


def test_a_queue_of_one_node_takes_no_job_of_two() -> None:
    before = Queue(max_walltime_h=3, max_nodes=1)
    jobs = workload(
        (0, 5 * HOUR, 2, {"span_nodes": 2}), (1, 5 * HOUR, 3), (2, 60, 1, {"queue": "short"})
    )
    moved, _ = widen_queue(jobs, "short", QueueRule(max_walltime_h=6), before)
    assert [moved.names["queue"][code] for code in moved.queue] == ["normal", "short", "short"]


def test_half_of_three_users_are_two() -> None:
    jobs = workload(*((n, 10, 1, {"user": f"u{n}", "requested_s": 9e4}) for n in range(3)))
    changed, note = make_accurate(jobs, AccurateRequests(50), seed=1)
    assert int((changed.request < 90_000).sum()) == 2 and note.startswith("2 of 3 users")


def test_defaults_of_a_scenario() -> None:
    failure = Failure(datetime(2018, 1, 1))
    assert (failure.nodes, failure.hours, failure.kind) == (1, 24, "down")
    accurate = AccurateRequests(10)
    assert (accurate.factor, accurate.at_least_min) == (1.1, 10)


def test_users_and_accounts_by_how_much_they_use() -> None:
    """45, 20, 20, 10 and 5 of 100 PE seconds: what the heavier ones use is 0, 45, 65, 85 and 95."""
    runs = {"a": 45, "b": 20, "c": 20, "d": 10, "e": 5}
    jobs = [(0, run, 1, {"user": name, "account": name}) for name, run in runs.items()]
    *_, users, accounts = groupings_of(workload(*jobs))
    assert list(users.names) == ["heavy users (2)", "middling users (2)", "light users (1)"]
    many = [(0, n + 1, 1, {"account": f"a{n}"}) for n in range(10)]
    *_, accounts = groupings_of(workload(*many))
    assert list(accounts.names) == [f"a{n}" for n in range(9, 1, -1)]
    assert accounts.code.tolist() == [-1, -1, *range(7, -1, -1)]


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ((-400.0, 100.0), (-100.0, 100.0)),  # nothing falls by more than it was
        ((-50.0, 950.0), (-50.0, 950.0)),  # five times the larger value
        ((-50.0, 951.0), None),
        (None, None),
    ],
)
def test_intervals_as_they_are_told(found: Any, shown: Any) -> None:
    assert bounds_of(found, 100.0, 200.0) == shown


def test_a_long_curve_has_at_most_four_hundred_bins_of_whole_hours() -> None:
    got = play([(0, 30 * DAY, 2), (60 * DAY, 10, 1)], sim.Machine.flat(4), "fcfs")
    curve = busy_of(got, 0, 60 * DAY)
    assert len(curve) <= 400 and curve[1][0] % HOUR == 0
    width = curve[1][0]
    assert sum(value for _, value in curve) * width == pytest.approx(2 * 30 * DAY)


METRICS = {
    "num_jobs": 4.0, "num_no_longer_run": 3.0, "mean_wait_s": 90.0, "median_wait_s": 10.0,
    "p95_wait_s": 300.0, "p99_wait_s": 5000.0, "mean_bounded_slowdown": 2.5, "utilisation": 0.75,
    "gini_wait": 0.125,
}  # fmt: skip


def test_each_column_of_the_table_is_its_own() -> None:
    better = {
        "mean_wait_s": Change(100.0, 90.0, -15.0, -5.0),
        "utilisation": Change(0.5, 0.75, 0.125, 0.375),
    }
    runs = Variant("base", METRICS), (Variant("v", METRICS, changes=better),)
    outcome = Outcome(*runs, (), "", (), 12, 100, 1)
    base, variant = (
        dict(zip(table.heading(outcome), row, strict=True)) for row in table.rows(outcome)
    )
    assert variant == base | {
        "run": "v", "jobs that no longer run": "3", "change of mean wait": "−10 s (−15 s to −5 s)",
        "change of use in these weeks": "+25.0 (+12.5 to +37.5)",
    }  # fmt: skip
    assert [base[name] for name in ("mean wait", "p95 wait", "mean slowdown")] == [
        "90 s",
        "5 min",
        "2.50",
    ]
    assert (base["use in these weeks"], base["inequality"]) == ("75.0 %", "0.125")


def test_what_is_unsure_is_marked_so_whatever_the_error() -> None:
    assert table._change(Change(1800, 1901, -60, 300, 12, error=700), duration).endswith(" ?")


def told(*changes: Change, **more: Any) -> list[str]:
    groups = tuple(
        GroupChange("queue", f"q{n}", 99, {"mean_wait_s": c}) for n, c in enumerate(changes)
    )
    return sentences(
        Variant("b", {}), [Variant("v", **({"metrics": {}} | more), groups=groups)], "gpu"
    )


def test_the_largest_changes_are_named_first() -> None:
    gains = [Change(100, 100 - by, -by - 5, -by + 5) for by in (20, 60, 40)]
    assert [line for line in told(*gains) if "by queue" in line] == [
        "v, by queue: shorter mean waits for jobs of queue q1 (−60 s, −60 %, interval −65 s to −55 s), jobs "
        "of queue q2 (−40 s, −40 %, interval −45 s to −35 s) and jobs of queue q0 (−20 s, −20 %, interval "
        "−25 s to −15 s)."
    ]


def test_jobs_that_no_longer_run_are_counted_the_most_first() -> None:
    lost = {"metrics": {"num_no_longer_run": 1.0}, "no_longer_run": {"queue": {"a": 2, "b": 7}}}
    first, second, *_ = told(**lost)
    assert first.startswith("v: 1 job no longer runs, of those that begin under “b”")
    assert second == "v, by queue: no longer run 7 of jobs of queue b and 2 of jobs of queue a."
    (headline,) = headlines(Variant("b", {}), [Variant("v", {"num_no_longer_run": 1.0})], "gpu")
    assert headline.startswith("v: 1 job no longer runs, so that nothing")


# ---- advice


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("p95_wait_s", 5400.0, "90 min"),
        ("utilisation", 0.625, "62.5%"),
        ("mean_bounded_slowdown", 1234.5, "1,234.50"),
        ("mean_wait_s", float("nan"), "–"),
        ("mean_wait_s", None, "–"),
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
        "0 %",
        "0.0 %",
        "–",
    ]


def test_five_who_lose_are_named() -> None:
    losses = [Loss("user", f"u{n}", 9, 100.0, 400.0) for n in range(6)]
    assert losses_text(losses[:1]) == "user u0 (100 s to 6.67 min on average, +300.0 %)"
    assert losses_text(losses[:5]).endswith("user u4 (100 s to 6.67 min on average, +300.0 %)")
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
