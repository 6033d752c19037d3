"""Resampled weeks: sums by week give what drawing the jobs themselves would."""

from __future__ import annotations

import numpy as np
import pytest

from hakaru.sim.metrics import gini
from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.intervals import WEEK_S, Sample, Weeks


@pytest.fixture
def weeks() -> Weeks:
    return Weeks.of(np.arange(12) * WEEK_S + 100, seed=4, num_resamples=500)


def jobs_drawn(weeks: Weeks, sample: Sample, row: int) -> np.ndarray:
    """The long way: each job as often as its week was drawn."""
    return np.repeat(np.arange(len(sample.values)), weeks.draws[row].astype(int)[sample.week])


@pytest.fixture
def pair() -> tuple[Sample, Sample]:
    rng = np.random.default_rng(2)
    week, group = rng.integers(0, 12, 300), rng.integers(0, 5, 300)
    before = Sample(np.round(rng.exponential(100, 300)), week, group)
    return before, Sample(np.round(before.values * rng.uniform(0.3, 1, 300)), week, group)


def test_blocks_are_as_long_as_the_square_root_and_wrap_round() -> None:
    assert [draw.block_length(num) for num in (1, 2, 5, 10, 12, 26, 76)] == [1, 1, 1, 3, 4, 6, 9]
    weeks = Weeks.of(np.arange(12) * WEEK_S, seed=4, num_resamples=50)
    assert weeks.length == 4 and (weeks.blocks.sum(axis=1) == 3).all()
    for blocks, drawn in zip(weeks.blocks, weeks.draws, strict=True):
        first = np.repeat(np.arange(12), blocks.astype(int))
        covered = [(begin + step) % 12 for begin in first for step in range(4)]
        assert np.bincount(covered, minlength=12).tolist() == drawn.tolist()


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


def test_quantiles_and_ginis_are_those_of_the_jobs_drawn(
    weeks: Weeks, pair: tuple[Sample, Sample]
) -> None:
    quantiles, ginis = [], []
    for row in range(len(weeks.draws)):
        drawn = [sample.values[jobs_drawn(weeks, sample, row)] for sample in pair]
        users = [sample.group[jobs_drawn(weeks, sample, row)] for sample in pair]
        quantiles.append(
            np.quantile(drawn[1], 0.95, method="inverted_cdf")
            - np.quantile(drawn[0], 0.95, method="inverted_cdf")
        )
        by_user = [
            [values[of == user].mean() for user in np.unique(of)]
            for values, of in zip(drawn, users, strict=True)
        ]
        ginis.append(gini(by_user[1]) - gini(by_user[0]))
    (p95,) = draw.quantile_change(weeks, *pair, [0.95])
    # three blocks of four weeks: Student's t with two degrees of freedom, by its expansion
    by = draw._student(2) / 1.959964 * (12 / 8) ** 0.5
    whole = [np.quantile(sample.values, 0.95, method="inverted_cdf") for sample in pair]
    means = [[s.values[s.group == u].mean() for u in np.unique(s.group)] for s in pair]
    for found, drawn_ones, point in (
        (p95, quantiles, whole[1] - whole[0]),
        (draw.gini_change(weeks, *pair), ginis, gini(means[1]) - gini(means[0])),
    ):
        ends = np.quantile(drawn_ones, [0.025, 0.975])
        assert found == pytest.approx(point + (ends - point) * by)


