"""Resampled weeks: sums by week give what drawing the jobs themselves would."""

from __future__ import annotations

import numpy as np
import pytest

from hakaru.sim.metrics import gini
from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.intervals import WEEK_S, Sample, Weeks


@pytest.fixture
def weeks() -> Weeks:
    return Weeks.of(np.arange(6) * WEEK_S + 100, seed=4, num_resamples=500)


def jobs_drawn(weeks: Weeks, sample: Sample, row: int) -> np.ndarray:
    """The long way: each job as often as its week was drawn."""
    return np.repeat(np.arange(len(sample.values)), weeks.draws[row].astype(int)[sample.week])


@pytest.fixture
def pair() -> tuple[Sample, Sample]:
    rng = np.random.default_rng(2)
    week, group = rng.integers(0, 6, 300), rng.integers(0, 5, 300)
    before = Sample(np.round(rng.exponential(100, 300)), week, group)
    return before, Sample(np.round(before.values * rng.uniform(0.3, 1, 300)), week, group)


def test_weeks_without_jobs_are_not_drawn() -> None:
    weeks = Weeks.of(np.array([50, 60, 50 + 3 * WEEK_S]), seed=1, num_resamples=200)
    assert weeks.begins.tolist() == [50, 50 + 3 * WEEK_S]
    assert (weeks.draws.sum(axis=1) == 2).all()
    places = weeks.of_jobs(np.array([49, 50, 49 + WEEK_S, 50 + WEEK_S, 60 + 3 * WEEK_S]))
    assert places.tolist() == [-1, 0, 0, -1, 1]


def test_the_same_seed_draws_the_same_weeks() -> None:
    moments = np.arange(9) * WEEK_S
    one, same, other = (Weeks.of(moments, seed, 100).draws for seed in (5, 5, 6))
    assert (one == same).all()
    assert (one != other).any()


def test_means_quantiles_and_ginis_are_those_of_the_jobs_drawn(
    weeks: Weeks, pair: tuple[Sample, Sample]
) -> None:
    means, quantiles, ginis = [], [], []
    for row in range(len(weeks.draws)):
        drawn = [sample.values[jobs_drawn(weeks, sample, row)] for sample in pair]
        users = [sample.group[jobs_drawn(weeks, sample, row)] for sample in pair]
        means.append(drawn[1].mean() - drawn[0].mean())
        quantiles.append(
            np.quantile(drawn[1], 0.95, method="inverted_cdf")
            - np.quantile(drawn[0], 0.95, method="inverted_cdf")
        )
        by_user = [
            [values[of == user].mean() for user in np.unique(of)]
            for values, of in zip(drawn, users, strict=True)
        ]
        ginis.append(gini(by_user[1]) - gini(by_user[0]))
    assert draw.mean_change(weeks, *pair) == pytest.approx(np.quantile(means, [0.025, 0.975]))
    (p95,) = draw.quantile_change(weeks, *pair, [0.95])
    assert p95 == pytest.approx(np.quantile(quantiles, [0.025, 0.975]))
    assert draw.gini_change(weeks, *pair) == pytest.approx(np.quantile(ginis, [0.025, 0.975]))


def test_many_values_are_counted_in_bins(weeks: Weeks) -> None:
    rng = np.random.default_rng(3)
    week = rng.integers(0, 6, 20_000)
    before = Sample(rng.exponential(1000, 20_000), week)
    after = Sample(before.values - 50, week)
    low, high = draw.quantile_change(weeks, before, after, [0.5])[0] or (0, 0)
    assert -53 < low <= high < -47


def test_a_run_beside_itself_differs_by_nothing(weeks: Weeks, pair: tuple[Sample, Sample]) -> None:
    same = pair[0]
    assert draw.mean_change(weeks, same, same) == (0, 0)
    assert draw.quantile_change(weeks, same, same, [0.5, 0.99]) == [(0, 0), (0, 0)]


def test_too_few_weeks_or_jobs_give_no_interval(pair: tuple[Sample, Sample]) -> None:
    few = Weeks.of(np.array([0, WEEK_S, 2 * WEEK_S]), seed=1, num_resamples=100)
    sample = Sample(np.array([1.0, 2.0]), np.array([0, 1]))
    assert draw.mean_change(few, sample, sample) is None
    weeks = Weeks.of(np.arange(6) * WEEK_S, seed=1, num_resamples=100)
    alone = Sample(np.array([1.0]), np.array([0]))  # its week is left out of a third of the draws
    assert draw.mean_change(weeks, alone, alone) is None


def test_a_share_is_the_weeks_sum_over_their_sum(weeks: Weeks) -> None:
    there = np.full(6, 10.0)
    used = np.array([5.0, 5, 5, 5, 5, 5])
    assert draw.ratio_change(weeks, (used, there), (used, there * 2)) == (-0.25, -0.25)
