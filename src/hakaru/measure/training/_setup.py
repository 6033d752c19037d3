"""What the parts of one rank's trainer share: its place, its clock, and what the user asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from hakaru.measure.networks.workload import Workload
from hakaru.measure.training._clock import Clock
from hakaru.measure.training._groups import Layout
from hakaru.measure.training._marks import Buckets, Spans
from hakaru.measure.training._strategy import Strategy


@dataclass(frozen=True)
class Options:
    """The keywords of `build`."""

    batch: int
    seed: int
    compression: str
    accumulate: int
    microbatches: int


@dataclass(frozen=True)
class Setup:
    """A rank's place in a strategy; `share` is its samples of a step, `waits` its time in communication."""

    workload: Workload
    strategy: Strategy
    layout: Layout
    device: str
    options: Options
    clock: Clock
    waits: Spans
    forward: Spans
    buckets: Buckets
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def share(self) -> int:
        return self.options.batch // self.layout.data_ranks

    @property
    def mean(self) -> bool:
        return self.workload.reduction == "mean"

    @property
    def learning_rate(self) -> float:
        """The workload's, of a summed loss for a sample of the global batch: its gradient grows with that.

        A tutorial takes one step with the sum; many steps would diverge, and be timed on numbers that are
        none. A batch below the workload's own learns no faster, since few random samples diverge sooner.
        """
        samples = max(self.options.batch, self.workload.batch)
        return self.workload.learning_rate / (1 if self.mean else samples)


class Loop(Protocol):
    """The forward and backward passes of a step; to make one a rank needs no other."""

    counts: bool  # whether the losses of this rank are part of the global one

    @property
    def module(self) -> Any:
        """What this rank trains."""

    def join(self, wire: torch.dtype | None) -> None:
        """Meet the ranks that exchange gradients; `wire` is their type on the wire, if not their own."""

    def run(self, inputs: tuple[Any, ...], target: Any) -> list[Any]:
        """Leave the gradients in the parameters; the parts of this rank's loss."""
