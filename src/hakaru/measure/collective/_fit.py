"""The α–β model of a collective: a start-up time and a time per byte, and what they predict for more ranks.

A ring moves 2(n-1) messages of S/n bytes in an all-reduce, and n-1 in an all-gather or reduce-scatter. Each
costs α + β·S/n. The prediction holds while the algorithm stays a ring and the slowest link stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RINGS = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0}
LEAST_SIZES = 3


@dataclass(frozen=True)
class Fit:
    """seconds = intercept + slope · bytes; `error` is the typical miss on sizes that were left out."""

    benchmark: str
    num_ranks: int
    intercept_s: float
    slope_s: float
    error: float | None

    @property
    def alpha_s(self) -> float | None:
        """Start-up of one message in the ring."""
        return self.intercept_s / self._messages(self.num_ranks) if self.is_ring else None

    @property
    def beta_s(self) -> float | None:
        """Seconds a byte of one message in the ring."""
        if not self.is_ring:
            return None
        return self.slope_s * self.num_ranks / self._messages(self.num_ranks)

    @property
    def is_ring(self) -> bool:
        return self.benchmark in RINGS and self.num_ranks > 1

    def seconds(self, num_bytes: float, num_ranks: int | None = None) -> float | None:
        """Predicted time; for another number of ranks only where the collective is a ring."""
        if num_ranks is None or num_ranks == self.num_ranks:
            return self.intercept_s + self.slope_s * num_bytes
        if not self.is_ring or num_ranks < 2:
            return None
        assert self.alpha_s is not None and self.beta_s is not None
        messages = self._messages(num_ranks)
        return messages * (self.alpha_s + self.beta_s * num_bytes / num_ranks)

    def _messages(self, num_ranks: int) -> float:
        return RINGS[self.benchmark] * (num_ranks - 1)


def fit(benchmark: str, num_ranks: int, points: Sequence[tuple[float, float]]) -> Fit | None:
    """Least squares of the relative error over (bytes, seconds); None for fewer than three sizes."""
    sizes = np.array([size for size, _ in points], dtype=float)
    seconds = np.array([second for _, second in points], dtype=float)
    if len(np.unique(sizes)) < LEAST_SIZES or not np.all(seconds > 0):
        return None
    intercept, slope = _solve(sizes, seconds)
    return Fit(benchmark, num_ranks, intercept, slope, _left_out_error(sizes, seconds))


def _solve(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Neither may be negative: where the best one is, the other alone explains the times."""
    columns = np.stack([np.ones_like(sizes), sizes], axis=1) / seconds[:, None]
    ones = np.ones_like(seconds)
    (intercept, slope), *_ = np.linalg.lstsq(columns, ones, rcond=None)
    if intercept < 0 or slope < 0:
        at = 1 if intercept < 0 else 0
        column = columns[:, at]
        alone = float(column @ ones / (column @ column))
        return (0.0, alone) if at else (alone, 0.0)
    return float(intercept), float(slope)


def _left_out_error(sizes: np.ndarray, seconds: np.ndarray) -> float | None:
    """The median relative miss when each size in turn is left out of the fit."""
    misses = []
    for size in np.unique(sizes):
        kept = sizes != size
        if len(np.unique(sizes[kept])) < 2:
            return None
        intercept, slope = _solve(sizes[kept], seconds[kept])
        true = seconds[~kept]
        misses.append(float(np.median(np.abs(intercept + slope * size - true) / true)))
    return float(np.median(misses))