def test_the_interval_of_a_mean_is_studentised(weeks: Weeks, pair: tuple[Sample, Sample]) -> None:
    """The long way: the error of a resample is that of its blocks' residuals from its own means."""

    def change(firsts: np.ndarray) -> tuple[float, float]:
        residuals, means = np.zeros(len(firsts)), []
        for sample, sign in zip(pair, (-1, 1), strict=True):
            jobs = [
                np.concatenate([sample.values[sample.week == (f + step) % 12] for step in range(4)])
                for f in firsts
            ]
            mean = np.concatenate(jobs).mean()
            num = sum(len(each) for each in jobs)
            residuals += [sign * (each - mean).sum() / num for each in jobs]
            means.append(mean)
        return means[1] - means[0], float(np.sqrt((residuals**2).sum()))

    point, error = change(np.arange(12))
    error *= 2  # of twelve blocks that overlap fourfold, an error of three that do not
    scores = []
    for row in weeks.blocks:
        moved, its_error = change(np.repeat(np.arange(12), row.astype(int)))
        scores.append((moved - point) / its_error)
    low, high = np.quantile(scores, [0.025, 0.975])
    assert draw.mean_change(weeks, *pair) == pytest.approx(
        (point - high * error, point - low * error)
    )


def test_weeks_that_follow_one_another_are_covered() -> None:
    """A half of each week goes on into the next: drawn one by one, weeks would hold the mean in 75 %."""
    rng, held, alone = np.random.default_rng(0), 0, 0
    week = np.arange(26)
    for seed in range(200):
        values = rng.normal(size=26)
        for at in range(1, 26):
            values[at] = 0.5 * values[at - 1] + 0.75**0.5 * values[at]
        pair = Sample(values * 0, week), Sample(values, week)
        found = draw.mean_change(Weeks.of(week * WEEK_S, seed, 400), *pair)
        held += found is None or found[0] <= 0 <= found[1]
        found = draw.mean_change(Weeks.of(week * WEEK_S, seed, 400, length=1), *pair)
        alone += found is None or found[0] <= 0 <= found[1]
    assert held >= 0.92 * 200
    assert alone <= 0.85 * 200


@pytest.mark.parametrize("num_weeks", [10, 26])
def test_skewed_weeks_are_covered(num_weeks: int) -> None:
    """Changes whose true mean is zero: about nine in ten intervals hold it, and more than plain ones do."""
    rng, held, plain = np.random.default_rng(0), 0, 0
    week = np.arange(num_weeks)
    for seed in range(300):
        weeks = Weeks.of(week * WEEK_S, seed, 400)
        values = rng.lognormal(0, 1, num_weeks) - np.exp(0.5)
        found = draw.mean_change(weeks, Sample(values * 0, week), Sample(values, week))
        low, high = draw.interval(weeks, weeks.draws @ values / num_weeks) or (0, 0)
        held += found is None or found[0] <= 0 <= found[1]
        plain += low <= 0 <= high
    assert held >= 0.88 * 300
    assert held >= plain + 0.03 * 300


def test_a_change_in_one_week_of_many_has_no_interval(weeks: Weeks) -> None:
    week = np.arange(12)
    before, after = Sample(np.full(12, 9.0), week), Sample(np.r_[0.0, np.full(11, 9.0)], week)
    assert draw.mean_change(weeks, before, after) is None


def test_a_group_with_jobs_in_few_weeks_has_no_interval(weeks: Weeks) -> None:
    few = Sample(np.arange(27.0), np.arange(27) % 9)
    assert draw.mean_change(weeks, few, few) is None
    assert draw.quantile_change(weeks, few, few, [0.5]) == [None]


def test_many_values_are_counted_in_bins(weeks: Weeks) -> None:
    rng = np.random.default_rng(3)
    week = rng.integers(0, 12, 20_000)
    before = Sample(rng.exponential(1000, 20_000), week)
    after = Sample(before.values - 50, week)
    low, high = draw.quantile_change(weeks, before, after, [0.5])[0] or (0, 0)
    assert -53 < low <= high < -47


def test_a_run_beside_itself_differs_by_nothing(weeks: Weeks, pair: tuple[Sample, Sample]) -> None:
    same = pair[0]
    assert draw.mean_change(weeks, same, same) == (0, 0)
    assert draw.quantile_change(weeks, same, same, [0.5, 0.99]) == [(0, 0), (0, 0)]


