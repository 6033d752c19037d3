"""The cost of a network for any micro-batch, from its graphs for one or two sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hakaru.measure.partition.graph import Graph, Node


@dataclass(frozen=True)
class Scaled:
    """Graphs for two numbers of samples, the same if only one was measured."""

    small: Graph
    num_small: int
    large: Graph
    num_large: int

    def of(self, samples: float) -> Graph:
        """On a straight line through both; proportional to the samples if there is one, or if they differ."""
        line = self._line(samples)
        before = self.small.nodes
        if line is None:
            before, line = self.large.nodes, _proportional(samples / self.num_large)
        pairs = zip(before, self.large.nodes, strict=True)
        return replace(
            self.large,
            nodes=tuple(_between(small, large, line) for small, large in pairs),
            input_bytes=round(self.large.input_bytes * samples / self.num_large),
        )

    def _line(self, samples: float) -> Callable[[float, float], float] | None:
        names = [[node.name for node in each.nodes] for each in (self.small, self.large)]
        if self.num_small == self.num_large or names[0] != names[1]:
            return None
        share = (samples - self.num_small) / (self.num_large - self.num_small)

        def line(small: float, large: float) -> float:
            return max(0.0, small + share * max(0.0, large - small))

        return line


def _proportional(times: float) -> Callable[[float, float], float]:
    return lambda small, large: large * times


def _between(small: Node, large: Node, line: Callable[[float, float], float]) -> Node:
    return replace(
        large,
        forward_s=line(small.forward_s, large.forward_s),
        backward_s=line(small.backward_s, large.backward_s),
        output_bytes=round(line(small.output_bytes, large.output_bytes)),
        saved_bytes=round(line(small.saved_bytes, large.saved_bytes)),
    )
