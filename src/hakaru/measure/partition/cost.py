"""What a pipeline costs: time and memory of its stages, and of a step.

A stage works on one micro-batch a slot: its forward, its backward, and the transfer of what it receives and
of the gradients that it gives back. With m micro-batches and s stages a step has m + s - 1 slots, each as
long as that of the slowest stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hakaru.measure.partition.graph import Graph

Schedule = Literal["gpipe", "1f1b"]
SCHEDULES: tuple[Schedule, ...] = ("1f1b", "gpipe")  # the one with less memory first
USABLE = 0.9  # of a device's memory; the rest is for the allocator and for what is not counted here


@dataclass(frozen=True)
class Machine:
    """The devices, which are alike, and what the optimiser keeps on them."""

    memory_bytes: int | None = None  # of one device; None: no limit
    link_bytes_s: float = 10e9
    latency_s: float = 0.0  # of a message over the link
    optimiser_copies: int = 0  # of the parameters: SGD 0, with momentum 1, Adam 2

    @property
    def limit_bytes(self) -> float:
        return float("inf") if self.memory_bytes is None else USABLE * self.memory_bytes

    def all_reduce_s(self, num_bytes: Any, ranks: int) -> Any:
        """A ring's all-reduce among so many ranks."""
        return 2 * (ranks - 1) * self.transfer_s(num_bytes / ranks)

    def transfer_s(self, num_bytes: Any) -> Any:
        return self.latency_s + num_bytes / self.link_bytes_s


@dataclass(frozen=True)
class Shape:
    """A pipeline without its cuts."""

    schedule: Schedule
    stages: int
    microbatches: int
    replicas: int = 1

    def in_flight(self, stage: int) -> int:
        """Micro-batches whose activations a stage keeps at one time."""
        if self.schedule == "gpipe":
            return self.microbatches
        return min(self.microbatches, self.stages - stage)

    @property
    def slots(self) -> int:
        return self.microbatches + self.stages - 1

    def memory_bytes(self, work: Work, stage: int, machine: Machine) -> Any:
        """Weights, gradients, optimiser state and, with replicas, buckets of gradients; the activations in
        flight; and the buffers that torch keeps for what every micro-batch receives, values and gradients."""
        copies = 2 + machine.optimiser_copies + (self.replicas > 1)
        return (
            copies * work.parameter_bytes
            + self.in_flight(stage) * work.saved_bytes
            + self.microbatches * (work.received_bytes + work.sent_bytes)
            + work.workspace_bytes
        )

    def slot_s(self, work: Work, machine: Machine) -> Any:
        """A stage's time for one micro-batch."""
        crossing = 2 * machine.transfer_s(work.crossing_bytes) * (work.crossing_bytes > 0)
        adding = work.update_s if self.microbatches > 1 else 0.0  # to the gradients of those before
        return work.seconds + crossing + adding

    def step_s(self, work: Work, machine: Machine) -> Any:
        """The step's time if this stage is the slowest."""
        reducing = machine.all_reduce_s(work.parameter_bytes, self.replicas)
        return self.slots * self.slot_s(work, machine) + reducing + work.update_s


@dataclass(frozen=True)
class Work:
    """What a stage does for one micro-batch; numbers, or arrays of the same shape for many stages at once."""

    seconds: Any
    parameter_bytes: Any
    saved_bytes: Any
    received_bytes: Any  # of the first stage: the network's inputs
    crossing_bytes: Any  # received over a link
    sent_bytes: Any
    workspace_bytes: Any
    update_s: Any

    @classmethod
    def of(cls, graph: Graph, first: int, end: int) -> Work:
        """Of the stage from the first node up to `end`."""
        nodes = graph.nodes[first:end]
        parameters = sum(node.parameter_bytes for node in nodes)
        received = graph.received(first, end)
        return cls(
            seconds=sum(node.seconds for node in nodes),
            parameter_bytes=parameters,
            saved_bytes=sum(node.saved_bytes for node in nodes),
            received_bytes=received,
            crossing_bytes=received if first else 0,
            sent_bytes=graph.sent(first, end),
            workspace_bytes=2 * max((node.output_bytes for node in nodes), default=0),
            update_s=graph.update_s_per_byte * parameters,
        )


@dataclass(frozen=True)
class Cost:
    """What a pipeline with these cuts takes, stage by stage."""

    shape: Shape
    cuts: tuple[int, ...]
    step_s: float
    slots_s: tuple[float, ...]
    memory_bytes: tuple[int, ...]

    @property
    def most_bytes(self) -> int:
        return max(self.memory_bytes)


def cost_of(graph: Graph, cuts: Sequence[int], shape: Shape, machine: Machine) -> Cost:
    """The cost of given cuts, legal or not."""
    works = [Work.of(graph, *stage) for stage in graph.stages(cuts)]
    shape = replace(shape, stages=len(works))
    return Cost(
        shape,
        tuple(cuts),
        max(float(shape.step_s(work, machine)) for work in works),
        tuple(float(shape.slot_s(work, machine)) for work in works),
        tuple(int(shape.memory_bytes(work, at, machine)) for at, work in enumerate(works)),
    )
