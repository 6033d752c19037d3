"""Sentences: durations as a person says them, and no claim that reads as nothing."""

from __future__ import annotations

import pytest

from hakaru.sim.whatif.outcome import Change, GroupChange, Variant
from hakaru.sim.whatif.words import headlines, sentences, whose
from hakaru.sim.words import duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.04, "0 s"),
        (-0.04, "0 s"),
        (0.26, "+0.3 s"),
        (-119, "−119 s"),
        (120, "+2.0 min"),
        (7199, "+120.0 min"),
        (7200, "+2.0 h"),
        (-100_000, "−27.8 h"),
        (172_800, "+2.0 days"),
    ],
)
def test_durations_are_in_the_unit_that_a_person_would_use(seconds: float, said: str) -> None:
    assert duration(seconds, signed=True) == said


def told(change: Change) -> list[str]:
    """What is said of a variant whose one group changes so."""
    group = GroupChange("queue", "short", 99, {"mean_wait_s": change})
    variant = Variant("v", {"num_unstarted": 0}, changes={}, groups=(group,))
    return sentences(Variant("b", {}), [variant], "gpu")[1:]


def test_who_gains_and_who_loses() -> None:
    assert told(Change(100, 60, -50, -30)) == [
        "v, by queue: shorter mean waits for jobs of queue short (−40 s, −40.0 %, interval −50 s to −30 s)."
    ]
    assert told(Change(10, 60, 30, 70)) == [
        "v, by queue: longer mean waits for jobs of queue short (+50 s, 6.0 times, interval +30 s to +70 s)."
    ]
    assert told(Change(0, 60, 30, 70)) == [
        "v, by queue: longer mean waits for jobs of queue short (+60 s, interval +30 s to +70 s)."
    ]


@pytest.mark.parametrize(
    "change",
    [
        Change(100, 60, -50, 1),  # zero is inside
        Change(100, 60, -50, 0),
        Change(100, 60),  # no interval
        Change(100, 99.5, -0.9, -0.4),  # less than a second
        Change(100, 60, -50, -0.01),  # would read as an interval up to zero
        Change(100, 105, -50, -1),  # the weeks say otherwise
    ],
)
def test_nothing_is_claimed(change: Change) -> None:
    assert told(change) == []


def test_classes_are_named_by_what_the_cluster_counts() -> None:
    group = GroupChange("class", "single-node", 1, {})
    assert whose(group, "gpu") == "multi-GPU single-node jobs"
    assert whose(group, "cpu") == "multi-CPU single-node jobs"
    assert whose(GroupChange("account", "a{0}", 1, {}), "gpu") == "account a{0}"


def test_a_change_within_the_replays_error_says_so() -> None:
    (said,) = told(Change(100, 60, -50, -30, error=45))
    assert "interval −50 s to −30 s, less than the replay's error of 45 s" in said
    (said,) = told(Change(100, 60, -50, -30, error=39))
    assert "error" not in said


def test_a_headline_tells_the_whole_and_who_gains_and_loses_most() -> None:
    waits = {"short": Change(100, 60, -50, -30), "long": Change(10, 60, 30, 70, error=80)}
    groups = tuple(GroupChange("queue", n, 99, {"mean_wait_s": c}) for n, c in waits.items())
    changes = {"mean_wait_s": Change(100, 90, -15, -5)}
    variant = Variant("v", {}, changes=changes, groups=groups)
    assert headlines(Variant("b", {}), [variant], "gpu") == [
        "v: the mean wait falls from 100 s to 90 s (−10 s, −10.0 %, 95 % interval −15 s to −5 s); jobs of "
        "queue short gain most (−40 s in mean wait), jobs of queue long lose most (+50 s ≈ in mean wait)."
    ]
    (said,) = headlines(Variant("b", {}), [Variant("v", {"num_no_longer_run": 2})], "gpu")
    assert said == "v: 2 jobs no longer run, so that nothing is claimed of waits as a whole."
    (said,) = headlines(Variant("b", {}), [Variant("v", {})], "gpu")
    assert said == "v: no change of waits as a whole can be told from “b”; nor of any group."


def test_an_account_is_one_and_gains() -> None:
    waits = {"3": Change(100, 60, -50, -30), "4": Change(10, 60, 30, 70)}
    groups = tuple(GroupChange("account", n, 99, {"mean_wait_s": c}) for n, c in waits.items())
    (said,) = headlines(Variant("b", {}), [Variant("v", {}, groups=groups)], "gpu")
    assert "account 3 gains most (" in said and "account 4 loses most (" in said


def test_many_groups_of_which_nothing_can_be_said_are_counted() -> None:
    sure = GroupChange("queue", "short", 99, {"mean_wait_s": Change(100, 60, -50, -30)})
    unsure = [GroupChange("account", f"a{n}", 99, {"mean_wait_s": Change(1, 2)}) for n in range(9)]
    said = sentences(Variant("b", {}), [Variant("v", {}, groups=(sure, *unsure))], "gpu")[-1]
    assert said == (
        "v: nothing can be said of account a0, account a1, account a2, account a3 and 5 groups more."
    )
