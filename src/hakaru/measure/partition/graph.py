"""A network as nodes in linear order with their costs, and where it may be cut into pipeline stages.

A cut at position t divides node t - 1 from node t. Whether cuts are legal depends on all of them: the
backward of torch's pipelines takes the gradient of a value from one stage only, so that a value may be needed
by one later stage at most. It may skip stages on its way there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class Node:
    """An operation for one micro-batch; `inputs` are the earlier nodes whose values it needs."""

    name: str
    forward_s: float = 0.0
    backward_s: float = 0.0
    output_bytes: int = 0
    parameter_bytes: int = 0  # of the parameters that no earlier node uses
    saved_bytes: int = 0  # of its values that are kept for the backward
    inputs: tuple[int, ...] = ()
    path: str = ""  # of the module that it belongs to
    num_parameters: int = 0

    @property
    def seconds(self) -> float:
        return self.forward_s + self.backward_s


@dataclass(frozen=True)
class Span:
    """Nodes from the first to the last that must be in one stage, and why."""

    first: int
    last: int
    why: str


@dataclass(frozen=True)
class Graph:
    """The nodes of a network, and what else forbids cuts."""

    nodes: tuple[Node, ...]
    spans: tuple[Span, ...] = ()
    input_bytes: int = 0  # of the network's inputs
    update_s_per_byte: float = 0.0  # of the optimiser's step, for a byte of parameters

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node those that need its value."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for at, node in enumerate(self.nodes):
            for source in dict.fromkeys(node.inputs):
                found[source].append(at)
        return tuple(map(tuple, found))

    @property
    def seconds(self) -> float:
        return sum(node.seconds for node in self.nodes)

    @property
    def parameter_bytes(self) -> int:
        return sum(node.parameter_bytes for node in self.nodes)

    @property
    def saved_bytes(self) -> int:
        return sum(node.saved_bytes for node in self.nodes)

    @property
    def workspace_bytes(self) -> int:
        """The largest gradients that the backward holds at one time: of a node's output and of its input."""
        return 2 * max((node.output_bytes for node in self.nodes), default=0)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """Where a single cut may be; others may still forbid it."""
        held = [0] * (len(self.nodes) + 1)
        for span in self.spans:
            if span.first < span.last:
                held[span.first + 1] += 1
                held[span.last + 1] -= 1
        found, depth = [], 0
        for at in range(1, len(self.nodes)):
            depth += held[at]
            if depth == 0:
                found.append(at)
        return tuple(found)

    def stages(self, cuts: Sequence[int]) -> list[tuple[int, int]]:
        """The first node of each stage, and the first after it."""
        ends = [0, *cuts, len(self.nodes)]
        return list(pairwise(ends))

    def problem(self, cuts: Sequence[int]) -> str | None:
        """Why these cuts are illegal, or None."""
        stages = self.stages(cuts)
        if any(first >= end for first, end in stages):
            return f"the cuts {list(cuts)} leave a stage without nodes"
        for span in self.spans:
            if any(span.first < cut <= span.last for cut in cuts):
                return span.why
        stage_of = [n for n, (first, end) in enumerate(stages) for _ in range(first, end)]
        for at, node in enumerate(self.nodes):
            later = {stage_of[user] for user in self.consumers[at]} - {stage_of[at]}
            if len(later) > 1:
                return f"the value of {node.name} is needed by {len(later)} later stages"
        empty = [n for n, stage in enumerate(stages) if not self.trains(*stage)]
        return f"stage {empty[0]} has no parameters to train" if empty else None

    def trains(self, first: int, end: int) -> bool:
        """Whether a stage has parameters: an optimiser refuses none, unless the network has none at all."""
        if not self.parameter_bytes:
            return True
        return any(node.parameter_bytes for node in self.nodes[first:end])

    def received(self, first: int, end: int) -> int:
        """Bytes that a stage needs from earlier ones; the first takes the network's inputs."""
        sources = {each for node in self.nodes[first:end] for each in node.inputs if each < first}
        values = sum(self.nodes[each].output_bytes for each in sources)
        return values if first else self.input_bytes

    def sent(self, first: int, end: int) -> int:
        """Bytes that later stages need from a stage."""
        return sum(
            self.nodes[at].output_bytes
            for at in range(first, end)
            if any(user >= end for user in self.consumers[at])
        )
