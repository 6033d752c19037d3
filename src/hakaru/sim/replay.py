"""How far a replay is from what was recorded, and which months a log can reproduce.

A log tells what was asked for and given, not the rules by which it was: a what-if is no better than the
replay of the log itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.sim.metrics import groups_of, month_bounds
from hakaru.sim.notation import counted
from hakaru.sim.words import share

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.machine import Change, Machine
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

Trust = Literal["yes", "partly", "no"]
Months = Literal["trusted", "plausible", "all"]
# whose jobs count where months are chosen so
TRUST: Mapping[str, tuple[Trust, ...]] = {
    "trusted": ("yes",),
    "plausible": ("yes", "partly"),
    "all": ("yes", "partly", "no"),
}
CLOSE_S = 300
LEAST_KNOWN = 0.95  # of the jobs that begin
LEAST_WAIT_S = 60  # below it, one wait is as short as the other
MOST_OVERLOAD = 0.01  # of a month: a moment's overlap at a handover does not count
FAR = 1.25  # times the machine: more than a few nodes that nobody told of
# how near a month's replayed mean wait is to the recorded one
BOUNDS = ((0.25, "within 25 %"), (0.5, "within 50 %"), (np.inf, "further off"))
STATISTICS: Mapping[str, Callable[[Any], Any]] = {
    "mean_wait_s": np.mean,
    "median_wait_s": np.median,
    "p95_wait_s": lambda values: np.quantile(values, 0.95),
    "p99_wait_s": lambda values: np.quantile(values, 0.99),
}


@dataclass(frozen=True)
class Month:
    """Shares of its time in which the recorded jobs need more PEs than the machine has, and far more.

    `backlog` is how many jobs of months with far more still waited in the replay when it began.
    """

    name: str
    num_jobs: int
    overload: float
    far_overload: float
    backlog: int

    @property
    def trusted(self) -> Trust:
        if self.far_overload > MOST_OVERLOAD or self.backlog:
            return "no"
        return "partly" if self.overload > MOST_OVERLOAD else "yes"

    @property
    def why(self) -> str:
        if self.far_overload > MOST_OVERLOAD:
            return (
                f"the recorded jobs need more than {FAR:g} times the machine "
                f"{share(self.far_overload)} of the time: they cannot have had all that is recorded"
            )
        if self.backlog:
            verb = "waits" if self.backlog == 1 else "wait"
            return (
                f"{counted(self.backlog)} of such a month still {verb} in the replay when it begins"
            )
        if self.overload > MOST_OVERLOAD:
            return (
                f"the recorded jobs need a little more than the machine {share(self.overload)} of the "
                "time: it may have been larger then"
            )
        return "the recorded jobs fit the machine"


@dataclass(frozen=True)
class Known:
    """Recorded beside replayed waits, a number a job; `month` is its month's, and `keep` who counts."""

    recorded: Any
    simulated: Any
    month: Any
    names: Sequence[str]
    keep: Any

    @classmethod
    def of(cls, schedule: Schedule, zone: str = "UTC", keep: Any = None) -> Known:
        recorded = recorded_waits(schedule.workload)
        month, names = groups_of(schedule.workload, "month", zone)
        known = (schedule.start >= 0) & ~np.isnan(recorded) & (True if keep is None else keep)
        return cls(recorded, schedule.wait.astype(float), month, names, known)

    def errors(self, among: Any = None) -> dict[str, float]:
        """By how much a month's statistic is off, on average over the jobs; empty where none is known.

        Month by month, as what is too long in one would otherwise hide what is too short in another.
        """
        chosen = self.keep if among is None else self.keep & among
        if not chosen.any():
            return {}
        months = [chosen & (self.month == code) for code in np.unique(self.month[chosen])]
        weights = [int(jobs.sum()) for jobs in months]
        return {
            name: float(np.average([self._apart(jobs, of) for jobs in months], weights=weights))
            for name, of in STATISTICS.items()
        }

    def months_off(self) -> list[float]:
        """By which part each month's mean is off."""
        codes = np.unique(self.month[self.keep])
        months = [self.keep & (self.month == code) for code in codes]
        pairs = ((self.recorded[jobs].mean(), self.simulated[jobs].mean()) for jobs in months)
        return [_off(float(recorded), float(simulated)) for recorded, simulated in pairs]

    def worst_month(self) -> tuple[str, int, float, float] | None:
        """The month whose mean wait is off most: its name, its jobs, the recorded and the replayed mean."""
        codes = np.unique(self.month[self.keep])
        if not len(codes):
            return None
        jobs = {code: self.keep & (self.month == code) for code in codes.tolist()}
        worst = max(jobs, key=lambda code: self._apart(jobs[code], np.mean))
        recorded, simulated = (each[jobs[worst]].mean() for each in (self.recorded, self.simulated))
        return self.names[worst], int(jobs[worst].sum()), float(recorded), float(simulated)

    def _apart(self, jobs: Any, of: Callable[[Any], Any]) -> float:
        return abs(float(of(self.simulated[jobs])) - float(of(self.recorded[jobs])))


