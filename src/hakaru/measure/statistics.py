"""Medians with their intervals, and the noise of repetitions: its size and its correlation.

A sample that is not finite is missing: it is left out and never counts as zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import floor, inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hakaru.errors import HakaruError

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]

# the standard error of the median of normal samples, against that of their mean: sqrt(pi / 2)
MEDIAN_FACTOR = 1.2533
# the deviation of normal samples over the median of their distances from the median
MAD_TO_DEVIATION = 1.4826
# of an interval that can tell anything: five independent repetitions reach it
LEAST_LEVEL = 0.9
# fewer repetitions in a row say nothing of their correlation: two deviations always mirror each other
LEAST_IN_A_ROW = 3
# a sample this many deviations from its row's median is a hiccup, and tells nothing of the noise
OUTLIER = 8.0
# of a row's variance against the usual one, by chance: above it the row is flaky
FLAKY_LEVEL = 0.999
# repetitions that agree better than this share of their rate show a coarse clock, not a quiet card
LEAST_NOISE = 1e-4
_MOST_CORRELATION = 0.98
_LARGEST_EXACT = 1000  # samples; 2**-n is still a normal float
_GRID = np.linspace(-0.99, 0.99, 199)


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and where it lies with the chance `level`, which is the one really reached."""

    median: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class RowSums:
    """Of each row (card): its samples, their squares, and the products of neighbours, about its mean."""

    counts: Ints
    squares: Floats
    products: Floats


@dataclass(frozen=True, slots=True)
class Rows:
    """What each row (card) of positive samples has to say; its median is not a number for too few."""

    medians: Floats
    counts: Ints  # of all the repetitions; the sums leave outliers out
    sums: RowSums  # as shares of the median


@dataclass(frozen=True, slots=True)
class Noise:
    """What the repetitions of one card differ by, as a share of its rate, pooled over the cards."""

    deviation: float
    correlation: float  # from one repetition to the next, as estimated, never under 0
    correlation_error: float
    freedom: float  # degrees of freedom of the deviation

    @property
    def safe_correlation(self) -> float:
        """Widened by its own error, so that bounds are rather too wide than too narrow."""
        return min(self.correlation + self.correlation_error, _MOST_CORRELATION)

    @property
    def planned_correlation(self) -> float:
        """What is sure of it where few cards tell little: a later round knows it better."""
        if self.is_sure:
            return self.correlation
        return max(self.correlation - self.correlation_error, 0.0)

    @property
    def is_sure(self) -> bool:
        return self.correlation_error <= 0.1


def median_interval(samples: ArrayLike, level: float = 0.95, correlation: float = 0.0) -> Interval:
    """The interval of the median between two order statistics; no shape of the noise is assumed.

    Too few samples for the level asked for give their whole range and the lower level it has.
    """
    values = np.sort(_finite(samples))
    if not values.size:
        raise HakaruError(
            "There is no sample to take a median of: every repetition is missing. Measure again."
        )
    # a negative correlation would narrow the interval: it is not trusted to
    trials = floor(effective_number(values.size, max(correlation, 0.0)) + 1e-9)
    rank, reached = _outer_rank(trials, level)
    index = max(int(rank * (values.size + 1) / (trials + 1)) - 1, 0) if reached >= level else 0
    low, high = float(values[index]), float(values[values.size - 1 - index])
    return Interval(float(np.median(values)), low, high, reached)


def relative_width(interval: Interval, least_level: float = LEAST_LEVEL) -> float:
    """The interval's width as a share of its median; infinite where its level is too low to count."""
    if interval.level < least_level or interval.median == 0:
        return inf
    return (interval.high - interval.low) / abs(interval.median)


def spread(samples: ArrayLike) -> float:
    """The interquartile range."""
    values = _finite(samples)
    if not values.size:
        raise HakaruError("There is no sample to take a spread of: every repetition is missing.")
    low, high = np.percentile(values, [25, 75])
    return float(high - low)


def lag_correlation(samples: ArrayLike) -> float:
    """The correlation of a repetition with the one before, pooled over the rows (cards).

    Not a number where no row has three samples in it. Deviations from a short row's own mean
    correlate less than the noise does; the value returned is the one whose expectation for rows
    of this length is what was seen.
    """
    rows = np.atleast_2d(np.asarray(samples, dtype=np.float64))
    rows = np.where(np.isfinite(rows), rows, np.nan)
    return correlation_with_error(sum_rows(rows - row_medians(rows)[:, None]))[0]


