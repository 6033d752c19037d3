"""Who gains, who loses and by how much, in sentences; where an interval holds zero nothing is claimed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hakaru.sim.notation import counted
from hakaru.sim.whatif.outcome import Change, GroupChange, Variant
from hakaru.sim.words import duration as duration
from hakaru.sim.words import share

LEAST_CHANGE_S = 1.0
LEAST_BOUND_S = 0.1
MOST_UNSURE = 4  # groups that are named of which nothing can be said
WHOSE = {
    "queue": "jobs of queue {}",
    "class": "{} jobs",
    "user group": "{}",
    "account": "account {}",
}
CLASSES = {
    "single-pe": "single-{}",
    "single-node": "multi-{} single-node",
    "multi-node": "multi-node",
    "unknown-nodes": "multi-{} (nodes unknown)",
}


def sentences(baseline: Variant, variants: Sequence[Variant], unit: str) -> list[str]:
    """For each variant: the whole, then who gains, who loses, and of whom nothing can be said."""
    return [line for variant in variants for line in _of(variant, baseline.name, unit)]


def headlines(baseline: Variant, variants: Sequence[Variant], unit: str) -> list[str]:
    """A sentence a variant: the whole, whom it serves most, and who pays most."""
    return [f"{each.name}: {_whole(each, baseline.name)}{_most(each, unit)}." for each in variants]


def _whole(variant: Variant, baseline: str) -> str:
    stopped = int(variant.metrics.get("num_no_longer_run", 0))
    wait = variant.changes.get("mean_wait_s")
    if stopped:
        return (
            f"{counted(stopped)} no longer run{'s' if stopped == 1 else ''}, so that nothing is claimed of "
            "waits as a whole"
        )
    if wait is None or not _is_told(wait):
        return f"no change of waits as a whole can be told from “{baseline}”"
    return f"the mean wait {_moved(wait)}"


def _most(variant: Variant, unit: str) -> str:
    """The groups that gain and lose most, of those of which anything can be said."""
    sure = [group for group in variant.groups if _is_told(group.changes["mean_wait_s"])]
    if not sure:
        return "; nor of any group" if not variant.metrics.get("num_no_longer_run") else ""
    ordered = sorted(sure, key=lambda group: group.changes["mean_wait_s"].change)
    parts = []
    for verb, group, is_so in (
        ("gain", ordered[0], ordered[0].changes["mean_wait_s"].change < 0),
        ("lose", ordered[-1], ordered[-1].changes["mean_wait_s"].change > 0),
    ):
        mark = " ≈" if group.changes["mean_wait_s"].is_within_error else ""
        size = duration(group.changes["mean_wait_s"].change, True)
        ending = "s" if group.by == "account" else ""  # one account, many jobs or users
        named = f"{whose(group, unit)} {verb}{ending} most ({size}{mark} in mean wait)"
        parts.append(named if is_so else f"no group surely {verb}s")
    return "; " + ", ".join(parts)


def _of(variant: Variant, baseline: str, unit: str) -> Iterator[str]:
    yield from _no_longer(variant, baseline, unit)
    told = [
        f"{title} {_moved(change)}"
        for name, title in (
            ("mean_wait_s", "the mean wait"),
            ("p95_wait_s", "the 95th percentile of waits"),
        )
        if (change := variant.changes.get(name)) and _is_told(change)
    ]
    if told:
        yield f"{variant.name}: against “{baseline}”, {'; '.join(told)}."
    elif not variant.metrics.get("num_no_longer_run"):
        yield f"{variant.name}: no change of waits as a whole can be told from “{baseline}”."
    yield from _use(variant)
    sure = [group for group in variant.groups if _is_told(group.changes["mean_wait_s"])]
    for by in WHOSE:
        if mine := [group for group in sure if group.by == by]:
            yield f"{variant.name}, by {by}: {_who(mine, unit)}."
    unsure = [whose(group, unit) for group in variant.groups if group not in sure]
    if unsure and sure:
        yield f"{variant.name}: nothing can be said of {_some(unsure)}."


def _no_longer(variant: Variant, baseline: str, unit: str) -> Iterator[str]:
    """Who is stopped goes before who waits less, and where any are, waits prove nothing."""
    stopped, new = (
        int(variant.metrics.get(name, 0)) for name in ("num_no_longer_run", "num_newly_run")
    )
    if stopped:
        yield (
            f"{variant.name}: {counted(stopped)} no longer run{'s' if stopped == 1 else ''}, of those "
            f"that begin under “{baseline}”. Nothing is claimed of waits as a whole, nor of groups that "
            "lose jobs so; values are of the jobs that begin in both."
        )
    for by, counts in variant.no_longer_run.items():
        ordered = sorted(counts.items(), key=lambda each: -each[1])
        named = [_num_of(by, group, num, unit) for group, num in ordered]
        verb = "runs" if sum(counts.values()) == 1 else "run"
        yield f"{variant.name}, by {by}: {_joined(named)} no longer {verb}."
    if new:
        begin, do, count = ("begins", "does", "counts") if new == 1 else ("begin", "do", "count")
        yield (
            f"{variant.name}: {counted(new)} {begin} that never {do} under “{baseline}”, and {count} in no "
            "wait here."
        )


def whose(group: GroupChange, unit: str) -> str:
    name = _class(group.group, unit) if group.by == "class" else group.group
    return WHOSE[group.by].format(name)


def _num_of(by: str, group: str, num: int, unit: str) -> str:
    """How many jobs of a group: `2 multi-node jobs`, `1 job of queue short`."""
    if by == "class":
        return counted(num, f"{_class(group, unit)} job")
    return f"{counted(num)} of {'queue ' + group if by == 'queue' else WHOSE[by].format(group)}"


def _class(name: str, unit: str) -> str:
    return CLASSES.get(name, name).format(unit.upper())


def _is_told(change: Change) -> bool:
    """Only what is sure, is on one side, and does not read as zero."""
    if not change.is_sure or change.low is None or change.high is None:
        return False
    nearest = min(abs(change.low), abs(change.high))
    return abs(change.change) >= LEAST_CHANGE_S and nearest >= LEAST_BOUND_S and _agrees(change)


def _agrees(change: Change) -> bool:
    """Whether the interval lies on the side of the change itself, which skewed weeks may break."""
    assert change.low is not None
    return math.copysign(1, change.low) == math.copysign(1, change.change)


def _moved(change: Change) -> str:
    verb = "falls" if change.change < 0 else "rises"
    return (
        f"{verb} from {duration(change.before)} to {duration(change.after)} "
        f"({duration(change.change, True)}{_share(change)}, 95 % interval {_interval(change)})"
        + (
            f", which is less than the replay's own error of {_error(change)}"
            if _error(change)
            else ""
        )
    )


def _interval(change: Change) -> str:
    assert change.low is not None and change.high is not None
    weeks = f" from {change.num_weeks} weeks" if change.num_weeks else ""
    return f"{duration(change.low, True)} to {duration(change.high, True)}{weeks}"


def _use(variant: Variant) -> Iterator[str]:
    use = variant.changes.get("utilisation")
    if use and use.is_sure and use.low is not None and use.high is not None and _agrees(use):
        verb = "falls" if use.change < 0 else "rises"
        low, high = (f"{bound * 100:+.1f}".replace("-", "−") for bound in (use.low, use.high))
        yield (
            f"{variant.name}: the machine's use in these weeks {verb} from {share(use.before)} to "
            f"{share(use.after)} (interval of the change {low} to {high} points from "
            f"{use.num_weeks} weeks)."
        )


def _who(groups: Sequence[GroupChange], unit: str) -> str:
    """Who waits less and who longer on average, the largest changes first."""
    ordered = sorted(groups, key=lambda each: -abs(each.changes["mean_wait_s"].change))
    parts = []
    for verb, is_gain in (("shorter mean waits", True), ("longer mean waits", False)):
        named = [
            f"{whose(group, unit)} ({_size(change)})"
            for group in ordered
            if ((change := group.changes["mean_wait_s"]).change < 0) == is_gain
        ]
        parts += [f"{verb} for {_joined(named)}"] if named else []
    return "; ".join(parts)


def _size(change: Change) -> str:
    less = f", less than the replay's error of {_error(change)}" if _error(change) else ""
    return f"{duration(change.change, True)}{_share(change)}, interval {_interval(change)}{less}"


def _error(change: Change) -> str:
    """The replay's own error where a change is within it."""
    return duration(change.error) if change.is_within_error and change.error is not None else ""


def _share(change: Change) -> str:
    """In percent, or how many times as much where that says more."""
    if change.relative is None:
        return ""
    if change.relative >= 2:
        times = change.relative + 1
        return f", {times:,.0f} times" if times >= 20 else f", {times:.1f} times"
    return f", {share(change.relative, True)}"


def _some(names: Sequence[str]) -> str:
    """The first few, and how many there are beside them."""
    if len(names) <= MOST_UNSURE:
        return _joined(names)
    return _joined([*names[:MOST_UNSURE], f"{counted(len(names) - MOST_UNSURE, 'group')} more"])


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
