"""A run beside the baseline: its metrics, their changes with intervals, and the same for groups of jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim.metrics import bounded_slowdown, groups_of, measure
from hakaru.sim.notation import counted
from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.bounds import held_to_scale
from hakaru.sim.whatif.curves import busy_of, use_of, waits_of
from hakaru.sim.whatif.intervals import Interval, Sample, Weeks
from hakaru.sim.whatif.outcome import Change, GroupChange, Variant
from hakaru.sim.whatif.variants import ORIGIN

if TYPE_CHECKING:
    from hakaru.sim.replay import Known
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.whatif.variants import Prepared
    from hakaru.sim.workload import Workload

QUANTILES = {"median_wait_s": 0.5, "p95_wait_s": 0.95, "p99_wait_s": 0.99}
OF_GROUPS = ("median_wait_s", "p95_wait_s")
MAX_GROUPS = 8  # accounts: those with most PE-hours
LEAST_JOBS = 30
# shares of all PE-hours, from the heaviest user down
USER_GROUPS = ((0.5, "heavy users"), (0.9, "medium users"), (1.0, "light users"))


@dataclass(frozen=True)
class Grouping:
    """Groups by what a job is in the log, whatever a variant makes of it; -1 for none that is told."""

    by: str
    code: Any
    names: Sequence[str]


@dataclass(frozen=True)
class Run:
    """A schedule, and which of its jobs are compared; a copy of a job, made to grow the load, is not."""

    schedule: Schedule
    keep: Any
    week: Any
    origin: Any
    began: Any  # by the job's number in the log, as `asked`: whether it is submitted at all
    asked: Any
    use: tuple[Any, Any]  # PE seconds used, and there, by week

    @classmethod
    def of(cls, prepared: Prepared, schedule: Schedule, weeks: Weeks, keep: Any) -> Run:
        workload = schedule.workload
        week, origin = weeks.of_jobs(workload.submit), workload.table[ORIGIN].to_numpy()
        own = workload.user < prepared.num_users
        began = np.zeros(len(prepared.asked), bool)
        began[origin[own & (schedule.start >= 0)]] = True
        keep = keep & (week >= 0) & own
        use = use_of(schedule, weeks.begins, draw.WEEK_S)
        return cls(schedule, keep, week, origin, began, prepared.asked, use)

    def metrics(self, among: Any = None) -> dict[str, float]:
        """Of the jobs compared; utilisation is that of the weeks in which they were submitted."""
        used, there = (float(each.sum()) for each in self.use)
        whole = measure(self.schedule, self.keep)
        counts = {name: whole[name] for name in ("num_jobs", "num_unstarted")}
        if among is not None:
            whole = measure(self.schedule, self.keep & among[self.origin]) | counts
        return whole | {"utilisation": used / there if there else np.nan}

    def samples(self, among: Any) -> tuple[Sample, Sample, Any]:
        """Waits and slowdowns of these jobs of the log, and which jobs they are."""
        chosen = self.keep & (self.schedule.start >= 0) & among[self.origin]
        week, users = self.week[chosen], self.schedule.workload.user[chosen]
        wait = Sample(self.schedule.wait[chosen].astype(float), week, users)
        return wait, Sample(bounded_slowdown(self.schedule)[chosen], week), self.origin[chosen]


@dataclass(frozen=True)
class Pair:
    """The baseline's run and a variant's: only jobs that begin in both are held side by side.

    A rule that stops jobs would seem to shorten waits if those who lose left the mean; `stopped` are
    the jobs of the log, of any week, that begin in the baseline and no longer do.
    """

    before: Run
    after: Run

    @property
    def both(self) -> Any:
        return self.before.began & self.after.began

    @property
    def stopped(self) -> Any:
        return self.before.began & self.after.asked & ~self.after.began

    @property
    def new(self) -> Any:
        return self.after.began & self.before.asked & ~self.before.began


def variant_of(
    prepared: Prepared,
    run: Run,
    before: Run | None,
    weeks: Weeks,
    groupings: Sequence[Grouping],
    known: Known | None = None,
) -> Variant:
    """`before` is the baseline's run; none where this is the baseline. `known` is how far that is off."""
    submit = run.schedule.workload.submit
    pair = Pair(before or run, run)
    plain = Variant(
        prepared.name,
        {"num_no_longer_run": float(pair.stopped.sum()), "num_newly_run": float(pair.new.sum())}
        | run.metrics(pair.both),
        (*prepared.notes, *_left_out(run.schedule)),
        waits=waits_of(run.samples(pair.both)[0].values),
        busy=busy_of(run.schedule, int(submit.min(initial=2**50)), int(submit.max(initial=0))),
        schedule=run.schedule,
    )
    if before is None:
        return plain
    return replace(
        plain,
        changes=_changes(weeks, pair, known),
        groups=tuple(
            each for grouping in groupings for each in _group_changes(weeks, pair, grouping, known)
        ),
        no_longer_run={each.by: counts for each in groupings if (counts := _counts(pair, each))},
    )


def groupings_of(workload: Workload) -> list[Grouping]:
    """Queue, class of parallelism, users by how much they use, and the accounts that use most."""
    by_name = [Grouping(by, *groups_of(workload, by)) for by in ("queue", "class")]
    return [*by_name, _of_users(workload), _of_accounts(workload)]


