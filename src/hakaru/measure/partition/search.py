"""The best legal cuts of a network for a pipeline, by dynamic programming over its linear order (as RaNNC's).

What a stage costs, whether it is legal and whether it fits depend on its two ends and its number alone
(see segments.py). So the search is exact, but for networks with more than 400 places for a cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from hakaru.measure.partition.cost import Cost, Machine, Shape, cost_of
from hakaru.measure.partition.graph import Graph
from hakaru.measure.partition.segments import Matrix, Segments

SLACK = 1e-9  # of the slowest stage's time, for rounding


@lru_cache(maxsize=8)
def segments_of(graph: Graph) -> Segments:
    return Segments.of(graph)


def best_cuts(graph: Graph, shape: Shape, machine: Machine) -> Cost | None:
    """The legal cuts with the shortest step that fit the memory, or None if there are none.

    Of several the most even: the one with the least sum of the squares of the stages' times.
    """
    found = segments_of(graph)
    if shape.stages >= len(found.ends):
        return None
    step = shape.step_s(found.work, machine)
    allowed = [
        found.legal & (shape.memory_bytes(found.work, stage, machine) <= machine.limit_bytes)
        for stage in range(shape.stages)
    ]
    times = [np.where(each, step, np.inf) for each in allowed]
    slowest, _ = _follow(times, np.maximum)
    if not np.isfinite(slowest):
        return None
    slot = shape.slot_s(found.work, machine)
    within = [np.where(each <= slowest * (1 + SLACK), slot**2, np.inf) for each in times]
    _, chosen = _follow(within, np.add)
    return cost_of(graph, [int(found.ends[at]) for at in chosen], shape, machine)


def least_memory(graph: Graph, shape: Shape, machine: Machine) -> Cost | None:
    """The legal cuts whose fullest stage needs the least memory, whatever the limit."""
    found = segments_of(graph)
    if shape.stages >= len(found.ends):
        return None
    needs = [
        np.where(found.legal, shape.memory_bytes(found.work, stage, machine), np.inf)
        for stage in range(shape.stages)
    ]
    least, chosen = _follow(needs, np.maximum)
    if not np.isfinite(least):
        return None
    return cost_of(graph, [int(found.ends[at]) for at in chosen], shape, machine)


def best_of(costs: Iterable[Cost | None]) -> Cost | None:
    """The shortest step; of equals the one with the fewest stages and micro-batches."""
    known = [each for each in costs if each is not None]
    return min(
        known,
        key=lambda each: (each.step_s, each.shape.stages, each.shape.microbatches),
        default=None,
    )


def _follow(stages: list[Matrix], join: Callable[..., Matrix]) -> tuple[float, list[int]]:
    """The least total through one entry of each matrix, first end to last, and the ends between."""
    size = len(stages[0])
    total = np.full(size, np.inf)
    total[0] = 0.0
    came: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for stage in stages:
        reached = join(total[:, None], stage)
        came.append(reached.argmin(axis=0))
        total = reached.min(axis=0)
    at, path = size - 1, []
    for back in reversed(came[1:]):
        at = int(back[at])
        path.append(at)
    return float(total[-1]), path[::-1]
