"""A pipeline of stages from an unmodified network: torch's own, split where the search says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.distributed.pipelining import Pipe, pipeline

from hakaru.measure.partition.agree import NoPartition, agreed, question
from hakaru.measure.partition.cost import Cost, Machine, Schedule, Shape, cost_of
from hakaru.measure.partition.document import Asked, Candidate, document_of
from hakaru.measure.partition.graph import Graph
from hakaru.measure.partition.refusal import explained, without_logs
from hakaru.measure.partition.search import best_cuts, least_memory
from hakaru.measure.partition.trace import (
    free_values,
    numbers_of,
    operations,
    read_graph,
)
from hakaru.measure.preflight.check import size
from hakaru.registry import hint

LINK_BYTES_S = 1e9


def pipe_of(
    module: nn.Module,
    example_inputs: Sequence[Any],
    num_stages: int,
    memory_bytes: int | None = None,
    *,
    schedule: Schedule = "1f1b",
    microbatches: int = 0,
    replicas: int = 1,
    link_bytes_s: float = LINK_BYTES_S,
    optimiser_copies: int = 0,
    device: str = "cpu",
    name: str = "",
    cuts: Sequence[str] = (),
) -> tuple[Pipe, dict[str, Any]]:
    """The stages of a network for one micro-batch (`example_inputs`), and the partition document.

    Where processes are joined in torch.distributed, the first one that asks measures and decides for all.
    Without `microbatches` there are as many as stages. `cuts`, as the `cut_before` of an earlier document,
    takes the place of the search.
    """
    microbatches = microbatches or num_stages
    machine = Machine(memory_bytes, link_bytes_s, optimiser_copies=optimiser_copies)
    shape = Shape(schedule, num_stages, microbatches, replicas)
    asked = Asked(
        name or type(module).__name__, num_stages * replicas,
        microbatches * replicas * len(example_inputs[0]), machine, numbers_of(module), True,
    )  # fmt: skip
    sizes = [tuple(each.shape) for each in example_inputs if isinstance(each, torch.Tensor)]
    key = question(str(module), sizes, machine, shape, device.partition(":")[0], name, tuple(cuts))
    found: list[dict[str, Any]] = []

    def decide(graph: Graph) -> dict[str, Any]:
        cost = _given(asked, graph, shape, cuts) if cuts else _searched(asked, graph, shape)
        chosen = candidate_of(
            _strategy(shape), graph, cost, "cut as asked" if cuts else "the best legal cuts"
        )
        return document_of(asked, chosen, chosen.why, [chosen])

    def split(traced: fx.GraphModule) -> fx.GraphModule:
        found.append(agreed(key, lambda: decide(read_graph(traced, example_inputs, device))))
        cut_before(traced, found[0]["cut_before"])
        return traced

    module.train()
    with explained(module), without_logs():
        pipe = pipeline(module, tuple(example_inputs), split_policy=split)
    return pipe, found[0]


def cut_before(traced: fx.GraphModule, names: Sequence[str]) -> None:
    """Begin a stage before each of these operations; what a stage needs of constants it computes itself."""
    nodes, free = operations(traced), free_values(traced)
    starts = [next(node for node in nodes if node.name == name) for name in names]
    stage_of: dict[fx.Node, int] = {}
    for node in nodes:
        stage = max(stage_of.values(), default=0) if stage_of else 0
        stage_of[node] = stage + (node in starts)
    for node in starts:
        with traced.graph.inserting_before(node):
            traced.graph.call_function(torch.ops.pippy._pipe_split.default)
    copies: dict[tuple[fx.Node, int], fx.Node] = {}

    def own(value: fx.Node, stage: int) -> fx.Node:
        """A free value within a stage; its copy is made at the stage's start."""
        if value not in free or stage_of[value] == stage:
            return value
        if (value, stage) not in copies:
            with traced.graph.inserting_before(starts[stage - 1]):
                copies[value, stage] = traced.graph.node_copy(value, lambda each: own(each, stage))
        return copies[value, stage]

    for node in nodes:
        for each in node.all_input_nodes:
            if (replaced := own(each, stage_of[node])) is not each:
                node.replace_input_with(each, replaced)
    traced.graph.lint()
    traced.recompile()


def _searched(asked: Asked, graph: Graph, shape: Shape) -> Cost:
    cost = best_cuts(graph, shape, asked.machine)
    if cost is None:
        raise NoPartition(why_not(asked.model, graph, shape, asked.machine))
    return cost


def _given(asked: Asked, graph: Graph, shape: Shape, cuts: Sequence[str]) -> Cost:
    """The cost of the cuts that were asked for; illegal ones are refused."""
    index = {node.name: at for at, node in enumerate(graph.nodes)}
    if unknown := [each for each in cuts if each not in index]:
        raise NoPartition(
            f"{asked.model} has no operation {unknown[0]!r}; {hint(unknown[0], index, 8)}"
        )
    positions = sorted(index[each] for each in cuts)
    if len(positions) != shape.stages - 1:
        raise NoPartition(f"{asked.model}: {len(positions)} cuts make no {shape.stages} stages")
    if problem := graph.problem(positions):
        raise NoPartition(f"{asked.model} cannot be cut there: {problem}")
    return cost_of(graph, positions, shape, asked.machine)


def candidate_of(strategy: str, graph: Graph, cost: Cost, why: str, fits: bool = True) -> Candidate:
    shape = cost.shape
    return Candidate(
        strategy, fits, why, cost.step_s, cost.most_bytes, shape.microbatches, shape.stages, shape.replicas,
        graph, cost,
    )  # fmt: skip


def why_not(model: str, graph: Graph, shape: Shape, machine: Machine) -> str:
    """Why no cuts are legal or fit."""
    least = least_memory(graph, shape, machine)
    if least is not None:
        room = size(machine.memory_bytes or 0)
        return (
            f"{model}: {shape.stages} stages with {shape.microbatches} micro-batches need at"
            f" least {size(least.most_bytes)} on the fullest device, more than 90 % of {room}; use more"
            " stages or smaller micro-batches"
        )
    return f"{model} has no legal cuts into {shape.stages} stages: {obstacle(graph)}"


def obstacle(graph: Graph) -> str:
    """What keeps most of the network together."""
    widest = max(graph.spans, key=lambda span: span.last - span.first, default=None)
    if widest is not None and widest.last - widest.first >= len(graph.nodes) // 2:
        return f"{widest.why}, and what lies between must be one stage"
    return "a value may be needed by one later stage at most, and each stage needs parameters"


def _strategy(shape: Shape) -> str:
    return (
        f"ddp{shape.replicas}+{shape.schedule}{shape.stages}"
        if shape.replicas > 1
        else shape.schedule
    )
