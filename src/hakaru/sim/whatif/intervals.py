"""How sure a difference is: weeks of submission are drawn anew with replacement, the same for both runs.

Weeks that follow one another are alike (a campaign or a backlog goes on), so they are drawn in blocks of as
many as the square root of their number, wrapped round at the end (Politis and Romano 1992). Everything is
summed by week once; a resample is then a row of how often each block was drawn, times those sums. Intervals
of means and shares are studentised with the error between blocks (Götze and Künsch 1996), as plain ones are
too short where blocks are few and skewed; those of quantiles and of the Gini coefficient, whose spread in a
resample is not known, are widened as Student's t is. `benchmarks/coverage.py` measures what both hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

WEEK_S = 7 * 86400
LEAST_WEEKS = 10
MAX_BINS = 2048
LEVEL = 0.95
Z = 1.959964  # the normal quantile of that level
LEAST_BLOCKS = 3
NOTHING = 1e-9  # an error that is rounding alone
WIDEST = 3.0  # times the change: wider than that, and than the baseline's value, says nothing
TOO_FEW = "too few weeks"
CHUNK = 4_000_000  # numbers of a product of draws and sums that are held at a time

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Weeks:
    """The weeks that hold jobs, by when they begin, and how often each was drawn: a row a resample.

    `blocks` counts the draws of each block by its first week, `length` is how many weeks a block has.
    """

    begins: Any
    draws: Any
    blocks: Any
    length: int

    @classmethod
    def of(cls, submit: Any, seed: int, num_resamples: int, length: int | None = None) -> Weeks:
        """Weeks are counted from the first submission; those without a job say nothing and are not drawn."""
        first = int(submit.min()) if len(submit) else 0
        begins = first + np.unique((submit - first) // WEEK_S) * WEEK_S
        num, length = len(begins), length or block_length(len(begins))
        chance = np.full(max(num, 1), 1 / max(num, 1))
        random = np.random.default_rng(seed)
        blocks = random.multinomial(round(num / length), chance, size=num_resamples).astype(float)
        return cls(begins, _rolled(blocks, length, -1), blocks, length)

    @property
    def count(self) -> int:
        return len(self.begins)

    @property
    def are_enough(self) -> bool:
        return self.count >= LEAST_WEEKS

    def of_jobs(self, submit: Any) -> Any:
        """The place of each job's week; -1 for one that is not drawn from."""
        place = np.searchsorted(self.begins, submit, side="right") - 1
        inside = (place >= 0) & (submit - self.begins[place] < WEEK_S)
        return np.where(inside, place, -1)


def bounds_of(found: Interval, before: float, after: float) -> Interval:
    """An interval as it is told, for the terminal, the web and the report; none where weeks are too few.

    They are too few where the interval is wider than the baseline's own value and than `WIDEST` times the
    change: +1.7 h, from -2 min to +8 h, of a wait of half an hour is no number, for all that can be said is
    that it may be anything. No wait, slowdown or share falls below zero.
    """
    if found is None:
        return None
    low, high = max(found[0], -before), found[1]
    return None if high - low > max(before, WIDEST * abs(after - before)) else (low, high)


