"""The table of a what-if: values, changes and intervals as texts, alike in the terminal, report and web."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hakaru.report._whatif import _group
from hakaru.sim import whatif
from hakaru.sim.whatif import table
from hakaru.sim.whatif.compare import groupings_of
from hakaru.sim.whatif.curves import waits_of
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
from hakaru.sim.words import duration
from hakaru.web.pages.what_if import _change as in_the_web
from hakaru.web.what_if.models import Change as WebChange
from tests.sim._jobs import workload

WEEK_S = 7 * 86400
FEW = Change(1800, 1901, has_too_few_weeks=True)
ASKED_FOR_NONE = Change(1800, 1901)
UNSURE = Change(1800, 1901, -60, 300, 12)
SURE = Change(1800, 2400, 300, 900, 12, error=700)


@pytest.mark.parametrize(
    ("change", "in_table", "interval"),
    [
        (FEW, "+101 s (too few weeks) ?", "too few weeks"),
        (ASKED_FOR_NONE, "+101 s ?", "–"),
        (UNSURE, "+101 s (−60 s to +5.0 min) ?", "−60 s to +5.0 min"),
        (SURE, "+10.0 min (+5.0 min to +15.0 min) ≈", "+5.0 min to +15.0 min"),
    ],
)
def test_a_change_reads_the_same_everywhere(change: Change, in_table: str, interval: str) -> None:
    assert table._change(change, duration) == in_table
    group = GroupChange("queue", "short", 50, {"mean_wait_s": change, "p95_wait_s": change})
    name, num_jobs, *cells = _group(group, "gpu")
    assert (name, num_jobs, cells[2], cells[5]) == ("jobs of queue short", "50", interval, interval)
    shown = in_the_web(WebChange(**change.as_dict()), "duration", True)
    assert shown["interval"] == ("" if interval == "–" else interval)


def outcome(num_weeks: int, quiet: int = 0) -> Outcome:
    """Weeks of six jobs of an hour on one PE, beside one of two; in `quiet` weeks there is one job."""
    jobs: list[Any] = []
    for week in range(num_weeks):
        num = 1 if week >= num_weeks - quiet else 6
        jobs += [(week * WEEK_S + at, 3600, 1) for at in range(num)]
    text = "[machine]\nprocessors = 1\n[[variant]]\nname = 'two'\nmachine = { processors = 2 }\n"
    return whatif.run(whatif.read(text), workload(*jobs), num_processes=1)


def test_fewer_than_ten_weeks_are_too_few() -> None:
    nine, ten = (outcome(num).variants[0].changes["mean_wait_s"] for num in (9, 10))
    # on one PE the waits are 0 to 5 h, on two 0, 0, 1, 1, 2 and 2 h, less the seconds of submission
    assert (nine.before, nine.after) == (
        pytest.approx(9000 - 2.5),
        pytest.approx(3600 - 2.5, abs=3),
    )
    assert (nine.low, nine.has_too_few_weeks) == (None, True)
    assert (ten.high, ten.has_too_few_weeks) == (pytest.approx(ten.change), False)
    # what has no interval by its nature is not said to need more weeks
    assert not outcome(9).variants[0].changes["pe_hours_lost"].has_too_few_weeks


def check(run: Variant, baseline: Variant, sentences: list[str]) -> None:
    """What is claimed of a run, from the numbers that stand beside it."""
    wait = run.changes["mean_wait_s"]
    assert wait.change == pytest.approx(
        run.metrics["mean_wait_s"] - baseline.metrics["mean_wait_s"]
    )
    whole = [text for text in sentences if text.startswith(f"{run.name}: against")]
    if any("the mean wait falls" in text for text in whole):
        assert wait.high is not None and wait.high < 0 and wait.change < 0
    if any("the mean wait rises" in text for text in whole):
        assert wait.low is not None and wait.low > 0 and wait.change > 0
    for group in run.groups:
        change = group.changes["mean_wait_s"]
        named = [
            text
            for text in sentences
            if f"{run.name}, by {group.by}" in text and group.group in text
        ]
        for text in named:
            gains, _, losers = text.partition("longer mean waits for ")
            if group.group in gains and "shorter" in gains:
                assert change.high is not None and change.high < 0 and change.change < 0
            elif group.group in losers:
                assert change.low is not None and change.low > 0 and change.change > 0


@pytest.mark.parametrize("seed", range(4))
def test_each_claim_agrees_with_its_own_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    jobs = []
    for week in range(14):
        for _ in range(int(random.integers(3, 12))):
            at = week * WEEK_S + int(random.integers(0, 20_000))
            more = {
                "queue": str(random.choice(["short", "long"])),
                "user": str(random.choice(list("abc"))),
            }
            jobs.append((at, 1 + int(random.exponential(4000)), int(random.integers(1, 4)), more))
    text = """
        [machine]
        processors = 4
        [[variant]]
        name = "more"
        machine = { processors = 6 }
        [[variant]]
        name = "less"
        machine = { processors = 3 }
        [[variant]]
        name = "strict"
        policy = "fcfs"
        [[variant]]
        name = "limited"
        limits = [{ scope = "user", what = "running-gpus", value = 3 }]
    """
    got = whatif.run(
        whatif.read(text), workload(*sorted(jobs, key=lambda job: job[0])), num_processes=1
    )
    for run in got.variants:
        check(run, got.baseline, list(got.sentences))
        for change in run.changes.values():
            if change.low is not None and change.high is not None:
                assert change.low <= change.high
                assert change.is_sure == (not change.low <= 0 <= change.high)
    more, less, *_ = got.variants
    assert more.changes["mean_wait_s"].change < 0 < less.changes["mean_wait_s"].change
    assert not math.isnan(more.changes["mean_wait_s"].change)


def test_a_curve_of_waits_counts_all_that_waited_no_longer() -> None:
    """Two thirds of 270 wait 0 s; of 1,000 values each point is the share up to it, whatever the steps."""
    assert waits_of(np.repeat([0, 3599], [180, 90])) == ((0.0, 180 / 270), (3599.0, 1.0))
    curve = dict(waits_of(np.repeat(np.arange(100), 10)))
    assert len(curve) == 100
    assert all(share == pytest.approx((value + 1) / 100) for value, share in curve.items())
    many = waits_of(np.arange(10_000))
    assert len(many) <= 400 and many[-1] == (9999.0, 1.0)
    assert all(share == (value + 1) / 10_000 for value, share in many)


def test_users_are_grouped_by_how_much_they_use() -> None:
    """50, 40 and 10 of 100 PE seconds: exactly half, then up to nine tenths, then the rest."""
    jobs = [(0, 10, 4, {"user": "ben"}), (1, 10, 1, {"user": "cy"}), (2, 50, 1, {"user": "ann"})]
    users = groupings_of(workload(*jobs, (3, 10, 9, {"user": None})))[2]
    assert list(users.names) == ["heavy users (1)", "medium users (1)", "light users (1)"]
    assert users.code.tolist() == [1, 2, 0, -1]


@pytest.mark.parametrize(("num_jobs", "is_compared"), [(29, False), (30, True)])
def test_a_group_of_thirty_jobs_is_compared(num_jobs: int, is_compared: bool) -> None:
    jobs: list[Any] = [(week * WEEK_S, 60, 1, {"queue": "other"}) for week in range(12)]
    jobs += [(at, 60, 1, {"queue": "small"}) for at in range(num_jobs)]
    text = "[machine]\nprocessors = 1\n[[variant]]\nname = 'two'\nmachine = { processors = 2 }\n"
    jobs.sort(key=lambda job: job[0])
    got = whatif.run(whatif.read(text), workload(*jobs), num_processes=1)
    named = [group.group for group in got.variants[0].groups if group.by == "queue"]
    assert named == (["small"] if is_compared else [])
