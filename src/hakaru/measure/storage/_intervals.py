"""Arithmetic of time intervals: arrays of rows (begin, end), which may overlap until they are merged."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Spans = NDArray[np.float64]  # [number, 2]


def spans_of(pairs: Iterable[tuple[float, float]]) -> Spans:
    """As an array, those without a length left out."""
    found = np.array([pair for pair in pairs if pair[1] > pair[0]], dtype=np.float64)
    return found.reshape(-1, 2)


def merged(spans: Spans, gap: float = 0.0) -> Spans:
    """In order and without overlaps; those that are at most a gap apart become one."""
    if not len(spans):
        return spans
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    reached = np.maximum.accumulate(ordered[:, 1])
    is_new = np.concatenate([[True], ordered[1:, 0] > reached[:-1] + gap])
    last = np.concatenate([np.flatnonzero(is_new)[1:] - 1, [len(ordered) - 1]])
    return np.stack([ordered[is_new, 0], reached[last]], axis=1)


def length(spans: Spans) -> float:
    """The time that is covered, overlaps once."""
    whole = merged(spans)
    return float((whole[:, 1] - whole[:, 0]).sum())


def common(first: Spans, second: Spans) -> Spans:
    """The time that both cover."""
    one, two = merged(first), merged(second)
    if not len(one) or not len(two):
        return np.empty((0, 2))
    # of each span of the first, those of the second that end after it begins and begin before it ends
    low = np.searchsorted(two[:, 1], one[:, 0], side="right")
    counts = np.searchsorted(two[:, 0], one[:, 1], side="left") - low
    mine = np.repeat(np.arange(len(one)), counts)
    before = np.cumsum(counts) - counts
    other = np.arange(len(mine)) + np.repeat(low - before, counts)
    begin = np.maximum(one[mine, 0], two[other, 0])
    return np.stack([begin, np.minimum(one[mine, 1], two[other, 1])], axis=1)


def hidden_share(spans: Spans, behind: Spans) -> float | None:
    """The share of some work's time during which other work went on; None where there was none."""
    total = length(spans)
    return length(common(spans, behind)) / total if total else None


def clipped(spans: Spans, begin: float, end: float) -> Spans:
    """What of them lies in a window."""
    cut = np.clip(spans, begin, end)
    return cut[cut[:, 1] > cut[:, 0]]


def fewer(spans: Spans, most: int) -> Spans:
    """Merged over growing gaps until there are few enough to draw."""
    whole = merged(spans)
    if len(whole) > most:
        gaps = np.sort(whole[1:, 0] - whole[:-1, 1])
        whole = merged(whole, float(gaps[len(whole) - most - 1]))
    return whole
