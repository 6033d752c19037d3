"""What a 95 % interval of a what-if holds: on made-up weeks, how often the true value lies in it.

Weeks follow one another as an autoregressive series does, normal or skewed (lognormal). Held against the
true mean and the true 95th percentile are the intervals as they are drawn (in blocks) and as they would be
from weeks drawn one by one: `python -m benchmarks.coverage`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.intervals import WEEK_S, Sample, Weeks

NUM_TRIALS, NUM_RESAMPLES, NUM_JOBS = 200, 400, 20
WEEKS = (12, 26, 52)
CORRELATIONS = (0.0, 0.5, 0.7)
SHARE, NORMAL_QUANTILE = 0.95, 1.6448536


def main() -> None:
    print("weeks  kind       correlation  mean: blocks  one by one  p95: blocks  one by one")
    for num_weeks in WEEKS:
        for kind in ("normal", "lognormal"):
            for correlation in CORRELATIONS:
                held = held_of(num_weeks, kind, correlation)
                shown = "  ".join(f"{share:>11.0%}" for share in held)
                print(f"{num_weeks:>5}  {kind:<9}  {correlation:>11.1f}  {shown}", flush=True)


def held_of(num_weeks: int, kind: str, correlation: float) -> tuple[float, ...]:
    """The shares of trials in which the mean and the percentile are held, in blocks and one by one."""
    random = np.random.default_rng(1)
    truth = (0.0, NORMAL_QUANTILE * math.sqrt(2))
    if kind == "lognormal":
        truth = (math.exp(1.0), math.exp(truth[1]))
    held = np.zeros(4)
    for seed in range(NUM_TRIALS):
        sample = _jobs(random, num_weeks, kind, correlation)
        zero = Sample(np.zeros_like(sample.values), sample.week)
        for at, length in enumerate((None, 1)):
            weeks = Weeks.of(np.arange(num_weeks) * WEEK_S, seed, NUM_RESAMPLES, length)
            mean = draw.mean_change(weeks, zero, sample)
            (quantile,) = draw.quantile_change(weeks, zero, sample, [SHARE])
            held[[at, 2 + at]] += [_holds(mean, truth[0]), _holds(quantile, truth[1])]
    return tuple(held / NUM_TRIALS)


def _holds(found: draw.Interval, truth: float) -> bool:
    """No interval claims nothing, and so nothing wrong."""
    return found is None or found[0] <= truth <= found[1]


def _jobs(random: Any, num_weeks: int, kind: str, correlation: float) -> Sample:
    """As many jobs in each week, whose values vary by week and by job."""
    steps = random.normal(size=num_weeks)
    level = steps.copy()
    for at in range(1, num_weeks):
        level[at] = correlation * level[at - 1] + math.sqrt(1 - correlation**2) * steps[at]
    values = np.repeat(level, NUM_JOBS) + random.normal(size=num_weeks * NUM_JOBS)
    week = np.repeat(np.arange(num_weeks), NUM_JOBS)
    return Sample(np.exp(values) if kind == "lognormal" else values, week)


if __name__ == "__main__":
    main()
