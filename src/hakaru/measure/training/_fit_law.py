"""Fit the scaling law to measured points: compute from one rank, the link from all-reduce, the rest from all.

Every part keeps how far the points lie from it, and the whole is tried on sizes that are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from hakaru.measure.collective._fit import Fit
from hakaru.measure.training._law import (
    UNKNOWN_ERROR,
    Law,
    Link,
    Point,
    Prediction,
    Refusal,
    Scaling,
    Work,
    busy_part,
    share_of_core,
)

MOST_FIT_ERROR = 0.25  # of α and β: above it they predict nothing
LEAST_SIZES = 3  # measured, before one can be held out
LEAST_COMPUTE_ERROR, LEAST_LINK_ERROR = 0.03, 0.05
FIXED_PARTS = np.linspace(0.0, 0.96, 49)  # of the work on the largest batch, whatever the samples
# a division that misses so many times as much as the best, or so little, may be true
AS_GOOD, SURE_MISS = 1.5, 0.01
EQUAL_MISS = 5e-4


def fit_law(
    points: Sequence[Point],
    scaling: Scaling,
    *,
    inside: Fit | None = None,
    between: Fit | None = None,
    cores: int | None = None,
    threads: int = 1,
    alone: Sequence[Point] = (),
) -> Law | Refusal:
    """The law of the measured points, with its error on sizes held out if three or more were measured.

    `inside` and `between` are fits of all-reduce among ranks of one host and of several; without them the
    training's own buckets tell. `cores` are those of a machine whose processors compute; None for cards.
    `alone` are further points of one rank, with the batches that ranks have in strong scaling.
    """
    own_cores = cores / threads if cores else None

    def of(kept: Sequence[Point]) -> Law | Refusal:
        return _fit(kept, scaling, (inside, between), own_cores, alone)

    law = of(points)
    if isinstance(law, Refusal) or len({each.ranks for each in points}) < LEAST_SIZES:
        return law
    misses = []
    for size in dict.fromkeys((each.ranks, each.hosts) for each in points):
        less = of([each for each in points if (each.ranks, each.hosts) != size])
        left = [each for each in points if (each.ranks, each.hosts) == size]
        error = less.error_on(left) if isinstance(less, Law) else None
        misses += [error] if error is not None else []
    return replace(law, held_out_error=median(misses) if misses else None)


def _fit(
    points: Sequence[Point],
    scaling: Scaling,
    fits: tuple[Fit | None, Fit | None],
    cores: float | None,
    alone: Sequence[Point],
) -> Law | Refusal:
    ones = [each for each in (*points, *alone) if each.ranks == 1]
    several = [each for each in points if each.ranks > 1]
    bucketed = [each for each in (*points, *alone) if each.profile.bucket_bytes]
    if not ones:
        return Refusal(
            "one rank alone was not measured, so that nothing tells what a rank computes"
        )
    if not bucketed:
        return Refusal(
            "the steps have no gradient buckets; the law holds for data parallel training"
        )
    first = min(bucketed, key=lambda each: each.ranks).profile
    links = [
        _link([each for each in several if (each.hosts > 1) == is_between], fit)
        for is_between, fit in zip((False, True), fits, strict=True)
    ]
    work, *others = _works([*ones, *several], cores)
    law = Law(
        scaling=scaling,
        fitted_on=tuple(sorted({each.ranks for each in points})),
        batch=max(each.batch if scaling == "strong" else each.samples for each in points),
        work=work,
        other_works=tuple(others),
        after_s=median(each.profile.after_s for each in ones),
        ready=first.ready,
        bucket_bytes=first.bucket_bytes,
        jitter=median(each.profile.jitter for each in several) if several else 0.0,
        cores=cores,
        inside=links[0],
        between=links[1],
    )
    return replace(
        law, compute_error=_compute_error(law, several), residual=_residual(law, several)
    )


def _works(points: Sequence[Point], cores: float | None) -> tuple[Work, ...]:
    """The best division into a fixed part and one a sample, and the farthest that do about as well.

    In strong scaling on one machine a fixed part and the slowdown by busy neighbours look alike on two sizes:
    of many that are best the middle one is taken.
    """
    samples = np.array([each.samples for each in points], dtype=float)
    seconds = np.array([each.profile.work_s for each in points])
    turns = np.array([share_of_core(each.per_machine, cores) for each in points])
    busy = np.array([busy_part(each.per_machine, cores) for each in points])
    most = float(samples.max())
    tried = []
    for fixed in FIXED_PARTS.tolist() if len(np.unique(samples)) > 1 else (0.0,):
        shape = (fixed + (1 - fixed) * samples / most) * turns
        columns = np.stack([shape, shape * busy], axis=1) / seconds[:, None]
        whole, slower = _positive(columns)
        miss = float(np.sqrt(np.mean((columns @ np.array([whole, slower]) - 1) ** 2)))
        tried.append((miss, Work(whole * fixed, whole * (1 - fixed) / most, slower / whole)))
    least = min(miss for miss, _ in tried)
    best = [work for miss, work in tried if miss <= least + EQUAL_MISS]
    good = [work for miss, work in tried if miss <= max(AS_GOOD * least, SURE_MISS)]
    return best[len(best) // 2], good[0], good[-1]


def _positive(columns: np.ndarray) -> tuple[float, float]:
    """Least squares of ones; where either is below zero, or they cannot be told apart, one column alone."""
    ones = np.ones(len(columns))
    largest = np.maximum(columns.max(axis=0), 1e-300)
    scaled = columns / largest
    found, _, rank, _ = np.linalg.lstsq(scaled, ones, rcond=1e-6)
    if rank == 2 and found.min() >= 0:
        return float(found[0] / largest[0]), float(found[1] / largest[1])
    at = 1 if rank == 2 and found[0] < 0 else 0
    alone = float(scaled[:, at] @ ones / (scaled[:, at] @ scaled[:, at]) / largest[at])
    return (0.0, alone) if at else (alone, 0.0)


def _compute_error(law: Law, several: Sequence[Point]) -> float:
    misses = [abs(each.profile.work_s / law.work_s(each) - 1) for each in several]
    return max(LEAST_COMPUTE_ERROR, *misses) if misses else UNKNOWN_ERROR


def _residual(law: Law, several: Sequence[Point]) -> float:
    """What the parts together miss on several ranks; one size cannot tell it from chance."""
    if len({each.ranks for each in several}) < 2:
        return 1.0
    ratios = []
    for each in several:
        found = law.predict(each.ranks, each.hosts, each.machines)
        if isinstance(found, Prediction):
            ratios.append(math.log(each.step_s.median / found.step_s))
    return math.exp(median(ratios)) if ratios else 1.0


def _link(points: Sequence[Point], fit: Fit | None) -> Link | None:
    """From the fit of all-reduce, corrected by what the buckets took; from these alone without a fit."""
    seen = [
        (each.ranks, np.array(each.profile.bucket_bytes, float), np.array(each.profile.sent_s))
        for each in points
        if each.profile.bucket_bytes and sum(each.profile.sent_s) > 0
    ]
    usable = fit is not None and fit.is_ring and (fit.error or 0.0) <= MOST_FIT_ERROR
    if fit is None or not usable or fit.alpha_s is None or fit.beta_s is None:
        found = _link_of_buckets(seen)
        return found and _corrected(found, seen)
    link = Link(fit.alpha_s, fit.beta_s, UNKNOWN_ERROR if fit.error is None else fit.error)
    return _corrected(link, seen) if seen else replace(link, error=max(link.error, UNKNOWN_ERROR))


def _corrected(link: Link, seen: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> Link:
    """So that all buckets of a step take what they took: several are on their way at once."""
    ratios = [float(sent.sum() / link.seconds(size, ranks).sum()) for ranks, size, sent in seen]
    factor = median(ratios)
    error = max(LEAST_LINK_ERROR, link.error, *(abs(each / factor - 1) for each in ratios))
    return replace(link, alpha_s=link.alpha_s * factor, beta_s=link.beta_s * factor, error=error)


def _link_of_buckets(seen: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> Link | None:
    """α and β by relative least squares, neither below zero; of equal buckets all is by byte."""
    if not seen:
        return None
    messages = np.concatenate([np.full(len(size), 2.0 * (ranks - 1)) for ranks, size, _ in seen])
    moved = np.concatenate([2.0 * (ranks - 1) / ranks * size for ranks, size, _ in seen])
    sent = np.concatenate([each for *_, each in seen])
    known = sent > 0
    # bytes first: where the two cannot be told apart all is by byte
    columns = np.stack([moved, messages], axis=1)[known] / sent[known, None]
    beta, alpha = _positive(columns)
    misses = np.abs(columns @ np.array([beta, alpha]) - 1)
    error = max(LEAST_LINK_ERROR, float(np.median(misses)))
    if np.linalg.matrix_rank(columns / columns.max(axis=0), tol=1e-6) < 2:
        return Link(alpha, beta, max(error, UNKNOWN_ERROR), ambiguous_at=seen[0][0])
    return Link(alpha, beta, error)