def correlation_with_error(rows: RowSums) -> tuple[float, float]:
    """`lag_correlation` and its standard error."""
    long = rows.counts >= LEAST_IN_A_ROW
    counts, squares, products = rows.counts[long], rows.squares[long], rows.products[long]
    if not squares.sum() > 0:
        return float("nan"), float("nan")
    # one restless card must not speak for the others
    usual = middle(squares / (counts - 1)) or np.inf
    weights = 1 / np.maximum(squares / (10 * usual * (counts - 1)), 1)
    curve = _expected_ratio(counts)
    ratio = (products * weights).sum() / (squares * weights).sum()
    value = float(np.interp(ratio, curve, _GRID))
    beside = np.interp([value - 0.01, value + 0.01], _GRID, curve)
    slope = float(beside[1] - beside[0]) / 0.02
    return value, sqrt((1 - value**2) / float((counts - 1).sum())) / slope


def effective_number(num: float | Floats, correlation: float) -> float | Floats:
    """How many independent samples tell as much as `num` in a row with this correlation.

    That is n(1 - r)/(1 + r) for many samples, and the exact number for few.
    """
    r = min(correlation, 0.999)
    if r == 0:
        return num
    inflation = (1 + r) / (1 - r) - 2 * r * (1 - r**num) / (num * (1 - r) ** 2)
    return num / inflation


def normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf(level)


def student_quantile(level: float, freedom: Floats) -> Floats:
    """Student's quantile by the Cornish-Fisher expansion: within 2 % from 8 degrees of freedom on."""
    z = normal_quantile(level)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def chi_quantile(level: float, freedom: Floats) -> Floats:
    """Of a chi-squared variable over its degrees of freedom, by Wilson and Hilferty."""
    part = 2 / (9 * freedom)
    quantile: Floats = np.maximum(1 - part + normal_quantile(level) * np.sqrt(part), 0.01) ** 3
    return quantile


def median_of_others(values: Floats) -> Floats:
    """For each value the median of all the others that are known."""
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known])]
    others, num = np.full(len(values), np.nan), len(order)
    if not num:
        return others
    ordered, place = values[order], np.arange(num)
    others[:] = middle(ordered)  # the right one for what is not known itself
    others[order] = np.nan
    if num > 1:  # one's own place is stepped over
        low, high = (num - 2) // 2, (num - 1) // 2
        others[order] = (ordered[low + (low >= place)] + ordered[high + (high >= place)]) / 2
    return others


def middle(values: Floats) -> float:
    """The median of known values, for arrays so small that `np.median` spends its time on checks."""
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def row_medians(rows: Floats) -> Floats:
    """The median of each row's samples; not a number where it has none, as for a missing sample."""
    if not rows.shape[1]:
        return np.full(len(rows), np.nan)
    ordered = np.sort(rows, axis=1)  # what is missing comes last
    counts = rows.shape[1] - np.isnan(ordered).sum(axis=1)
    line = np.arange(len(rows))
    low, high = np.maximum(counts - 1, 0) // 2, np.minimum(counts // 2, rows.shape[1] - 1)
    medians: Floats = (ordered[line, low] + ordered[line, high]) / 2
    return medians


def sum_rows(apart: Floats) -> RowSums:
    """Sum rows that are given about their medians; outliers are left out."""
    left_out = np.isnan(apart) | _outliers(apart)
    counts = apart.shape[1] - left_out.sum(axis=1)
    known = np.where(left_out, 0, apart)
    known -= (known.sum(axis=1) / np.maximum(counts, 1))[:, None]
    known[left_out] = 0
    squares = np.einsum("ij,ij->i", known, known)
    products = np.einsum("ij,ij->i", known[:, 1:], known[:, :-1])
    pairs = apart.shape[1] - 1 - (left_out[:, 1:] | left_out[:, :-1]).sum(axis=1)
    return RowSums(counts, squares, products * (counts - 1) / np.maximum(pairs, 1))


def _outliers(apart: Floats) -> NDArray[np.bool_]:
    """A restless row keeps its own scale; the others share the usual one."""
    distances = np.abs(apart)
    own = row_medians(distances)
    usual = middle(own[np.isfinite(own)]) if np.isfinite(own).any() else np.nan
    limits = OUTLIER * MAD_TO_DEVIATION * np.maximum(own, usual)
    # where more than half of the samples are equal there is no scale to go by
    limits[~(limits > 0)] = np.inf
    far: NDArray[np.bool_] = distances > limits[:, None]
    return far


