"""What-ifs: defaults, groups, the table and the sentences, with numbers none of which are equal."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from hakaru import sim
from hakaru.settings import Capacity, Cluster, Queue
from hakaru.sim import whatif
from hakaru.sim.queues import QueueRule
from hakaru.sim.site import Site
from hakaru.sim.whatif import table
from hakaru.sim.whatif.changes import make_accurate, widen_queue
from hakaru.sim.whatif.compare import groupings_of
from hakaru.sim.whatif.curves import busy_of
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
from hakaru.sim.whatif.scenario import AccurateRequests, Failure
from hakaru.sim.whatif.variants import prepare
from hakaru.sim.whatif.words import headlines, sentences
from hakaru.sim.words import duration
from tests.sim._jobs import play, workload

DAY, HOUR = 86400, 3600


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


def test_a_variant_is_played_with_the_weights_and_options_that_it_names() -> None:
    text = """
        [[variant]]
        policy = "multifactor"
        weights = { size = 1000, half_life_d = 2 }
        estimates = "perfect"
        events = "batched"
        limits = ["user:running-jobs=3"]
    """
    site = Site("c", Cluster(zone="Asia/Tokyo", gpus_per_node=8, nodes=(Capacity(4),)))
    jobs = workload((0, 10, 1, {"requested_s": 99.0}))
    base, variant = prepare(whatif.read(text), jobs, site)
    usual = sim.POLICIES.get("multifactor").weights
    assert usual is not None and base.policy == sim.POLICIES.get("easy")
    assert variant.policy.weights == replace(usual, size=1000, half_life_s=2 * DAY)
    plain, options = base.options, variant.options
    assert (plain.limits, plain.estimates, plain.events) == ((), None, "one-by-one")
    assert options.limits == (sim.Limit("user", "running-jobs", 3),)
    assert options.estimates is not None and options.estimates(jobs).tolist() == [10]
    assert (options.events, options.zone) == ("batched", "Asia/Tokyo")


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
    assert list(users.names) == ["heavy users (2)", "medium users (2)", "light users (1)"]
    many = [(0, n + 1, 1, {"account": f"a{n}"}) for n in range(10)]
    *_, accounts = groupings_of(workload(*many))
    assert list(accounts.names) == [f"a{n}" for n in range(9, 1, -1)]
    assert accounts.code.tolist() == [-1, -1, *range(7, -1, -1)]


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
        "5.0 min",
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
        "v, by queue: shorter mean waits for jobs of queue q1 (−60 s, −60.0 %, interval −65 s to −55 s), "
        "jobs of queue q2 (−40 s, −40.0 %, interval −45 s to −35 s) and jobs of queue q0 (−20 s, −20.0 %, "
        "interval −25 s to −15 s)."
    ]


def test_jobs_that_no_longer_run_are_counted_the_most_first() -> None:
    lost = {"metrics": {"num_no_longer_run": 1.0}, "no_longer_run": {"queue": {"a": 2, "b": 7}}}
    first, second, *_ = told(**lost)
    assert first.startswith("v: 1 job no longer runs, of those that begin under “b”")
    assert second == "v, by queue: 7 jobs of queue b and 2 jobs of queue a no longer run."
    for by, group, named in (
        ("class", "single-pe", "1 single-GPU job no longer runs"),
        ("user group", "light users (60)", "1 job of light users (60) no longer runs"),
        ("account", "lab", "1 job of account lab no longer runs"),
    ):
        assert told(**lost | {"no_longer_run": {by: {group: 1}}})[1] == f"v, by {by}: {named}."
    (headline,) = headlines(Variant("b", {}), [Variant("v", {"num_no_longer_run": 1.0})], "gpu")
    assert headline.startswith("v: 1 job no longer runs, so that nothing")


def test_a_group_s_mean_and_95th_percentile() -> None:
    """101 jobs of 100 s at once: on one PE they wait 0, 100, … 10,000 s, on two half as long."""
    scenario = "[machine]\nprocessors = 1\n[[variant]]\nmachine = { processors = 2 }\n"
    jobs = workload(*[(0, 100, 1)] * 101)
    (variant,) = whatif.run(whatif.read(scenario), jobs, num_processes=1).variants
    (group,) = [each for each in variant.groups if each.by == "queue"]
    mean, p95 = (group.changes[name] for name in ("mean_wait_s", "p95_wait_s"))
    assert (mean.before, p95.before) == (5000, 9500)
    assert (mean.after, p95.after) == (pytest.approx(250_000 / 101), 4700)