def block_length(num_weeks: int) -> int:
    """So many weeks are drawn together: the square root of their number, but at least three blocks."""
    return max(1, min(math.ceil(math.sqrt(num_weeks)), num_weeks // LEAST_BLOCKS))


def mean_change(weeks: Weeks, before: Sample, after: Sample) -> Interval:
    return ratio_change(weeks, _sums(weeks, before), _sums(weeks, after))


def quantile_change(
    weeks: Weeks, before: Sample, after: Sample, shares: Sequence[float]
) -> list[Interval]:
    """An interval a quantile, from counts by week and bin: exact where values are few, else to 1/2048."""
    edges = _edges(before.values, after.values)
    if min(num_weeks(before), num_weeks(after)) < LEAST_WEEKS:
        return [None] * len(shares)
    drawn = [_quantiles(weeks, weeks.draws, sample, edges, shares) for sample in (before, after)]
    once = np.ones((1, weeks.count))
    point = [_quantiles(weeks, once, sample, edges, shares)[0] for sample in (before, after)]
    return [
        _widened(
            weeks, interval(weeks, drawn[1][:, at] - drawn[0][:, at]), point[1][at] - point[0][at]
        )
        for at in range(len(shares))
    ]


def ratio_change(weeks: Weeks, before: tuple[Any, Any], after: tuple[Any, Any]) -> Interval:
    """Of a share such as utilisation, or of a mean; each run is its numerators and denominators by week."""
    if min(int((below > 0).sum()) for _, below in (before, after)) < LEAST_WEEKS:
        return None
    first, second = (_by_block(weeks, each) for each in (before, after))
    once = np.full((1, weeks.count), 1 / weeks.length)  # every week is in so many blocks
    (point,), (error,) = _difference(once, first, second)
    drawn, errors = _difference(weeks.blocks, first, second)
    if error <= NOTHING * max(1.0, float(np.abs(drawn).max(initial=0))):
        return interval(weeks, drawn)  # all weeks change alike
    away = drawn - point
    with np.errstate(divide="ignore", invalid="ignore"):
        found = interval(weeks, np.where(away == 0, 0.0, away / errors))
    if found is None or not np.isfinite(found).all():
        return None  # what changes, changes in so few weeks that many resamples hold none of them
    return float(point - found[1] * error), float(point - found[0] * error)


def gini_change(weeks: Weeks, before: Sample, after: Sample) -> Interval:
    """Of the inequality between users' means; `groups` are the users."""
    drawn, once = (
        _ginis(draws, after) - _ginis(draws, before)
        for draws in (weeks.draws, np.ones((1, weeks.count)))
    )
    return _widened(weeks, interval(weeks, drawn), float(once[0]))


def num_weeks(sample: Sample) -> int:
    """In how many weeks there is a job of it."""
    return len(np.unique(sample.week))


@dataclass(frozen=True)
class Sample:
    """A value and a week for each job, and a group where values are of groups."""

    values: Any
    week: Any
    group: Any = None

    def where(self, chosen: Any) -> Sample:
        group = None if self.group is None else self.group[chosen]
        return Sample(self.values[chosen], self.week[chosen], group)


def interval(weeks: Weeks, drawn: Any) -> Interval:
    """The middle 95 % of what was drawn; none where weeks are few or it is mostly unknown."""
    known = drawn[~np.isnan(drawn)]
    if not weeks.are_enough or len(known) < 0.9 * len(drawn):
        return None
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _widened(weeks: Weeks, found: Interval, point: float) -> Interval:
    """Farther from the point, as Student's t is than the normal where blocks are few."""
    if found is None:
        return None
    num = weeks.count / weeks.length
    by = _student(num - 1) / Z * math.sqrt(weeks.count / (weeks.count - weeks.length))
    low, high = (float(point + (bound - point) * by) for bound in found)
    return low, high


def _student(freedom: float) -> float:
    """The quantile of Student's t beside `Z`, by the expansion of Hill (1970); freedom above one."""
    steps = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + sum(step / freedom**power for power, step in enumerate(steps, 1))


def _rolled(values: Any, length: int, way: int) -> Any:
    """Each number with those of the next weeks (or, with -1, the ones before), round the end."""
    return sum(np.roll(values, -way * step, axis=-1) for step in range(length))


def _by_block(weeks: Weeks, sums: tuple[Any, Any]) -> tuple[Any, Any]:
    above, below = (_rolled(np.asarray(each, float), weeks.length, 1) for each in sums)
    return above, below


def _sums(weeks: Weeks, sample: Sample) -> tuple[Any, Any]:
    sums = np.bincount(sample.week, weights=sample.values, minlength=weeks.count)
    return sums, np.bincount(sample.week, minlength=weeks.count).astype(float)


def _difference(draws: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> tuple[Any, Any]:
    """For each row of draws the change of the ratio, and its standard error by the delta method."""
    change, pull = np.zeros(len(draws)), np.zeros(draws.shape)
    for sign, (above, below) in ((-1, before), (1, after)):
        total = draws @ below
        ratio = _ratio(draws @ above, total)
        change += sign * ratio
        # how far each week pulls the ratio away from itself
        with np.errstate(divide="ignore", invalid="ignore"):
            pull += sign * (above - ratio[:, None] * below) / total[:, None]
    return change, np.sqrt((draws * pull**2).sum(axis=1))


def _ratio(above: Any, below: Any) -> Any:
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)


def _edges(before: Any, after: Any) -> Any:
    """Upper ends of bins that both runs share: every value, or so many that each holds as much."""
    values = np.unique(np.concatenate([before, after]))
    if len(values) <= MAX_BINS:
        return values
    pooled = np.sort(np.concatenate([before, after]))
    places = np.linspace(0, len(pooled) - 1, MAX_BINS).astype(np.int64)
    return np.unique(pooled[places])


def _quantiles(
    weeks: Weeks, draws: Any, sample: Sample, edges: Any, shares: Sequence[float]
) -> Any:
    """A row a resample: the least value that so many of the jobs drawn do not exceed."""
    bins = np.searchsorted(edges, sample.values)
    cells = np.bincount(sample.week * len(edges) + bins, minlength=weeks.count * len(edges))
    counts = cells.reshape(weeks.count, len(edges)).astype(float)
    rows = max(1, CHUNK // len(edges))
    return np.concatenate(
        [
            _in_bins(draws[at : at + rows] @ counts, edges, shares)
            for at in range(0, len(draws), rows)
        ]
    )


def _in_bins(counts: Any, edges: Any, shares: Sequence[float]) -> Any:
    reached = np.cumsum(counts, axis=1)
    total = reached[:, -1:]
    found = np.stack([(reached < share * total).sum(axis=1) for share in shares], axis=1)
    return np.where(total > 0, edges[np.minimum(found, len(edges) - 1)], np.nan)


def _ginis(draws: Any, sample: Sample) -> Any:
    known = sample.where(sample.group >= 0)
    num_users = int(known.group.max(initial=-1)) + 1
    if not num_users:
        return np.full(len(draws), np.nan)
    cells = known.week * num_users + known.group
    shape = (draws.shape[1], num_users)
    sums = np.bincount(cells, weights=known.values, minlength=np.prod(shape)).reshape(shape)
    counts = np.bincount(cells, minlength=np.prod(shape)).reshape(shape).astype(float)
    rows = max(1, CHUNK // num_users)
    drawn = [draws[at : at + rows] for at in range(0, len(draws), rows)]
    return np.concatenate([_gini_rows(each @ sums, each @ counts) for each in drawn])


def _gini_rows(sums: Any, counts: Any) -> Any:
    """Gini of each row's means; users who were not drawn do not count."""
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
    ordered = np.sort(means, axis=1)
    there = np.isfinite(ordered)
    num = there.sum(axis=1)
    ordered = np.where(there, ordered, 0.0)
    ranks = 2 * np.arange(1, ordered.shape[1] + 1) - num[:, None] - 1
    total = ordered.sum(axis=1)
    above = (ranks * ordered).sum(axis=1)
    result = np.divide(above, num * total, out=np.zeros(len(total)), where=total > 0)
    return np.where(num > 0, np.maximum(result, 0.0), np.nan)  # what is below zero is rounding
