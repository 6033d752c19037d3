"""How far a replay is from what was recorded, and in which months it can be held against it.

A log tells what was asked for and given, not the rules by which it was: a what-if is no better than the
replay of the log itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.sim.metrics import groups_of, month_bounds

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.machine import Machine
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

Trust = Literal["yes", "partly", "no"]
CLOSE_S = 300
LEAST_WAIT_S = 60  # below it, one wait is as short as the other
MOST_OVERLOAD = 0.01  # of a month: a moment's overlap at a handover is no contradiction
FAR = 1.25  # times the machine: more than a few nodes that nobody told of


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
                f"{self.far_overload:.0%} of the time: they cannot have had all that is recorded"
            )
        if self.backlog:
            return f"{self.backlog:,} jobs of such a month still wait in the replay when it begins"
        if self.overload > MOST_OVERLOAD:
            return (
                f"the recorded jobs need a little more than the machine {self.overload:.0%} of the "
                "time: it may have been larger then"
            )
        return "the recorded jobs fit the machine"


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
        rows.append({by or "jobs": name} | _difference(recorded[jobs], simulated[jobs]))
    return pa.Table.from_pylist(rows)


def months_of(schedule: Schedule, zone: str = "UTC") -> list[Month]:
    """Which months the recorded jobs contradict, and how long that lasts in the replay."""
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
    """The jobs, as a mask, whose month the recorded jobs do not contradict."""
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
    moments, capacities = _capacity(machine)
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


def rank_correlation(a: Any, b: Any) -> float:
    """Spearman's: that of the ranks, equals sharing theirs; nan where one does not vary."""
    if len(a) < 2:
        return np.nan
    first, second = (ranks - ranks.mean() for ranks in (_ranks(a), _ranks(b)))
    spread = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / spread) if spread > 0 else np.nan


def _difference(recorded: Any, simulated: Any) -> dict[str, Any]:
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


def _capacity(machine: Machine) -> tuple[Any, Any]:
    """The moments at which PEs come or go, and how many there are before the first and after each."""
    up = np.ones(machine.num_nodes, bool)
    up[list(machine.closed)] = False
    sizes = machine.sizes
    moments, has = [], [int(sizes[up].sum())]
    for change in sorted(machine.changes, key=lambda change: change.time):
        step = int(change.kind == "up") - int(up[change.node])
        up[change.node] = change.kind == "up"
        moments.append(float(change.time))
        has.append(has[-1] + step * int(sizes[change.node]))
    return np.array(moments), np.array(has)


def _ranks(values: Any) -> Any:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[place]
