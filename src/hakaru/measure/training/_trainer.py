"""One training step at a time under any strategy, with its times and its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from hakaru.measure.networks.workload import Workload
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._times import StepTimes

Compression = Literal["none", "fp16", "bf16"]


class Trainer(Protocol):
    """A network in training on this rank; the ranks of a group call it together."""

    facts: dict[str, Any]

    def step(self) -> None:
        """Get the batch, forward, backward, optimiser; a card's host does not wait for it."""

    def times(self) -> list[StepTimes]:
        """Of all steps since the last call or `reset`, after waiting for the device; none on idle ranks."""

    def reset(self) -> None:
        """Begin again: weights, batches and dropout are those of the first step, and no times are kept.

        Each rank does it by itself; the device has finished when it returns.
        """

    def loss(self) -> float:
        """Of the last step, over the whole global batch; the same on all ranks, not a number on idle ones."""

    def close(self) -> None: ...


def build(
    workload: Workload,
    strategy: Strategy,
    ranks: Sequence[int],
    me: int,
    device: str,
    *,
    batch: int,
    seed: int,
    compression: Compression = "none",
    accumulate: int = 1,
    microbatches: int = 0,
    control: Any = None,
) -> Trainer:
    """A trainer on `ranks`; every rank of the world calls this together, those outside get an idle one.

    `control` is a group of the world for messages that wait in no card's queue; default: the world's own.
    If a rank cannot build it, all raise HakaruError; NotApplicable if the strategy does not apply.
    """
    from hakaru.measure.training._build import build_trainer
    from hakaru.measure.training._setup import Options

    options = Options(batch, seed, compression, accumulate, microbatches)
    return build_trainer(workload, strategy, ranks, me, device, options, control)
