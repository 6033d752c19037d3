"""The search against all legal cuts of small random networks, and against cuts found by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.measure.partition.cost import Machine, Shape, cost_of
from hakaru.measure.partition.graph import Graph, Node, Span
from hakaru.measure.partition.search import best_cuts, least_memory
from tests.measure.partition._graphs import all_legal, chain, exhaustive, graphs, is_legal

SHAPES = st.builds(
    Shape,
    st.sampled_from(["gpipe", "1f1b"]),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 3),
)
MACHINES = st.builds(
    Machine,
    st.none() | st.integers(5_000, 80_000),
    st.sampled_from([1e4, 1e5, 1e6, 1e9]),
    st.sampled_from([0.0, 1e-3]),
    st.integers(0, 2),
)


@settings(max_examples=300, deadline=None)
@given(graphs(), SHAPES, MACHINES)
def test_as_good_as_all_legal_cuts(graph: Graph, shape: Shape, machine: Machine) -> None:
    found, best = best_cuts(graph, shape, machine), exhaustive(graph, shape, machine)
    assert (found is None) == (best is None)
    if found is None or best is None:
        return
    assert is_legal(graph, found.cuts)
    assert graph.problem(found.cuts) is None
    assert len(found.cuts) == shape.stages - 1
    assert found.most_bytes <= machine.limit_bytes
    assert found.step_s <= best.step_s * (1 + 1e-6)


@settings(max_examples=300, deadline=None)
@given(graphs(), st.data())
def test_legality_is_that_of_the_definition(graph: Graph, data: st.DataObject) -> None:
    places = st.integers(1, len(graph.nodes) - 1)
    cuts = sorted(data.draw(st.sets(places, max_size=4)))
    assert (graph.problem(cuts) is None) == is_legal(graph, cuts)


@settings(max_examples=150, deadline=None)
@given(graphs(), SHAPES)
def test_least_memory_of_all_legal_cuts(graph: Graph, shape: Shape) -> None:
    found = least_memory(graph, shape, Machine())
    tried = [cost_of(graph, cuts, shape, Machine()) for cuts in all_legal(graph, shape.stages)]
    assert (found is None) == (not tried)
    if found is not None:
        assert found.most_bytes == min(each.most_bytes for each in tried)


def test_even_chain_is_cut_in_the_middle() -> None:
    found = best_cuts(chain(1, 1, 1, 1), Shape("gpipe", 2, 3), Machine(link_bytes_s=1e12))
    assert found is not None
    assert found.cuts == (2,)
    assert found.step_s == pytest.approx(4 * 2.0)  # 3 + 2 - 1 slots of two nodes


def test_slow_link_moves_the_cut_to_the_smaller_value() -> None:
    nodes = list(chain(1, 1, 1, 1, num_bytes=100).nodes)
    nodes[1] = Node("wide", 1 / 3, 2 / 3, 10_000, 100, 10, (0,))
    found = best_cuts(Graph(tuple(nodes)), Shape("gpipe", 2, 1), Machine(link_bytes_s=1000))
    assert found is not None
    assert found.cuts == (3,)  # (1,) would add the transfer to the slower stage
    assert found.step_s == pytest.approx(2 * 3.0)


def test_memory_moves_the_cut() -> None:
    """The even cut needs 2 × 3,000 bytes of weights and gradients in the first stage."""
    nodes = [
        Node("a", 1.0, 0, 0, 2000),
        Node("b", 1.0, 0, 0, 1000, inputs=(0,)),
        Node("c", 1.0, 0, 0, 100, inputs=(1,)),
        Node("d", 1.0, 0, 0, 100, inputs=(2,)),
    ]
    graph, shape = Graph(tuple(nodes)), Shape("gpipe", 2, 1)
    assert best_cuts(graph, shape, Machine()).cuts == (2,)  # type: ignore[union-attr]
    assert best_cuts(graph, shape, Machine(5000)).cuts == (1,)  # type: ignore[union-attr]
    assert best_cuts(graph, shape, Machine(4000)) is None
    assert least_memory(graph, shape, Machine()).most_bytes == 4000  # type: ignore[union-attr]


def test_one_f_one_b_keeps_fewer_activations() -> None:
    graph = chain(1, 1, 1, 1, num_bytes=0, parameters=1, saved=1000)
    gpipe, onefoneb = (
        best_cuts(graph, Shape(schedule, 2, 8), Machine()) for schedule in ("gpipe", "1f1b")
    )
    assert gpipe is not None
    assert onefoneb is not None
    assert gpipe.memory_bytes == (16_004, 16_004)
    assert onefoneb.memory_bytes == (4_004, 2_004)


def test_value_of_two_later_stages_is_illegal() -> None:
    nodes = [Node(f"n{at}", 1.0, parameter_bytes=8, inputs=(at - 1,) * (at > 0)) for at in range(4)]
    nodes[3] = Node("n3", 1.0, parameter_bytes=8, inputs=(0, 2))  # a skip over everything
    nodes[2] = Node("n2", 1.0, parameter_bytes=8, inputs=(0, 1))
    graph = Graph(tuple(nodes))
    assert "n0 is needed by 2 later stages" in str(graph.problem((2, 3)))
    assert graph.problem((1,)) is None
    assert graph.problem((2,)) is None
    assert best_cuts(graph, Shape("gpipe", 4, 1), Machine()) is None


def test_skip_over_a_whole_stage_is_legal() -> None:
    nodes = list(chain(0.5, 0.5, 1.0, 1.0, num_bytes=10).nodes)
    nodes[3] = Node("n3", 1 / 3, 2 / 3, 10, 100, 10, (0, 2))  # n0 goes from stage 0 to stage 2
    graph = Graph(tuple(nodes))
    found = best_cuts(graph, Shape("1f1b", 3, 4), Machine(link_bytes_s=1000))
    assert found is not None
    assert found.cuts == (2, 3)
    # the middle stage receives one value and the last two, there and back
    assert found.slots_s == pytest.approx((1.0, 1.02, 1.04))


def test_spans_are_never_cut() -> None:
    graph = Graph(chain(1, 1, 1, 1).nodes, (Span(0, 2, "weights are shared"),))
    assert graph.positions == (3,)
    assert graph.problem((2,)) == "weights are shared"
    assert best_cuts(graph, Shape("gpipe", 2, 1), Machine()).cuts == (3,)  # type: ignore[union-attr]


def test_long_network_is_coarsened_and_still_even() -> None:
    graph = chain(*[1.0] * 1500)
    found = best_cuts(graph, Shape("1f1b", 4, 8), Machine(link_bytes_s=1e15))
    assert found is not None
    assert graph.problem(found.cuts) is None
    assert max(found.slots_s) <= 375 * 1.02
