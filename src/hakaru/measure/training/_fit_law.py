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
    shared_part,
)

MOST_FIT_ERROR = 0.25  # of α and β: above it they predict nothing
LEAST_SIZES = 3  # measured, before one can be held out
LEAST_COMPUTE_ERROR, LEAST_LINK_ERROR = 0.03, 0.05


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
    apart = [each for each in several if _per_machine(each) == 1]
    fixed_s, sample_s = _line([(each.samples, each.profile.work_s) for each in (*ones, *apart)])
    links = [
        _link([each for each in several if (each.hosts > 1) == is_between], fit)
        for is_between, fit in zip((False, True), fits, strict=True)
    ]
    law = Law(
        scaling=scaling,
        fitted_on=tuple(sorted({each.ranks for each in points})),
        batch=max(each.batch if scaling == "strong" else each.samples for each in points),
        fixed_s=fixed_s,
        sample_s=sample_s,
        after_s=median(each.profile.after_s for each in ones),
        ready=first.ready,
        bucket_bytes=first.bucket_bytes,
        jitter=median(each.profile.jitter for each in several) if several else 0.0,
        cores=cores,
        slowdown=0.0,
        inside=links[0],
        between=links[1],
    )
    law = replace(law, slowdown=_slowdown(law, several))
    return replace(
        law, compute_error=_compute_error(law, several), residual=_residual(law, several)
    )


def _per_machine(point: Point) -> int:
    return -(-point.ranks // point.num_machines)


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Work over samples as a fixed part and one a sample, neither below zero.

    Points of one batch cannot tell them apart: all is by sample.
    """
    samples = np.array([each for each, _ in points], dtype=float)
    seconds = np.array([each for _, each in points])
    by_sample = float(np.median(seconds / samples))
    if len(np.unique(samples)) < 2:
        return 0.0, by_sample
    slope, fixed = np.polyfit(samples, seconds, 1, w=1 / seconds)
    if slope < 0:
        return float(np.median(seconds)), 0.0
    return (0.0, by_sample) if fixed < 0 else (float(fixed), float(slope))


def _slowdown(law: Law, several: Sequence[Point]) -> float:
    """What busy neighbours on a machine cost, by least squares; the sharing of cores is not part of it."""
    over = parts = 0.0
    for each in several:
        part = shared_part(_per_machine(each), law.cores)
        ratio = each.profile.work_s / law.work_s(each.samples, _per_machine(each))
        over += part * (ratio - 1)
        parts += part**2
    return max(0.0, over / parts) if parts else 0.0


def _compute_error(law: Law, several: Sequence[Point]) -> float:
    misses = [
        abs(each.profile.work_s / law.work_s(each.samples, _per_machine(each)) - 1)
        for each in several
    ]
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
        return _link_of_buckets(seen)
    link = Link(fit.alpha_s, fit.beta_s, UNKNOWN_ERROR if fit.error is None else fit.error)
    ratios = [float(sent.sum() / link.seconds(size, ranks).sum()) for ranks, size, sent in seen]
    if not ratios:
        return replace(link, error=max(link.error, UNKNOWN_ERROR))
    factor = median(ratios)
    error = max(LEAST_LINK_ERROR, fit.error or 0.0, *(abs(r / factor - 1) for r in ratios))
    return Link(link.alpha_s * factor, link.beta_s * factor, error)


def _link_of_buckets(seen: Sequence[tuple[int, np.ndarray, np.ndarray]]) -> Link | None:
    """α and β by relative least squares, neither below zero; of equal buckets all is by byte."""
    if not seen:
        return None
    messages = np.concatenate([np.full(len(size), 2.0 * (ranks - 1)) for ranks, size, _ in seen])
    moved = np.concatenate([2.0 * (ranks - 1) / ranks * size for ranks, size, _ in seen])
    sent = np.concatenate([each for *_, each in seen])
    known = sent > 0
    columns = np.stack([messages, moved], axis=1)[known] / sent[known, None]
    ones = np.ones(len(columns))
    (alpha, beta), _, rank, _ = np.linalg.lstsq(columns / columns.max(axis=0), ones, rcond=1e-6)
    alpha, beta = alpha / columns[:, 0].max(), beta / columns[:, 1].max()
    if rank < 2 or alpha < 0 or beta < 0:
        at = 0 if rank == 2 and beta < 0 else 1
        column = columns[:, at]
        one = float(column @ ones / (column @ column))
        alpha, beta = (one, 0.0) if at == 0 else (0.0, one)
    misses = np.abs(columns @ np.array([alpha, beta]) - 1)
    error = float(np.median(misses)) if len(columns) > 2 else UNKNOWN_ERROR
    return Link(float(alpha), float(beta), max(LEAST_LINK_ERROR, error))