def off_by(recorded_s: float | None, simulated_s: float | None) -> float | None:
    """By which part a replayed mean is off; waits below a minute count as one."""
    if recorded_s is None or simulated_s is None:
        return None
    return _off(recorded_s, simulated_s)


def differences(
    schedule: Schedule, by: str | None = None, zone: str = "UTC", keep: Any = None
) -> pa.Table:
    """Recorded and simulated waits side by side, a row a group (`all` without one); of `keep` only."""
    import pyarrow as pa

    codes, names = (
        groups_of(schedule.workload, by, zone) if by else (np.zeros(len(schedule.start)), ["all"])
    )
    recorded = recorded_waits(schedule.workload)
    known = (schedule.start >= 0) & ~np.isnan(recorded) & (True if keep is None else keep)
    simulated = schedule.wait.astype(float)
    rows = []
    for code, name in enumerate(names):
        jobs = known & (codes == code)
        rows.append({by or "jobs": name} | difference(recorded[jobs], simulated[jobs]))
    return pa.Table.from_pylist(rows)


def months_of(schedule: Schedule, zone: str = "UTC") -> list[Month]:
    """Which months the log can reproduce, and how long what it cannot lasts in the replay."""
    workload = schedule.workload
    if not len(workload):
        return []
    codes, names = groups_of(workload, "month", zone)
    begins, all_names = month_bounds(workload, zone)
    shares = [overload(workload, schedule.machine, begins, times) for times in (1.0, FAR)]
    at = [all_names.index(name) for name in names]
    over, far = (share[at] for share in shares)
    wrong = (far > MOST_OVERLOAD)[codes]
    months = []
    for code, name in enumerate(names):
        begin, num_jobs = begins[at[code]], int((codes == code).sum())
        waiting = wrong & (workload.submit < begin) & (schedule.start >= begin)
        numbers = float(over[code]), float(far[code]), int(waiting.sum())
        months.append(Month(name, num_jobs, *numbers))
    return months


def trusted_jobs(schedule: Schedule, months: Sequence[Month], zone: str = "UTC") -> Any:
    """The jobs, as a mask, whose month the log can reproduce."""
    codes, _ = groups_of(schedule.workload, "month", zone)
    return np.array([month.trusted == "yes" for month in months], bool)[codes]


def overload(
    workload: Workload, machine: Machine, bounds: Sequence[float], times: float = 1.0
) -> Any:
    """The share of each span between `bounds` in which recorded jobs need more PEs than there are.

    With `times`, so many times more.
    """
    start, end = _recorded_times(workload)
    known = ~np.isnan(start) & (end > start)
    pes = workload.pes[known]
    moments, capacities = _capacity(machine, start[known], end[known])
    at = np.concatenate([start[known], end[known], moments, bounds])
    needs = np.concatenate([pes, -pes, np.zeros(len(moments) + len(bounds), np.int64)])
    order = np.argsort(at, kind="stable")
    at, need = at[order], np.cumsum(needs[order])
    length = np.diff(at, append=at[-1])
    has = capacities[np.searchsorted(moments, at, side="right")] * times
    place = np.searchsorted(bounds, at, side="right") - 1
    inside = (place >= 0) & (place < len(bounds) - 1)
    over = np.bincount(
        place[inside], weights=(length * (need > has))[inside], minlength=len(bounds) - 1
    )
    return over / np.diff(bounds)