def summarise_rows(samples: ArrayLike) -> Rows:
    rates = known_rates(samples)
    medians, counts = row_medians(rates), rates.shape[1] - np.isnan(rates).sum(axis=1)
    sums = sum_rows(rates / medians[:, None] - 1)
    return Rows(np.where(counts >= LEAST_IN_A_ROW, medians, np.nan), counts, sums)


def pool_noise(rows: Rows) -> Noise:
    """The noise of a usual card; flaky ones are left out of it. It is unknown where all are too short."""
    if not np.isfinite(rows.medians).any():
        return Noise(float("nan"), 0.0, 0.0, 1.0)
    noise = Noise(LEAST_NOISE, *pooled_correlation(rows), freedom=1.0)
    deviation, freedom = usual_deviation(rows, noise.safe_correlation)
    return replace(noise, deviation=deviation, freedom=freedom)


def usual_deviation(rows: Rows, correlation: float) -> tuple[float, float]:
    """The deviation of the cards that are not flaky, and its degrees of freedom."""
    measured = np.isfinite(rows.medians)
    variances, freedom = (each[measured] for each in row_variances(rows, correlation))
    usual = middle(variances / chi_quantile(0.5, freedom))
    kept = variances <= usual * chi_quantile(FLAKY_LEVEL, freedom)
    pooled = float(np.average(variances[kept], weights=freedom[kept]))
    return max(sqrt(pooled), LEAST_NOISE), float(freedom[kept].sum())


def pooled_correlation(rows: Rows) -> tuple[float, float]:
    value, error = correlation_with_error(rows.sums)
    if np.isnan(value):  # all repetitions are equal
        return 0.0, 0.0
    return min(max(value, 0.0), _MOST_CORRELATION), error


def row_variances(rows: Rows, correlation: float) -> tuple[Floats, Floats]:
    """Each row's variance, freed of the bias of short correlated rows, and its freedom."""
    counts = np.maximum(rows.sums.counts, 2).astype(float)
    freedom = (counts - 1) * (1 - correlation**2) / (1 + correlation**2)
    return rows.sums.squares / (counts - counts / effective_number(counts, correlation)), freedom


def known_rates(samples: ArrayLike) -> Floats:
    """A row a card; what is not a positive number is missing."""
    rows = np.atleast_2d(np.asarray(samples, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(rows) & (rows > 0), rows, np.nan)


def _finite(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, dtype=np.float64).ravel()
    return values[np.isfinite(values)]


def _outer_rank(trials: int, level: float) -> tuple[int, float]:
    """The rank, from either end, of the narrowest interval that has the level, and its own level."""
    if trials > _LARGEST_EXACT:
        rank = floor(trials / 2 - normal_quantile((1 + level) / 2) * sqrt(trials) / 2)
        return rank, level
    steps = np.arange(1, trials + 1)
    terms = np.cumprod(np.concatenate([[0.5**trials], (trials + 1 - steps) / steps]))
    below = np.cumsum(terms)  # the chance that at most 0, 1, 2… samples lie under the median
    rank = max(int(np.searchsorted(below, (1 - level) / 2, side="right")), 1)
    return rank, max(1 - 2 * float(below[rank - 1]), 0.0)


def _expected_ratio(numbers: Ints) -> Floats:
    """Products over squares that rows of these lengths show, for each correlation of the grid."""
    counts = np.bincount(numbers)
    products, squares = np.zeros_like(_GRID), np.zeros_like(_GRID)
    for length in np.flatnonzero(counts):
        expected = _expected_sums(int(length))
        products += counts[length] * expected[0]
        squares += counts[length] * expected[1]
    ratio: Floats = products / squares
    return ratio


@lru_cache(maxsize=256)
def _expected_sums(length: int) -> tuple[Floats, Floats]:
    """Expected products and squares of a row of unit noise about its mean, over the grid."""
    r, place = _GRID[:, None], np.arange(1, length + 1)[None, :]
    # the mean correlation of each sample with all of its row
    shared = (1 - r**place + r * (1 - r ** (length - place))) / (1 - r) / length
    overall = shared.mean(axis=1)
    ends = shared[:, 0] + shared[:, -1]
    products = (length - 1) * (_GRID + overall) - (2 * length * overall - ends)
    return products, length * (1 - overall)
