"""The fitted figures as lookup tables: quantiles of run time, choices of size, queue and request."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hakaru.sources.synth import _figures as figures

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_Z = np.linspace(-8.0, 8.0, 4001)
_PHI = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _Z])
GRID = 1500


def normal_cdf(z: Floats) -> Floats:
    chances: Floats = np.interp(z, _Z, _PHI)
    return chances


def normal_quantile(u: Floats) -> Floats:
    z: Floats = np.interp(u, _PHI, _Z)
    return z


@dataclass(frozen=True)
class Choices:
    """Queue and request (s) by run time: the choice number is looked up with one search."""

    queue: Ints
    requested_s: Floats
    edges: Floats
    cumulated: Floats  # the rows' cumulated shares one after the other, row r lying in (r, r + 1]

    def pick(self, run_s: Floats, u: Floats) -> Ints:
        row = np.searchsorted(self.edges, run_s, side="right") - 1
        found = np.searchsorted(self.cumulated, row + u, side="right")
        num = len(self.queue)
        chosen: Ints = np.minimum(found - row * num, num - 1)
        return chosen


@cache
def run_quantiles(klass: str, state: str) -> tuple[Floats, Floats]:
    """Probabilities and the log of run times (s) of one class and state, for interpolation."""
    i = figures.STATES.index(state)
    short = figures.SHORT_SHARE[klass][i]
    median, sigma = figures.SHORT_RUN[klass][i]
    low_t = np.linspace(0.0, math.log(60), GRID)
    low = _cut(normal_cdf((low_t - math.log(median)) / sigma))
    mixture = figures.LONG_RUN[klass].get(state, figures.LONG_RUN[klass]["failed"])
    high_t = np.linspace(math.log(60), math.log(figures.LONGEST_H[klass] * 3600), GRID)
    parts = [w * normal_cdf((high_t - math.log(m)) / s) for w, m, s in mixture]
    high = _cut(np.sum(parts, axis=0))
    chances = np.concatenate([short * low, short + (1 - short) * high])
    return chances, np.concatenate([low_t, high_t])


@cache
def request_choices(klass: str) -> Choices:
    """What jobs of a class ask for; jobs of several nodes may use `normal` only."""
    text = figures.REQUESTS_SINGLE if klass == "single" else figures.REQUESTS_WIDE
    head, *lines = [line.split() for line in text.strip().splitlines()]
    names = [name for name in head[1:] if klass != "multi" or name[0] == "n"]
    rows = np.array([[float(cell) for cell in line] for line in lines])
    shares = rows[:, 1 : 1 + len(names)]
    total = shares.sum(axis=1, keepdims=True)
    # a row that only other queues hold (over 72 h, which no multi-node job reaches) takes the maximum
    shares = np.where(total > 0, shares, np.eye(len(names))[-1])
    cumulated = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    offset: Floats = np.arange(len(rows), dtype=np.float64)[:, None]
    stacked: Floats = (cumulated + offset).ravel()
    queue, requested = _columns(names)
    return Choices(queue, requested, rows[:, 0], stacked)


@cache
def timeout_choices(klass: str) -> tuple[Ints, Floats, Floats]:
    """Queue, request (s) and cumulated share of what jobs that timed out had asked for."""
    words = figures.TIMEOUT_REQUESTS[klass].split()
    queue, requested = _columns(words[::2])
    counts = np.array([float(word) for word in words[1::2]])
    return queue, requested, np.cumsum(counts) / counts.sum()


@cache
def sizes(klass: str, gpus_per_node: int, num_nodes: int) -> tuple[Ints, Floats, Floats]:
    """GPUs in a node or nodes of a job, with cumulated shares for jobs of ≥ 60 s and < 60 s."""
    table = figures.GPUS_IN_NODE if klass == "node" else figures.NODES
    limit = gpus_per_node if klass == "node" else num_nodes
    counts = np.array(table, dtype=np.float64)
    shares = np.cumsum(counts[:, 1:], axis=0) / counts[:, 1:].sum(axis=0)
    number = np.minimum(counts[:, 0], limit).astype(np.int64)
    return number, shares[:, 0], shares[:, 1]


def mean_gpu_hours(gpus_per_node: int, num_nodes: int) -> float:
    """GPU-hours of the mean job."""
    total = sum(sum(counts) for counts in figures.NUM_BY_STATE.values())
    seconds = 0.0
    for klass, counts in figures.NUM_BY_STATE.items():
        gpus = _mean_gpus(klass, gpus_per_node, num_nodes)
        for state, count in zip(figures.STATES, counts, strict=True):
            seconds += count / total * gpus * _mean_run_s(klass, state)
    return seconds / 3600


def _mean_gpus(klass: str, gpus_per_node: int, num_nodes: int) -> float:
    """Of jobs of 60 s and more, which have nearly all the hours."""
    if klass == "single":
        return 1.0
    number, shares, _ = sizes(klass, gpus_per_node, num_nodes)
    mean = float(np.sum(number * np.diff(shares, prepend=0.0)))
    return mean * (1 if klass == "node" else gpus_per_node)


def _mean_run_s(klass: str, state: str) -> float:
    if state == "timeout":
        _, requested, shares = timeout_choices(klass)
        return float(np.sum(requested * np.diff(shares, prepend=0.0)))
    chances, log_t = run_quantiles(klass, state)
    middle = np.exp((log_t[1:] + log_t[:-1]) / 2)
    return float(np.sum(np.diff(chances) * middle))


def _cut(chances: Floats) -> Floats:
    """A distribution function cut to its grid."""
    cut: Floats = (chances - chances[0]) / (chances[-1] - chances[0])
    return cut


def _columns(names: list[str]) -> tuple[Ints, Floats]:
    """Queue numbers and seconds of names such as n72; the request is a whole number of minutes."""
    letters = [queue[0] for queue in figures.QUEUES]
    queue = np.array([letters.index(name[0]) for name in names], dtype=np.int64)
    minutes = np.array([round(float(name[1:]) * 60) for name in names])
    return queue, minutes * 60.0