def recorded_waits(workload: Workload) -> Any:
    """As recorded; nan where the log does not say."""
    import pyarrow as pa

    waits = workload.table["wait_s"].cast(pa.float64())
    return np.array(waits.to_numpy(zero_copy_only=False), float)


def recorded_measures(schedule: Schedule) -> dict[str, float]:
    """The recorded waits of the jobs that begin in the schedule, as `measure` has the simulated ones.

    Empty where the log says too few: those of some would stand beside all.
    """
    recorded = recorded_waits(schedule.workload)
    began = schedule.start >= 0
    known = began & ~np.isnan(recorded)
    if not known.any() or known.sum() < LEAST_KNOWN * began.sum():
        return {}
    return {name: float(of(recorded[known])) for name, of in STATISTICS.items()}


def rank_correlation(a: Any, b: Any) -> float:
    """Spearman's: that of the ranks, equals sharing theirs; nan where one does not vary."""
    if len(a) < 2:
        return np.nan
    first, second = (ranks - ranks.mean() for ranks in (_ranks(a), _ranks(b)))
    spread = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / spread) if spread > 0 else np.nan


def _off(recorded_s: float, simulated_s: float) -> float:
    return (simulated_s - recorded_s) / max(recorded_s, LEAST_WAIT_S)


def difference(recorded: Any, simulated: Any) -> dict[str, Any]:
    """Of some jobs: means and medians of both waits, and how near the two are."""
    num = len(recorded)
    apart = np.abs(simulated - recorded)
    longer = np.maximum(np.maximum(recorded, simulated), LEAST_WAIT_S)
    shorter = np.maximum(np.minimum(recorded, simulated), LEAST_WAIT_S)
    return {
        "num_jobs": num,
        "recorded_mean_s": float(recorded.mean()) if num else None,
        "simulated_mean_s": float(simulated.mean()) if num else None,
        "recorded_median_s": float(np.median(recorded)) if num else None,
        "simulated_median_s": float(np.median(simulated)) if num else None,
        "median_apart_s": float(np.median(apart)) if num else None,
        "share_within_5min": float((apart <= CLOSE_S).mean()) if num else None,
        "share_within_twice": float((longer <= 2 * shorter).mean()) if num else None,
        "rank_correlation": rank_correlation(recorded, simulated),
    }


def _recorded_times(workload: Workload) -> tuple[Any, Any]:
    """From the recorded start for the recorded run time, which some logs keep apart from the end."""
    import pyarrow as pa

    stamps = workload.table["started_at"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    micros = stamps.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    run = workload.table["run_s"].cast(pa.float64()).to_numpy(zero_copy_only=False)
    start = np.array(micros, float) / 1e6
    return start, start + np.array(run, float)


def _capacity(machine: Machine, start: Any, end: Any) -> tuple[Any, Any]:
    """The moments at which PEs come or go, and how many there are before the first and after each.

    A node that drains is there until everybody has ended who may have begun on it.
    """
    order = np.argsort(start, kind="stable")
    starts, latest = start[order], np.maximum.accumulate(end[order])
    own: dict[int, list[Change]] = {}
    for change in sorted(machine.changes, key=lambda change: change.time):
        own.setdefault(change.node, []).append(change)
    steps = []
    for node, changes in own.items():
        is_up = node not in machine.closed
        for change, following in itertools.zip_longest(changes, changes[1:]):
            comes, at = change.kind == "up", float(change.time)
            if change.kind == "drain" and (num := np.searchsorted(starts, at)):
                at = max(at, min(latest[num - 1], following.time if following else np.inf))
            steps.append((at, (int(comes) - int(is_up)) * int(machine.sizes[node])))
            is_up = comes
    steps.sort()
    at_first = machine.num_pes - int(machine.sizes[list(machine.closed)].sum())
    has = at_first + np.cumsum([0, *(step for _, step in steps)])
    return np.array([at for at, _ in steps]), has


def _ranks(values: Any) -> Any:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[place]
