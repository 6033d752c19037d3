"""What is drawn of a run, and summed by week: the distribution of waits, and busy PEs over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hakaru.sim.machine import Machine
    from hakaru.sim.schedule import Schedule

MAX_POINTS = 400
HOUR_S = 3600


def waits_of(values: Any) -> tuple[tuple[float, float], ...]:
    """The share of jobs that waited no longer than so many seconds, at steps of equal share."""
    waits = np.sort(values)
    if not len(waits):
        return ()
    shares = np.linspace(0, 1, min(MAX_POINTS, len(waits)) + 1)[1:]
    at = np.minimum(np.ceil(shares * len(waits)).astype(np.int64), len(waits)) - 1
    values = np.unique(waits[at])
    # counted, not taken from the steps: these are rounded, and equal waits may go on beyond one
    reached = np.searchsorted(waits, values, side="right") / len(waits)
    return tuple(zip(values.astype(float).tolist(), reached.tolist(), strict=True))


def busy_of(schedule: Schedule, since: int, until: int) -> tuple[tuple[int, float], ...]:
    """Mean busy PEs from each moment to the next; bins of whole hours, as many as a figure can show."""
    if not (schedule.start >= 0).any():
        return ()
    span = max(until - since, 1)
    width = -(-span // (MAX_POINTS * HOUR_S)) * HOUR_S
    edges = np.arange(since, since + span + width, width)
    means = np.diff(busy_up_to(schedule, edges)) / width
    return tuple(zip(edges[:-1].tolist(), means.tolist(), strict=True))


def busy_up_to(schedule: Schedule, moments: Any) -> Any:
    """PE seconds used before each moment (of a job that was stopped and began again: its last run)."""
    began = schedule.start >= 0
    pes = schedule.workload.pes[began].astype(float)
    return _area(schedule.start[began], pes, moments) - _area(schedule.end[began], pes, moments)


def capacity_up_to(machine: Machine, since: int, moments: Any) -> Any:
    """PE seconds that the machine had between `since` and each moment."""
    sizes = machine.sizes.astype(float)
    is_open = np.ones(machine.num_nodes, bool)
    is_open[list(machine.closed)] = False
    times, steps = [since], [float(sizes[is_open].sum())]
    for change in sorted(machine.changes, key=lambda each: each.time):
        opens = change.kind == "up"
        if opens != is_open[change.node]:
            times.append(max(change.time, since))
            steps.append(float(sizes[change.node]) * (1 if opens else -1))
            is_open[change.node] = opens
    return _area(np.array(times), np.array(steps), moments)


def use_of(schedule: Schedule, begins: Any, width: int) -> tuple[Any, Any]:
    """PE seconds used, and there, from each of these moments on, for so many seconds."""
    ends = begins + width
    since = int(begins.min(initial=2**50))
    used = busy_up_to(schedule, ends) - busy_up_to(schedule, begins)
    there = [capacity_up_to(schedule.machine, since, each) for each in (ends, begins)]
    return used, there[0] - there[1]


def _area(times: Any, steps: Any, moments: Any) -> Any:
    """The integral up to each moment of a level that steps up at these times."""
    order = np.argsort(times, kind="stable")
    times, steps = times[order].astype(float), steps[order]
    level = np.concatenate([[0.0], np.cumsum(steps)])
    moved = np.concatenate([[0.0], np.cumsum(steps * times)])
    at = np.searchsorted(times, moments, side="right")
    return level[at] * moments - moved[at]