def test_too_few_weeks_or_jobs_give_no_interval(pair: tuple[Sample, Sample]) -> None:
    few = Weeks.of(np.arange(9) * WEEK_S, seed=1, num_resamples=100)
    sample = Sample(np.arange(9.0), np.arange(9))
    assert draw.mean_change(few, sample, sample) is None
    weeks = Weeks.of(np.arange(12) * WEEK_S, seed=1, num_resamples=100)
    alone = Sample(np.array([1.0]), np.array([0]))  # its week is left out of a third of the draws
    assert draw.mean_change(weeks, alone, alone) is None


@pytest.mark.parametrize(("num_unknown", "is_known"), [(10, True), (11, False)])
def test_nine_of_ten_resamples_must_be_known(
    weeks: Weeks, num_unknown: int, is_known: bool
) -> None:
    drawn = np.r_[np.full(num_unknown, np.nan), np.arange(100.0 - num_unknown)]
    assert (draw.interval(weeks, drawn) is not None) == is_known


def test_a_share_is_the_weeks_sum_over_their_sum(weeks: Weeks) -> None:
    there = np.full(12, 10.0)
    used = np.full(12, 5.0)
    assert draw.ratio_change(weeks, (used, there), (used, there * 2)) == (-0.25, -0.25)


@pytest.mark.parametrize(
    ("found", "before", "after", "said"),
    [
        (None, 100.0, 90.0, None),
        ((-60.0, 45_720.0), 1800.0, 1900.0, None),  # -60 s to +12.7 h, of half an hour
        ((-2.3, 480.0), 31.9, 133.6, None),  # minutes: +101.7 of 31.9
        ((-162.0, 1968.0), 168.0, 678.0, None),
        (
            (1.93, 55.43),
            3.26,
            13.45,
            None,
        ),  # a slowdown: surely longer, but nobody knows by how much
        ((-0.3, 0.4), 0.41, 0.42, None),  # a share that may be anything
        ((-31.9, 6.8), 31.9, 16.4, (-31.9, 6.8)),  # less than three times the change
        ((-88.2, 50.9), 168.0, 191.0, (-88.2, 50.9)),  # less than the baseline's value
        ((-50.0, 50.0), 100.0, 101.0, (-50.0, 50.0)),
        ((-50.0, 50.1), 100.0, 101.0, None),
        ((100.0, 280.0), 10.0, 70.0, (100.0, 280.0)),
        ((100.0, 280.1), 10.0, 70.0, None),
        ((-90.0, -1.0), 100.0, 10.0, (-90.0, -1.0)),
        ((-500.0, -10.0), 100.0, 80.0, (-100.0, -10.0)),  # no wait falls below zero
        ((0.0, 0.0), 0.0, 0.0, (0.0, 0.0)),
        ((0.0, 3.0), 0.0, 0.5, None),
    ],
)
def test_an_interval_that_says_nothing_is_none(found, before, after, said) -> None:
    assert draw.bounds_of(found, before, after) == said


@pytest.mark.parametrize(("freedom", "quantile"), [(5, 2.5706), (10, 2.2281), (30, 2.0423)])
def test_student_s_t_is_as_in_the_tables(freedom: int, quantile: float) -> None:
    """The two-sided 95 % of Student's t; the expansion is near enough from five degrees on."""
    assert draw._student(freedom) == pytest.approx(quantile, abs=0.003)


def test_no_jobs_have_no_weeks() -> None:
    none = Weeks.of(np.array([], np.int64), seed=1, num_resamples=10)
    assert (none.count, none.are_enough, none.length) == (0, False, 1)


@pytest.mark.parametrize(("num", "enough"), [(9, False), (10, True)])
def test_ten_weeks_are_enough(num: int, enough: bool) -> None:
    assert Weeks.of(np.arange(num) * WEEK_S, 1, 10).are_enough is enough
