"""What a schedule is judged by: waits, slowdowns, the machine's use, and fairness between users."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.schedule import REASONS

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

SLOWDOWN_BOUND_S = 10
BY = ("queue", "size", "class", "month", "account", "user")
CLASSES = ("single-pe", "single-node", "multi-node", "unknown-nodes")
UNKNOWN = "(unknown)"


def measure(schedule: Schedule, keep: Any = None) -> dict[str, float]:
    """One number a metric; nan where nothing is known.

    `keep` chooses the jobs whose waits count; use, idleness and loss are always the whole machine's.
    """
    chosen = np.ones(len(schedule.start), bool) if keep is None else np.asarray(keep, bool)
    began = chosen & (schedule.start >= 0)
    wait = schedule.wait[began].astype(float)
    slowdown = bounded_slowdown(schedule)[began]
    p50, p95, p99 = _percentiles(wait, (50, 95, 99))
    by_user = _means_of_users(schedule, began)
    totals, capacity_s = schedule.totals, schedule.totals["capacity_s"]
    return {
        "num_jobs": float(chosen.sum()),
        "num_unstarted": float(chosen.sum() - began.sum()),
        "mean_wait_s": _mean(wait),
        "median_wait_s": p50,
        "p95_wait_s": p95,
        "p99_wait_s": p99,
        "mean_bounded_slowdown": _mean(slowdown),
        "median_bounded_slowdown": _percentiles(slowdown, (50,))[0],
        "utilisation": _share(totals["busy_s"], capacity_s),
        "fragmentation": _share(totals["fragmented_s"], capacity_s),
        "idle_while_waiting": _share(totals["idle_while_waiting_s"], capacity_s),
        "gini_wait": gini(by_user),
        "worst_user_wait_s": float(by_user.max()) if len(by_user) else np.nan,
        "pe_hours_lost": totals["lost_s"] / 3600,
    }


def measure_by(schedule: Schedule, by: str, zone: str = "UTC") -> pa.Table:
    """A row a group: its jobs, how many never start if any do, and the waits and slowdown of the others."""
    import pyarrow as pa

    codes, names = groups_of(schedule.workload, by, zone)
    began = schedule.start >= 0
    of = [np.flatnonzero(began & (codes == code)) for code in range(len(names))]
    waits = [schedule.wait[jobs].astype(float) for jobs in of]
    slowdown = bounded_slowdown(schedule)
    columns = {
        by: pa.array(names, pa.string()),
        "num_jobs": _count(codes, len(names)),
        **({} if began.all() else {"num_unstarted": _count(codes[~began], len(names))}),
        "mean_wait_s": [_mean(wait) for wait in waits],
        "median_wait_s": [_percentiles(wait, (50,))[0] for wait in waits],
        "p95_wait_s": [_percentiles(wait, (95,))[0] for wait in waits],
        "mean_bounded_slowdown": [_mean(slowdown[jobs]) for jobs in of],
    }
    return pa.table(columns)


def _count(codes: Any, num: int) -> Any:
    import pyarrow as pa

    return pa.array(np.bincount(codes, minlength=num), pa.int64())


def why_waited(schedule: Schedule) -> pa.Table:
    """How many jobs waited for each reason, and their share of all jobs and of all waiting."""
    import pyarrow as pa

    waited = (schedule.start >= 0) & (schedule.wait > 0)
    reason, wait = schedule.why[waited].astype(np.int64), schedule.wait[waited].astype(float)
    num_jobs = np.bincount(reason, minlength=len(REASONS))
    waits = np.bincount(reason, weights=wait, minlength=len(REASONS))
    seen = [code for code in np.argsort(-waits, kind="stable") if num_jobs[code]]
    columns = {
        "reason": [REASONS[code] for code in seen],
        "num_jobs": num_jobs[seen],
        "share_of_jobs": num_jobs[seen] / max(1, len(schedule.start)),
        "share_of_wait": waits[seen] / max(1.0, waits.sum()),
    }
    return pa.table(columns)


def bounded_slowdown(schedule: Schedule) -> Any:
    """(wait + run) / run and at least 1, where a run counts as ten seconds at least (Feitelson 2001)."""
    run = (schedule.end - schedule.start).astype(float)
    return np.maximum((schedule.wait + run) / np.maximum(run, SLOWDOWN_BOUND_S), 1.0)


def gini(values: Any) -> float:
    """0 where all have the same, towards 1 where one has all; nan without values."""
    ordered = np.sort(np.asarray(values, float))
    if not len(ordered):
        return np.nan
    total = ordered.sum()
    ranks = np.arange(1, len(ordered) + 1)
    spread = (2 * ranks - len(ordered) - 1) @ ordered / (len(ordered) * total) if total else 0.0
    return max(0.0, float(spread))  # what is below zero is rounding


def groups_of(workload: Workload, by: str, zone: str = "UTC") -> tuple[Any, Sequence[str]]:
    """Each job's group as a number, and the groups' names in their order."""
    if by in ("queue", "account", "user"):
        return _named(getattr(workload, by), workload.names[by])
    if by == "size":
        return _dense(*_sizes(workload))
    if by == "class":
        return _dense(_classes(workload), CLASSES)
    if by == "month":
        return _dense(*_months(workload, zone))
    raise HakaruError(f"cannot measure by {by!r}; {hint(by, BY)}")


def month_bounds(workload: Workload, zone: str = "UTC") -> tuple[list[float], list[str]]:
    """When the months of submission begin on the site's clock and the last one ends, and their names."""
    if not len(workload):
        return [], []
    clock = ZoneInfo(zone)
    first, last = (
        datetime.fromtimestamp(int(moment), clock)
        for moment in (workload.submit.min(), workload.submit.max())
    )
    numbers = range(first.year * 12 + first.month - 1, last.year * 12 + last.month + 1)
    begins = [datetime(n // 12, n % 12 + 1, 1, tzinfo=clock).timestamp() for n in numbers]
    return begins, [f"{n // 12}-{n % 12 + 1:02}" for n in numbers[:-1]]


def _named(codes: Any, names: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The groups that have jobs, by name; the unknown last."""
    order = sorted(range(len(names)), key=lambda code: names[code])
    places = np.empty(len(names) + 1, np.int64)
    places[[*order, -1]] = np.arange(len(names) + 1)
    return _dense(places[codes], [*(names[code] for code in order), UNKNOWN])


def _dense(codes: Any, names: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """Without the groups that have no job."""
    present, dense = np.unique(codes, return_inverse=True)
    return dense, [names[code] for code in present]


def _sizes(workload: Workload) -> tuple[Any, Sequence[str]]:
    """Sizes up to each power of two: 1, 2, 3-4, 5-8, and so on."""
    largest = int(workload.pes.max(initial=1))
    bounds = [2**power for power in range((largest - 1).bit_length() + 1)]
    lows = [1, *(bound + 1 for bound in bounds[:-1])]
    names = [
        f"{low}-{high}" if low < high else f"{high}" for low, high in zip(lows, bounds, strict=True)
    ]
    return np.searchsorted(bounds, workload.pes), names


def _classes(workload: Workload) -> Any:
    """The classes of parallelism as analyses have them: by the nodes of the log, whatever was simulated."""
    nodes = workload.table["span_nodes"].fill_null(0).to_numpy(zero_copy_only=False)
    return np.select([workload.pes == 1, nodes == 1, nodes > 1], [0, 1, 2], 3)


def _months(workload: Workload, zone: str) -> tuple[Any, Sequence[str]]:
    begins, names = month_bounds(workload, zone)
    return np.searchsorted(begins, workload.submit, side="right") - 1, names


def _means_of_users(schedule: Schedule, began: Any) -> Any:
    """The mean wait of each user who is known."""
    known = began & (schedule.workload.user >= 0)
    users = schedule.workload.user[known]
    num_jobs = np.bincount(users)
    waits = np.bincount(users, weights=schedule.wait[known].astype(float))
    return waits[num_jobs > 0] / num_jobs[num_jobs > 0]


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else np.nan


def _percentiles(values: Any, which: Sequence[float]) -> list[float]:
    return np.percentile(values, which).tolist() if len(values) else [np.nan] * len(which)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else np.nan
