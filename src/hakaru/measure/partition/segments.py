"""All possible stages of a network at once, as arrays: what each costs, and whether it is legal.

A value that two later stages need is received by the first of them and needed beyond its end. So a stage is
illegal by itself, whatever the other cuts are, and the best cuts are found stage by stage. The same holds for
what a stage receives: of legal stages each value goes to one only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hakaru.measure.partition.cost import Work
from hakaru.measure.partition.graph import Graph

MOST_POSITIONS = 400

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Segments:
    """Entry [i, j] is the stage from ends[i] up to ends[j]."""

    ends: NDArray[np.int64]
    legal: NDArray[np.bool_]
    work: Work

    @classmethod
    def of(cls, graph: Graph) -> Segments:
        ends = np.array([0, *_chosen_positions(graph), len(graph.nodes)], dtype=np.int64)
        received, sent = _crossing(graph, ends)
        received[0] = graph.input_bytes
        crossing = received.copy()
        crossing[0] = 0
        nodes = graph.nodes
        parameters = _sums([node.parameter_bytes for node in nodes], ends)
        work = Work(
            seconds=_sums([node.seconds for node in nodes], ends),
            parameter_bytes=parameters,
            saved_bytes=_sums([node.saved_bytes for node in nodes], ends),
            received_bytes=received,
            crossing_bytes=crossing,
            sent_bytes=sent,
            workspace_bytes=2 * _largest([node.output_bytes for node in nodes], ends),
            update_s=graph.update_s_per_byte * parameters,
        )
        return cls(ends, _legal(graph, ends, parameters), work)


def _chosen_positions(graph: Graph) -> list[int]:
    """Where a cut may be; of very many the place with the least traffic in each part of the time."""
    positions = np.array(graph.positions, dtype=np.int64)
    if len(positions) <= MOST_POSITIONS:
        return [int(each) for each in positions]
    live = np.zeros(len(graph.nodes) + 1)
    for at, users in enumerate(graph.consumers):
        if users:
            live[at + 1] += graph.nodes[at].output_bytes
            live[users[-1] + 1] -= graph.nodes[at].output_bytes
    done = np.cumsum([0.0, *(node.seconds for node in graph.nodes)])[positions]
    rank = np.arange(len(positions)) / len(positions)
    share = done / max(graph.seconds, 1e-30) + rank  # by time and by count, so that none is empty
    part = np.minimum(share / 2 * MOST_POSITIONS, MOST_POSITIONS - 1).astype(np.int64)
    order = np.lexsort((np.cumsum(live)[positions], part))
    _, first = np.unique(part[order], return_index=True)
    return sorted(int(each) for each in positions[order][first])


def _sums(values: list[float] | list[int], ends: NDArray[np.int64]) -> Matrix:
    total = np.concatenate([[0.0], np.cumsum(np.array(values, dtype=np.float64))])[ends]
    found: Matrix = total[None, :] - total[:, None]
    return found


def _largest(values: list[int], ends: NDArray[np.int64]) -> Matrix:
    """The largest value of each stage."""
    size = len(ends)
    blocks = np.maximum.reduceat(np.array(values, dtype=np.float64), ends[:-1])
    found = np.zeros((size, size))
    for first in range(size - 1):
        found[first, first + 1 :] = np.maximum.accumulate(blocks[first:])
    return found


def _crossing(graph: Graph, ends: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
    """Bytes that each legal stage receives and sends; each value covers a rectangle of stages."""
    size = len(ends)
    received, sent = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))
    made, needed, num_bytes = _lives(graph, ends)
    _cover(received, made + 1, needed + 1, needed + 1, np.full_like(made, size), num_bytes)
    _cover(sent, np.zeros_like(made), made + 1, made + 1, needed + 1, num_bytes)
    return _filled(received), _filled(sent)


def _lives(graph: Graph, ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Of each value needed in a later block: its block, the last block that needs it, and its bytes."""
    block = np.searchsorted(ends, np.arange(len(graph.nodes)), side="right") - 1
    rows = [
        (block[at], block[users[-1]], graph.nodes[at].output_bytes)
        for at, users in enumerate(graph.consumers)
        if users and block[users[-1]] > block[at]
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _cover(
    corners: Matrix, top: NDArray[np.int64], bottom: NDArray[np.int64], left: NDArray[np.int64],
    right: NDArray[np.int64], num_bytes: NDArray[np.int64],
) -> None:  # fmt: skip
    """Rows top to bottom and columns left to right, the latter excluded."""
    for row, column, sign in (
        (top, left, 1),
        (bottom, left, -1),
        (top, right, -1),
        (bottom, right, 1),
    ):
        np.add.at(corners, (row, column), sign * num_bytes)


def _filled(corners: Matrix) -> Matrix:
    found: Matrix = corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    return found


def _legal(graph: Graph, ends: NDArray[np.int64], parameters: Matrix) -> NDArray[np.bool_]:
    """Stages with nodes and parameters that receive nothing which a later stage needs too."""
    size = len(ends)
    legal = np.triu(np.ones((size, size), dtype=np.bool_), k=1)
    if graph.parameter_bytes:
        legal &= parameters > 0
    block = np.searchsorted(ends, np.arange(len(graph.nodes)), side="right") - 1
    for at, users in enumerate(graph.consumers):
        needed = sorted({int(block[user]) for user in users} - {int(block[at])})
        for user in needed[:-1]:
            legal[block[at] + 1 : user + 1, user + 1 : needed[-1] + 1] = False
    return legal
