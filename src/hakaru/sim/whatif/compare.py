"""A run beside the baseline: its metrics, their changes with intervals, and the same for groups of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim.metrics import bounded_slowdown, groups_of, measure
from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.curves import busy_of, busy_up_to, capacity_up_to, waits_of
from hakaru.sim.whatif.intervals import Interval, Sample, Weeks
from hakaru.sim.whatif.outcome import Change, GroupChange, Variant
from hakaru.sim.whatif.variants import ORIGIN
from hakaru.sim.whatif.words import counted

if TYPE_CHECKING:
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.whatif.variants import Prepared
    from hakaru.sim.workload import Workload

QUANTILES = {"median_wait_s": 0.5, "p95_wait_s": 0.95, "p99_wait_s": 0.99}
OF_GROUPS = ("median_wait_s", "p95_wait_s")
MAX_GROUPS = 8  # accounts: those with most PE-hours
LEAST_JOBS = 30
# shares of all PE-hours, from the heaviest user down
USER_GROUPS = ((0.5, "heavy users"), (0.9, "middling users"), (1.0, "light users"))


@dataclass(frozen=True)
class Grouping:
    """Groups by what a job is in the log, whatever a variant makes of it; -1 for none that is told."""

    by: str
    code: Any
    names: Sequence[str]


@dataclass(frozen=True)
class Run:
    """A schedule, and what is compared of it: of the jobs to `keep`, those that began."""

    schedule: Schedule
    keep: Any
    wait: Sample
    slowdown: Sample
    origin: Any
    use: tuple[Any, Any]  # PE seconds used, and there, by week

    @classmethod
    def of(cls, schedule: Schedule, weeks: Weeks, keep: Any) -> Run:
        week = weeks.of_jobs(schedule.workload.submit)
        keep = keep & (week >= 0)
        began = keep & (schedule.start >= 0)
        return cls(
            schedule,
            keep,
            Sample(schedule.wait[began].astype(float), week[began], schedule.workload.user[began]),
            Sample(bounded_slowdown(schedule)[began], week[began]),
            schedule.workload.table[ORIGIN].to_numpy()[began],
            _use(schedule, weeks),
        )

    def metrics(self) -> dict[str, float]:
        """Of the jobs compared; utilisation is that of the weeks in which they were submitted."""
        used, there = (float(each.sum()) for each in self.use)
        return measure(self.schedule, self.keep) | {
            "utilisation": used / there if there else np.nan
        }


def variant_of(
    prepared: Prepared,
    run: Run,
    before: Run | None,
    weeks: Weeks,
    groupings: Sequence[Grouping],
) -> Variant:
    """`before` is the baseline's run; none where this is the baseline."""
    submit = run.schedule.workload.submit
    plain = Variant(
        prepared.name,
        run.metrics(),
        (*prepared.notes, *_left_out(run.schedule)),
        waits=waits_of(run.wait.values),
        busy=busy_of(run.schedule, int(submit.min(initial=2**50)), int(submit.max(initial=0))),
        schedule=run.schedule,
    )
    if before is None:
        return plain
    changes = _changes(weeks, before, run, before.metrics(), plain.metrics)
    groups = tuple(
        change for grouping in groupings for change in _group_changes(weeks, before, run, grouping)
    )
    return Variant(**{**plain.__dict__, "changes": changes, "groups": groups})


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


def _changes(
    weeks: Weeks, before: Run, after: Run, was: dict[str, float], now: Any
) -> dict[str, Change]:
    quantiles = draw.quantile_change(weeks, before.wait, after.wait, list(QUANTILES.values()))
    found: dict[str, Interval] = {
        "mean_wait_s": draw.mean_change(weeks, before.wait, after.wait),
        "mean_bounded_slowdown": draw.mean_change(weeks, before.slowdown, after.slowdown),
        "utilisation": draw.ratio_change(weeks, before.use, after.use),
        "gini_wait": draw.gini_change(weeks, before.wait, after.wait),
    } | dict(zip(QUANTILES, quantiles, strict=True))
    return {name: _change(was[name], now[name], found.get(name)) for name in was}


def _group_changes(weeks: Weeks, before: Run, after: Run, grouping: Grouping) -> list[GroupChange]:
    listed = []
    codes = [grouping.code[run.origin] for run in (before, after)]
    for code, name in enumerate(grouping.names):
        first, second = (
            run.wait.where(of == code) for run, of in zip((before, after), codes, strict=True)
        )
        if min(len(first.values), len(second.values)) >= LEAST_JOBS:
            changes = _wait_changes(weeks, first, second)
            listed.append(GroupChange(grouping.by, str(name), len(first.values), changes))
    return listed


def _wait_changes(weeks: Weeks, before: Sample, after: Sample) -> dict[str, Change]:
    shares = [QUANTILES[name] for name in OF_GROUPS]
    found = draw.quantile_change(weeks, before, after, shares)
    points = [np.quantile(sample.values, shares) for sample in (before, after)]
    quantiles = {
        name: _change(points[0][at], points[1][at], found[at]) for at, name in enumerate(OF_GROUPS)
    }
    interval = draw.mean_change(weeks, before, after)
    mean = _change(before.values.mean(), after.values.mean(), interval)
    return {"mean_wait_s": mean} | quantiles


def _change(before: float, after: float, interval: Interval) -> Change:
    return Change(float(before), float(after), *(interval or (None, None)))


def _use(schedule: Schedule, weeks: Weeks) -> tuple[Any, Any]:
    """PE seconds used, and there, in each week."""
    ends = weeks.begins + draw.WEEK_S
    since = int(weeks.begins.min(initial=2**50))
    used = busy_up_to(schedule, ends) - busy_up_to(schedule, weeks.begins)
    there = [capacity_up_to(schedule.machine, since, each) for each in (ends, weeks.begins)]
    return used, there[0] - there[1]


def _left_out(schedule: Schedule) -> list[str]:
    notes = [f"{counted(num)} left out: {why}" for why, num in schedule.workload.left_out.items()]
    never = int((schedule.start < 0).sum())
    if never:
        notes.append(f"{counted(never)} never begin under these rules, and count in no wait")
    return notes
