"""What the parts of one rank's trainer share: its place, its clock, and what the user asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from hakaru.measure.networks.workload import Workload
from hakaru.measure.training._clock import Clock, Spans
from hakaru.measure.training._groups import Layout
from hakaru.measure.training._strategy import Strategy


@dataclass(frozen=True)
class Options:
    """The keywords of `build`."""

    batch: int
    seed: int
    compression: str
    accumulate: int
    microbatches: int
    memory_bytes: int | None


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


class Loop(Protocol):
    """The forward and backward passes of a step."""

    counts: bool  # whether the losses of this rank are part of the global one

    def parameters(self) -> list[Any]: ...

    def run(self, inputs: tuple[Any, ...], target: Any) -> list[Any]:
        """Leave the gradients in the parameters; the parts of this rank's loss."""


class Buckets:
    """When each bucket of a step was ready and finished, and what it put on the wire."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._ready: list[Any] = []
        self._finished: dict[int, Any] = {}
        self._bytes: list[int] = []

    def begin(self, num_bytes: int) -> int:
        self._bytes.append(num_bytes)
        self._ready.append(self.clock.mark())
        return len(self._ready) - 1

    def end(self, bucket: int) -> None:
        self._finished[bucket] = self.clock.mark()

    def take(self) -> dict[str, Any]:
        """The step's fields, after the clock's `finish`."""
        ready, finished, num_bytes = self._ready, self._finished, self._bytes
        self._ready, self._finished, self._bytes = [], {}, []
        return {
            "ready": tuple(self.clock.seconds(each) for each in ready),
            "finished": tuple(self.clock.seconds(finished[at]) for at in range(len(ready))),
            "bucket_bytes": tuple(num_bytes),
        }
