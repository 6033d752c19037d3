"""A naive prediction of each wait from the waits before it, to compare a replay with.

A job is predicted to wait as long as the median of its user's last twenty jobs that had begun before it was
submitted. Where the user has none (or is not known), those of its queue count, then those of the whole log,
and the first jobs of a log, before which nobody began, are predicted not to wait. Nothing later is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim.replay import BOUNDS, Known, difference, recorded_waits

if TYPE_CHECKING:
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

NUM_LAST = 20
CHUNK = 200_000  # jobs whose last waits are held at a time


@dataclass(frozen=True)
class Score:
    """How far predicted waits are from the recorded ones.

    `mean_off_s` and `p95_off_s` are by how much a month is off on average, `months_within` counts the months
    whose mean is within 25 %.
    """

    name: str
    mean_off_s: float
    p95_off_s: float
    months_within: int
    num_months: int
    share_within_5min: float
    share_within_twice: float
    rank_correlation: float


def naive_waits(workload: Workload) -> Any:
    """The prediction for each job, in seconds."""
    waits = recorded_waits(workload)
    started = workload.submit + waits
    whole = np.zeros(len(workload), np.int64)
    found = np.full(len(workload), np.nan)
    for codes in (workload.user, workload.queue, whole):
        missing = np.isnan(found)
        found[missing] = _medians(codes, waits, started, workload.submit, missing)
    return np.nan_to_num(found)


def scores(schedule: Schedule, zone: str, keep: Any) -> list[Score]:
    """The replay and the naive prediction, for the same jobs by the same measures; none without a record."""
    replay = Known.of(schedule, zone, keep)
    if not replay.keep.any():
        return []
    naive = replace(replay, simulated=naive_waits(schedule.workload))
    return [_score("replay", replay), _score("naive", naive)]


def better_naive(replay: Score, naive: Score) -> list[str]:
    """The measures by which the naive prediction is nearer to the record."""
    smaller = ("mean_off_s", "p95_off_s")
    larger = ("months_within", "share_within_5min", "share_within_twice", "rank_correlation")
    return [name for name in smaller if getattr(naive, name) < getattr(replay, name)] + [
        name for name in larger if getattr(naive, name) > getattr(replay, name)
    ]


def _score(name: str, known: Known) -> Score:
    errors, row = (
        known.errors(),
        difference(known.recorded[known.keep], known.simulated[known.keep]),
    )
    off = known.months_off()
    return Score(
        name,
        errors["mean_wait_s"],
        errors["p95_wait_s"],
        sum(abs(part) <= BOUNDS[0][0] for part in off),
        len(off),
        row["share_within_5min"],
        row["share_within_twice"],
        row["rank_correlation"],
    )


def _medians(codes: Any, waits: Any, started: Any, submit: Any, wanted: Any) -> Any:
    """For each wanted job the median wait of the last of its group that began before it; nan for none."""
    known = np.flatnonzero(~np.isnan(started) & (codes >= 0))
    moments = np.unique(started[known])
    place = len(moments) + 1  # a group's places: one a moment, and one after the last
    keys = codes[known] * place + np.searchsorted(moments, started[known])
    order = np.argsort(keys, kind="stable")
    keys, ordered = keys[order], waits[known][order]
    jobs = np.flatnonzero(wanted)
    group = codes[jobs]
    begin = np.searchsorted(keys, group * place)
    end = np.searchsorted(keys, group * place + np.searchsorted(moments, submit[jobs], side="left"))
    end = np.where(group >= 0, end, begin)
    parts = [
        _last_medians(ordered, begin[at : at + CHUNK], end[at : at + CHUNK])
        for at in range(0, len(jobs), CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _last_medians(values: Any, begin: Any, end: Any) -> Any:
    """The median of the last values of each stretch; nan for an empty one."""
    places = end[:, None] - 1 - np.arange(NUM_LAST)
    inside = places >= begin[:, None]
    last = np.where(inside, values[np.where(inside, places, 0)] if len(values) else 0.0, np.inf)
    last.sort(axis=1)
    num, rows = inside.sum(axis=1), np.arange(len(end))
    middle = (last[rows, np.maximum(num - 1, 0) // 2] + last[rows, num // 2 % NUM_LAST]) / 2
    return np.where(num > 0, middle, np.nan)
