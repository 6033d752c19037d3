"""Small random networks with skips, and cuts found by trying them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import strategies as st

from hakaru.measure.partition.cost import Cost, Machine, Shape, cost_of
from hakaru.measure.partition.graph import Graph, Node, Span


def chain(*seconds: float, num_bytes: int = 1000, parameters: int = 100, saved: int = 10) -> Graph:
    """Nodes in a row, each of which needs the one before."""
    return Graph(
        tuple(
            Node(
                f"n{at}", each / 3, each * 2 / 3, num_bytes, parameters, saved, (at - 1,) * (at > 0)
            )
            for at, each in enumerate(seconds)
        )
    )


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> Graph:
    """A row of nodes with skips between any of them, inputs used late, and shared parameters."""
    size = draw(st.integers(2, most))
    nodes = []
    for at in range(size):
        skips = draw(st.sets(st.integers(0, at - 1), max_size=2)) if at else set()
        before = {at - 1} if at and draw(st.booleans()) else set()
        nodes.append(
            Node(
                f"n{at}",
                draw(st.integers(0, 20)) / 1000,
                draw(st.integers(0, 40)) / 1000,
                draw(st.integers(0, 5000)),
                draw(st.sampled_from([0, 100, 1000, 4000])),
                draw(st.integers(0, 2000)),
                tuple(sorted(skips | before)),
            )
        )
    spans = []
    for _ in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, size - 1))
        spans.append(Span(first, draw(st.integers(first, size - 1)), "kept together"))
    return Graph(tuple(nodes), tuple(spans), draw(st.integers(0, 500)), 1e-9)


def is_legal(graph: Graph, cuts: Sequence[int]) -> bool:
    """Told from the definition, apart from the code under test."""
    stage = [sum(cut <= at for cut in cuts) for at in range(len(graph.nodes))]
    for span in graph.spans:
        if len({stage[at] for at in range(span.first, span.last + 1)}) > 1:
            return False
    for at in range(len(graph.nodes)):
        users = {stage[n] for n, node in enumerate(graph.nodes) if at in node.inputs}
        if len(users - {stage[at]}) > 1:
            return False
    if any(node.parameter_bytes for node in graph.nodes):
        having = {stage[n] for n, node in enumerate(graph.nodes) if node.parameter_bytes}
        return having == set(range(len(cuts) + 1))
    return True


def all_legal(graph: Graph, stages: int) -> Iterator[tuple[int, ...]]:
    for cuts in combinations(range(1, len(graph.nodes)), stages - 1):
        if is_legal(graph, cuts):
            yield cuts


def exhaustive(graph: Graph, shape: Shape, machine: Machine) -> Cost | None:
    """The shortest step of all legal cuts that fit."""
    tried = [cost_of(graph, cuts, shape, machine) for cuts in all_legal(graph, shape.stages)]
    fitting = [each for each in tried if each.most_bytes <= machine.limit_bytes]
    return min(fitting, key=lambda each: each.step_s, default=None)
