"""Intervals of medians and the correlation of repetitions, by hand and on noise of known truth."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure.statistics import (
    Interval,
    chi_quantile,
    effective_number,
    lag_correlation,
    median_interval,
    median_of_others,
    relative_width,
    spread,
    student_quantile,
)


def noise(seed: int, num_rows: int, length: int, correlation: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(num_rows, length))
    for place in range(1, length):
        rows[:, place] *= np.sqrt(1 - correlation**2)
        rows[:, place] += correlation * rows[:, place - 1]
    return rows


def test_median_interval_by_hand() -> None:
    assert median_interval([5, 1, 4, 2, 3]) == Interval(3, 1, 5, 0.9375)
    twenty = median_interval(np.arange(1, 21))
    assert (twenty.low, twenty.median, twenty.high) == (6, 10.5, 15)
    assert twenty.level == pytest.approx(0.9586, abs=1e-4)
    large = median_interval(np.arange(1, 4002))
    assert (large.low, large.high) == (1938, 2064)


def test_missing_samples_are_left_out_and_one_sample_is_never_narrow() -> None:
    assert median_interval([np.nan, 2.0, np.inf, 4.0]) == Interval(3, 2, 4, 0.5)
    assert relative_width(median_interval([7.0])) == inf
    assert relative_width(Interval(100, 99, 101, 0.95)) == pytest.approx(0.02)
    assert spread([1, 2, 3, 4, 5, np.nan]) == 2
    with pytest.raises(HakaruError, match="no sample"):
        median_interval([np.nan])


def test_intervals_of_correlated_samples_hold_only_when_widened() -> None:
    rows = noise(1, 1000, 60, 0.5)
    for correlation, at_least, at_most in ((0.5, 0.95, 1.0), (0.0, 0.5, 0.9)):
        intervals = [median_interval(row, correlation=correlation) for row in rows]
        covered = np.mean([each.low <= 0 <= each.high for each in intervals])
        assert at_least <= covered <= at_most


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_correlation_of_short_rows_is_not_biased(correlation: float) -> None:
    found = [lag_correlation(noise(seed, 1024, 5, correlation)) for seed in range(20)]
    assert np.mean(found) == pytest.approx(correlation, abs=0.02)


def test_correlation_survives_outliers_a_restless_card_and_gaps() -> None:
    rows = 100 + noise(3, 400, 10, 0.5)
    rows[0] = 100 + 300 * noise(4, 1, 10, 0.0)
    rows[1:60, 4] = 10
    rows[60:100, 3] = np.nan
    assert lag_correlation(rows) == pytest.approx(0.5, abs=0.1)
    assert np.isnan(lag_correlation(rows[:, :2]))


def test_effective_number_counts_what_the_mean_shows() -> None:
    means = noise(5, 40_000, 5, 0.5).mean(axis=1)
    assert effective_number(5, 0.5) == pytest.approx(1 / means.var(), rel=0.03)
    assert effective_number(3000, 0.5) == pytest.approx(1000, rel=0.01)


def test_quantiles_against_tables() -> None:
    freedom = np.array([8.0, 30.0, 1e9])
    assert student_quantile(0.999, freedom) == pytest.approx([4.501, 3.385, 3.090], rel=0.02)
    assert 4 * chi_quantile(0.999, np.array([4.0])) == pytest.approx([18.47], rel=0.02)


def test_median_of_others_leaves_oneself_out() -> None:
    for size in (2, 3, 8, 9):
        values = np.random.default_rng(size).normal(size=size)
        expected = [np.median(np.delete(values, place)) for place in range(size)]
        assert median_of_others(values) == pytest.approx(expected)
    assert median_of_others(np.array([np.nan, 3.0, 5.0])).tolist() == [4, 5, 3]
    assert np.isnan(median_of_others(np.array([3.0]))).all()