def _of_users(workload: Workload) -> Grouping:
    area = (workload.run.astype(float) * workload.pes)[workload.user >= 0]
    users = workload.user[workload.user >= 0]
    load = np.bincount(users, weights=area, minlength=len(workload.names["user"]))
    order = np.argsort(-load, kind="stable")
    before = np.cumsum(load[order]) - load[order]  # what the heavier ones use
    bounds = np.array([share for share, _ in USER_GROUPS[:-1]]) * load.sum()
    group = np.empty(len(load) + 1, np.int64)
    group[order] = np.searchsorted(bounds, before, side="right")
    group[-1] = -1
    sizes = np.bincount(group[:-1], minlength=len(USER_GROUPS))
    names = [f"{name} ({size:,})" for (_, name), size in zip(USER_GROUPS, sizes, strict=True)]
    return Grouping("user group", group[workload.user], names)


def _of_accounts(workload: Workload) -> Grouping:
    names = workload.names["account"]
    known = workload.account >= 0
    area = (workload.run.astype(float) * workload.pes)[known]
    load = np.bincount(workload.account[known], weights=area, minlength=len(names))
    largest = np.argsort(-load, kind="stable")[:MAX_GROUPS]
    place = np.full(len(names) + 1, -1)
    place[largest] = np.arange(len(largest))
    return Grouping("account", place[workload.account], [names[code] for code in largest])


def _changes(weeks: Weeks, pair: Pair, known: Known | None) -> dict[str, Change]:
    was, now = (run.metrics(pair.both) for run in (pair.before, pair.after))
    found: dict[str, Interval] = {
        "utilisation": draw.ratio_change(weeks, pair.before.use, pair.after.use)
    }
    if not pair.stopped.any():
        found |= _wait_intervals(weeks, pair)
    errors = known.errors(pair.both[pair.before.origin]) if known else {}
    held = {name: held_to_scale(name, each, was[name], now[name]) for name, each in found.items()}
    return {
        name: _change(
            was[name], now[name], held.get(name), weeks.count, errors.get(name), name in held
        )
        for name in was
    }


def _wait_intervals(weeks: Weeks, pair: Pair) -> dict[str, Interval]:
    (wait, slowdown, _), (new_wait, new_slowdown, _) = (
        run.samples(pair.both) for run in (pair.before, pair.after)
    )
    quantiles = draw.quantile_change(weeks, wait, new_wait, list(QUANTILES.values()))
    return {
        "mean_wait_s": draw.mean_change(weeks, wait, new_wait),
        "mean_bounded_slowdown": draw.mean_change(weeks, slowdown, new_slowdown),
        "gini_wait": draw.gini_change(weeks, wait, new_wait),
    } | dict(zip(QUANTILES, quantiles, strict=True))


def _counts(pair: Pair, grouping: Grouping) -> dict[str, int]:
    """How many jobs of each group no longer run."""
    codes = grouping.code[pair.stopped]
    counts = np.bincount(codes[codes >= 0], minlength=len(grouping.names))
    return {
        str(grouping.names[code]): int(counts[code]) for code in np.flatnonzero(counts).tolist()
    }


def _group_changes(
    weeks: Weeks, pair: Pair, grouping: Grouping, known: Known | None
) -> list[GroupChange]:
    listed = []
    stopped = _counts(pair, grouping)
    both = [run.samples(pair.both) for run in (pair.before, pair.after)]
    for code, name in enumerate(grouping.names):
        first, second = (wait.where(grouping.code[origin] == code) for wait, _, origin in both)
        if len(first.values) >= LEAST_JOBS:
            fewer = stopped.get(str(name), 0)
            mine = (grouping.code[pair.before.origin] == code) & pair.both[pair.before.origin]
            errors = known.errors(mine) if known else {}
            changes = _wait_changes(weeks, first, second, not fewer, errors)
            listed.append(GroupChange(grouping.by, str(name), len(first.values), changes, fewer))
    return listed


def _wait_changes(
    weeks: Weeks, before: Sample, after: Sample, is_whole: bool, errors: Mapping[str, float]
) -> dict[str, Change]:
    """Without intervals, and so without a claim, where jobs of the group no longer run."""
    shares = [QUANTILES[name] for name in OF_GROUPS]
    found: list[Interval] = [None] * len(shares)
    interval = None
    if is_whole:
        found = draw.quantile_change(weeks, before, after, shares)
        interval = draw.mean_change(weeks, before, after)
    num_weeks = draw.num_weeks(before)
    points = [np.quantile(sample.values, shares) for sample in (before, after)]
    quantiles = {
        name: _change(
            points[0][at], points[1][at], found[at], num_weeks, errors.get(name), is_whole
        )
        for at, name in enumerate(OF_GROUPS)
    }
    means = before.values.mean(), after.values.mean()
    mean = _change(*means, interval, num_weeks, errors.get("mean_wait_s"), is_whole)
    return {"mean_wait_s": mean} | quantiles


def _change(
    before: float,
    after: float,
    interval: Interval,
    num_weeks: int,
    error: float | None,
    is_asked: bool,
) -> Change:
    """`is_asked`: the metric has intervals, and all jobs still run."""
    before, after = float(before), float(after)
    bounds = draw.bounds_of(interval, before, after)
    if bounds is None:
        return Change(before, after, error=error, has_too_few_weeks=is_asked)
    return Change(before, after, *bounds, num_weeks, error)


def _left_out(schedule: Schedule) -> list[str]:
    notes = [f"{counted(num)} left out: {why}" for why, num in schedule.workload.left_out.items()]
    never = int((schedule.start < 0).sum())
    if never:
        verbs = ("begins", "counts") if never == 1 else ("begin", "count")
        notes.append(
            f"{counted(never)} never {verbs[0]} under these rules, and {verbs[1]} in no wait"
        )
    return notes
