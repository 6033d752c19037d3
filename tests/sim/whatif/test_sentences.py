"""What is said of a variant, to the letter: the whole, who gains and loses, who no longer runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
from hakaru.sim.whatif.words import headlines, sentences, whose

BASE = Variant("as it is", {})
FALLS = Change(600.0, 300.0, -400.0, -200.0, 12)
RISES = Change(300.0, 900.0, 500.0, 700.0, 12)
UNSURE = Change(600.0, 300.0, -400.0, 200.0, 12)


def group(change: Change, name: str = "short", by: str = "queue") -> GroupChange:
    return GroupChange(by, name, 99, {"mean_wait_s": change})


def told(metrics: Any = None, unit: str = "gpu", **more: Any) -> list[str]:
    return sentences(BASE, [Variant("v", metrics or {}, **more)], unit)


def headline(metrics: Any = None, **more: Any) -> str:
    (line,) = headlines(BASE, [Variant("v", metrics or {}, **more)], "gpu")
    return line


def test_the_whole_is_of_the_mean_and_of_the_95th_percentile() -> None:
    changes = {"mean_wait_s": FALLS, "p95_wait_s": RISES, "median_wait_s": RISES}
    assert told(changes=changes) == [
        "v: against “as it is”, the mean wait falls from 10.0 min to 5.0 min (−5.0 min, −50.0 %, 95 % "
        "interval −6.7 min to −3.3 min from 12 weeks); the 95th percentile of waits rises from 5.0 min to "
        "15.0 min (+10.0 min, 3.0 times, 95 % interval +8.3 min to +11.7 min from 12 weeks)."
    ]
    assert told(changes={"mean_wait_s": UNSURE, "p95_wait_s": FALLS})[0].startswith(
        "v: against “as it is”, the 95th percentile of waits falls from 10.0 min"
    )
    within = Change(600.0, 300.0, -400.0, -200.0, 12, error=301.0)
    assert told(changes={"mean_wait_s": within})[0].endswith(
        "from 12 weeks), which is less than the replay's own error of 5.0 min."
    )


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (2.9, ", +190.0 %"),
        (3.0, ", 3.0 times"),
        (19.9, ", 19.9 times"),
        (20.0, ", 20 times"),
        (2000.4, ", 2,000 times"),
    ],
)
def test_what_is_three_times_as_much_is_said_so(after: float, said: str) -> None:
    change = Change(1.0, after, after - 1.5, after)
    (line,) = told(groups=(group(change),))[1:]
    assert f" s{said}, interval " in line or f" min{said}, interval " in line


@pytest.mark.parametrize(
    ("change", "is_told"),
    [
        (Change(10.0, 9.0, -1.5, -0.5), True),  # a second is the least
        (Change(10.0, 9.1, -1.5, -0.5), False),
        (Change(10.0, 5.0, -8.0, -0.1), True),  # a tenth of a second is the least of an end
        (Change(10.0, 5.0, -8.0, -0.09), False),
        (Change(10.0, 15.0, 0.1, 8.0), True),
        (Change(10.0, 15.0, 0.09, 8.0), False),
    ],
)
def test_what_reads_as_zero_is_not_claimed(change: Change, is_told: bool) -> None:
    assert ("v, by queue: " in " ".join(told(groups=(group(change),)))) == is_told


USE = Change(0.5, 0.625, 0.051, 0.2, 14)


def test_the_machine_s_use_is_in_points() -> None:
    (_, line) = told(changes={"utilisation": USE})
    assert line == (
        "v: the machine's use in these weeks rises from 50.0 % to 62.5 % (interval of the change +5.1 to "
        "+20.0 points from 14 weeks)."
    )
    falls = Change(0.5, 0.25, -0.3, -0.2, 14)
    (_, line) = told(changes={"utilisation": falls})
    assert "falls from 50.0 % to 25.0 % (interval of the change −30.0 to −20.0 points" in line
    for nothing in (
        Change(0.5, 0.6, -0.1, 0.2, 14),
        Change(0.5, 0.6),
        Change(0.5, 0.6, -0.2, -0.1, 14),
    ):
        assert len(told(changes={"utilisation": nothing})) == 1


def test_groups_are_told_by_kind_in_one_order() -> None:
    groups = (
        group(RISES, "lab", "account"),
        group(FALLS, "light users (3)", "user group"),
        group(RISES, "single-pe", "class"),
        group(FALLS, "short"),
        group(UNSURE, "long"),
    )
    lines = told(groups=groups)
    assert [line.partition(" (")[0] for line in lines[1:]] == [
        "v, by queue: shorter mean waits for jobs of queue short",
        "v, by class: longer mean waits for single-GPU jobs",
        "v, by user group: shorter mean waits for light users",
        "v, by account: longer mean waits for account lab",
        "v: nothing can be said of jobs of queue long.",
    ]


def test_gains_go_before_losses_and_several_are_joined() -> None:
    groups = tuple(
        group(change, name)
        for change, name in ((RISES, "a"), (FALLS, "b"), (Change(600, 200, -500, -300), "c"))
    )
    (line,) = told(groups=groups)[1:]
    assert line == (
        "v, by queue: shorter mean waits for jobs of queue c (−6.7 min, −66.7 %, interval −8.3 min to −5.0 "
        "min) and jobs of queue b (−5.0 min, −50.0 %, interval −6.7 min to −3.3 min from 12 weeks); longer "
        "mean waits for jobs of queue a (+10.0 min, 3.0 times, interval +8.3 min to +11.7 min from 12 weeks)."
    )


def test_four_groups_of_which_nothing_can_be_said_are_all_named() -> None:
    unsure = [group(UNSURE, f"q{n}") for n in range(5)]
    line = told(groups=(group(FALLS), *unsure[:4]))[-1]
    assert line == (
        "v: nothing can be said of jobs of queue q0, jobs of queue q1, jobs of queue q2 and jobs of queue q3."
    )
    line = told(groups=(group(FALLS), *unsure))[-1]
    assert line.endswith("jobs of queue q3 and 1 group more.")


def test_jobs_that_begin_only_here() -> None:
    assert told({"num_newly_run": 1.0})[0] == (
        "v: 1 job begins that never does under “as it is”, and counts in no wait here."
    )
    assert told({"num_newly_run": 1200.0})[0] == (
        "v: 1,200 jobs begin that never do under “as it is”, and count in no wait here."
    )


def test_where_jobs_no_longer_run_nothing_is_said_of_the_whole() -> None:
    lines = told({"num_no_longer_run": 2.0}, no_longer_run={"queue": {"a": 2}})
    assert lines == [
        "v: 2 jobs no longer run, of those that begin under “as it is”. Nothing is claimed of waits as a "
        "whole, nor of groups that lose jobs so; values are of the jobs that begin in both.",
        "v, by queue: 2 jobs of queue a no longer run.",
    ]
    assert headline({"num_no_longer_run": 2.0}, changes={"mean_wait_s": FALLS}) == (
        "v: 2 jobs no longer run, so that nothing is claimed of waits as a whole."
    )


def test_a_headline_names_those_who_gain_and_lose_most() -> None:
    """Given in another order than by how much they gain."""
    gains = [Change(600.0, 600.0 - by, -by - 9, -by + 9, 12) for by in (60.0, 90.0, 70.0)]
    groups = tuple(group(change, f"q{n}") for n, change in enumerate(gains))
    assert headline(changes={"mean_wait_s": FALLS}, groups=groups).endswith(
        "from 12 weeks); jobs of queue q1 gain most (−90 s in mean wait), no group surely loses."
    )
    losses = [Change(600.0, 600.0 + by, by - 9, by + 9, 12) for by in (60.0, 90.0, 70.0)]
    groups = tuple(group(change, f"q{n}") for n, change in enumerate(losses))
    assert headline(changes={"mean_wait_s": UNSURE}, groups=groups) == (
        "v: no change of waits as a whole can be told from “as it is”; no group surely gains, jobs of queue "
        "q1 lose most (+90 s in mean wait)."
    )


@pytest.mark.parametrize(
    ("name", "unit", "said"),
    [
        ("single-pe", "gpu", "single-GPU jobs"),
        ("single-node", "cpu", "multi-CPU single-node jobs"),
        ("multi-node", "gpu", "multi-node jobs"),
        ("unknown-nodes", "cpu", "multi-CPU (nodes unknown) jobs"),
    ],
)
def test_classes_in_words(name: str, unit: str, said: str) -> None:
    assert whose(GroupChange("class", name, 1, {}), unit) == said


def test_a_change_is_plain_data() -> None:
    change = Change(100.0, 60.0, -50.0, -30.0, 12, 40.0)
    assert change.as_dict() == {
        "before": 100.0, "after": 60.0, "change": -40.0, "relative": -0.4, "low": -50.0, "high": -30.0,
        "num_weeks": 12, "is_sure": True, "error": 40.0, "is_within_error": True,
        "has_too_few_weeks": False,
    }  # fmt: skip
    nothing = Change(0.0, math.nan).as_dict()
    assert [nothing[name] for name in ("before", "after", "change", "relative")] == [
        0.0,
        None,
        None,
        None,
    ]
    assert Change(0.0, 5.0, error=0.0).is_within_error is False
    assert Change(5.0, 5.0, error=0.0).is_within_error is True
    assert [Change(1, 2, *ends).is_sure for ends in ((0, 1), (-1, 0), (0.1, 1), (-1, -0.1))] == [
        False, False, True, True,
    ]  # fmt: skip


def test_an_outcome_as_plain_data() -> None:
    one = GroupChange("queue", "q", 50, {"mean_wait_s": FALLS}, 3)
    variant = Variant(
        "v", {"num_jobs": 5, "gini_wait": math.inf}, ("note",), {"mean_wait_s": FALLS}, (one,),
        {"queue": {"q": 3}}, ((1.0, 0.5),), ((3600, 2.5),),
    )  # fmt: skip
    outcome = Outcome(
        BASE, (variant,), ("s",), "error", ("n",), 12, 100, 7, "cpu", "Asia/Tokyo", ("h",)
    )
    held = outcome.as_dict()
    assert held["variants"] == [
        {
            "name": "v",
            "no_longer_run": {"queue": {"q": 3}},
            "metrics": {"num_jobs": 5, "gini_wait": None},
            "changes": {"mean_wait_s": FALLS.as_dict()},
            "groups": [
                {
                    "by": "queue", "group": "q", "num_no_longer_run": 3, "num_jobs": 50,
                    "changes": {"mean_wait_s": FALLS.as_dict()},
                }
            ],
            "notes": ["note"],
            "waits": [[1.0, 0.5]],
            "busy": [[3600, 2.5]],
        }
    ]  # fmt: skip
    rest = {key: value for key, value in held.items() if key not in ("baseline", "variants")}
    assert rest == {
        "headlines": ["h"], "sentences": ["s"], "known_error": "error", "notes": ["n"], "num_weeks": 12,
        "num_resamples": 100, "seed": 7, "unit": "cpu", "zone": "Asia/Tokyo",
    }  # fmt: skip
    assert held["baseline"]["name"] == "as it is"
    assert outcome.runs == (BASE, variant)
