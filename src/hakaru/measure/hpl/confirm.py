"""The last word: the best configuration and the default one, measured again and interleaved.

What won a search won partly by luck; only these runs count. The default is measured at its own N and at that
of the best, because a larger N alone is already faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hakaru.measure.hpl.dat import DEFAULT, SHARED, Batch, Config, default_for
from hakaru.measure.hpl.history import Planned, Trial
from hakaru.measure.statistics import Interval, median_interval

TOGETHER_WORTH = 1.5  # how much more a launch may cost in which both are run next to each other
MOST_TOGETHER = 8  # combinations that are run to have both in one launch
MOST_REPEATS = 7
LEAST_PAIRS = 6  # fewer have no interval of 95 %
MOST_PAIRS = 15


@dataclass(frozen=True)
class Measured:
    """A configuration and the rates of its confirming runs that passed."""

    config: Config
    samples: tuple[float, ...]

    @property
    def interval(self) -> Interval | None:
        return median_interval(self.samples) if self.samples else None

    @property
    def gflops(self) -> float | None:
        return median(self.samples) if self.samples else None


@dataclass(frozen=True)
class Margin:
    """How much faster than the default: shares, with the level that the interval really has."""

    against: Config
    share: float
    low: float
    high: float
    level: float
    num_pairs: int


def rounds(best: Config, num_repeats: int, is_back: bool) -> list[list[Batch]]:
    """Ways to run a round: one launch after the other, or one that has both among a few combinations."""
    default = default_for(best.ranks, best.n)
    with_own = [n for _ in range(num_repeats) for n in dict.fromkeys((best.n, DEFAULT.n))]
    apart = [
        Batch.of([best]).repeated([best.n] * num_repeats),
        Batch.of([default]).repeated(with_own),
    ]
    ways = [apart[::-1] if is_back else apart]
    # grids change slowest in HPL's loops: two of them would not be interleaved
    if best.grid == default.grid and all(getattr(best, n) == getattr(default, n) for n in SHARED):
        together = Batch.of([best, default])
        ways += [[together.repeated(with_own)]] if len(together) <= MOST_TOGETHER else []
    return ways


def tests_of(batch: Batch, best: Config) -> list[Planned]:
    """The batch's runs; the best is the sampler's, and what only fills the product is combined."""
    defaults = (default_for(best.ranks, best.n), default_for(best.ranks))
    return [
        Planned(each, "default" if each in defaults else "sampler" if each == best else "combined")
        for each in batch.configs()
    ]


def measured(trials: Sequence[Trial], config: Config) -> Measured:
    passed = [trial for trial in trials if trial.config == config and trial.passed]
    return Measured(config, tuple(trial.gflops for trial in passed if trial.gflops))


def margin(trials: Sequence[Trial], best: Config, other: Config) -> Margin | None:
    """Of the pairs that were run next to each other; None where there is none, or nothing to compare."""
    ours = [trial for trial in trials if trial.config == best]
    theirs = [trial for trial in trials if trial.config == other]
    ratios = [
        a.gflops / b.gflops
        for a, b in zip(ours, theirs, strict=False)
        if a.passed and b.passed and a.gflops and b.gflops
    ]
    if best == other or not ratios:
        return None
    found = median_interval(ratios)
    return Margin(other, found.median - 1, found.low - 1, found.high - 1, found.level, len(ratios))


def num_pairs(trials: Sequence[Trial], best: Config) -> int:
    """How many times both were run so far."""
    default = default_for(best.ranks, best.n)
    counts = [sum(t.config == config and t.passed for t in trials) for config in (best, default)]
    return min(counts)
