"""Put a strategy together: groups, the network as the strategy changes it, batches and the optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from hakaru.measure._base import NotApplicable
from hakaru.measure.networks.layers import dropout_of
from hakaru.measure.networks.workload import Workload
from hakaru.measure.training._agree import agreed
from hakaru.measure.training._batches import Batches
from hakaru.measure.training._chunks import ChunkLoop
from hakaru.measure.training._clock import clock_of
from hakaru.measure.training._ddp import wire_type
from hakaru.measure.training._groups import Layout, lay_out, sum_over
from hakaru.measure.training._marks import Buckets, Spans, StepMarks
from hakaru.measure.training._setup import Loop, Options, Setup
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._times import StepTimes
from hakaru.measure.training._trainer import Trainer
from hakaru.measure.training._weights import Weights

PARTS = 3


def build_trainer(
    workload: Workload,
    strategy: Strategy,
    ranks: Sequence[int],
    me: int,
    device: str,
    options: Options,
    control: Any,
) -> Trainer:
    """The trainer of this rank; where any rank cannot build it, all of them say why."""
    if problem := _problem(strategy, len(ranks), options):
        raise NotApplicable(problem)
    layout = lay_out(strategy, ranks, me, device)
    trainer: IdleTrainer | RankTrainer = IdleTrainer(layout)
    if not layout.idle:
        clock = clock_of(device)
        spans = Spans(clock), Spans(clock), Buckets(clock)
        trainer = RankTrainer(Setup(workload, strategy, layout, device, options, clock, *spans))
    try:
        for part in trainer.parts():
            agreed(part, not layout.idle, control)
    except Exception:
        layout.close()
        raise
    return trainer


def _problem(strategy: Strategy, world: int, options: Options) -> str | None:
    """Why the strategy does not fit the ranks or the options, or None."""
    if problem := strategy.fits(world):
        return problem
    shares = strategy.data_ranks(world) * options.accumulate
    if options.accumulate > 1 and strategy.pipeline:
        return f"{strategy} accumulates over its micro-batches; set microbatches, not accumulate"
    if options.batch % shares:
        return f"a batch of {options.batch} samples does not divide into {shares} equal parts"
    if options.compression != "none" and world > 1 and strategy.data_ranks(world) == 1:
        return f"{strategy} exchanges no gradients that {options.compression} could compress"
    return None


class IdleTrainer:
    """A rank outside of the training."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.facts: dict[str, Any] = {}

    def parts(self) -> Sequence[Callable[[], None]]:
        """It builds nothing, but agrees with those that do."""
        return [lambda: None] * PARTS

    def step(self) -> None:
        return

    def times(self) -> list[StepTimes]:
        return []

    def reset(self) -> None:
        return

    def loss(self) -> float:
        return math.nan

    def close(self) -> None:
        self.layout.close()


class RankTrainer:
    """A rank of the training; ranks that share samples draw the same dropout."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.facts = setup, setup.facts
        self._wire: torch.dtype | None = None
        self._losses: list[Any] = []
        self._steps: list[StepMarks] = []

    def parts(self) -> Sequence[Callable[[], None]]:
        """What is to be done to build it, so divided that no rank communicates after another has failed."""
        return [self._prepare, self._ask, self._join]

    def _prepare(self) -> None:
        """All that a rank does by itself."""
        setup, options = self.setup, self.setup.options
        torch.manual_seed(options.seed)
        module = setup.workload.make().train()
        self.facts["dropout"] = dropout_of(module)
        self.loop = _loop(setup, module)
        index = setup.layout.data_index
        self.batches = Batches(
            setup.workload, options.batch, setup.share, index, options.seed, setup.device
        )

    def _ask(self) -> None:
        setup = self.setup
        groups = setup.layout.groups
        if group := groups.get("fsdp") or groups.get("ddp"):
            self._wire = wire_type(setup.options.compression, group, setup.device)

    def _join(self) -> None:
        self.loop.join(self._wire)
        module = self.loop.module
        self.optimiser = torch.optim.SGD(module.parameters(), lr=self.setup.learning_rate)
        self.weights = Weights(module, self.setup.device)
        self._seed()

    def step(self) -> None:
        setup, clock = self.setup, self.setup.clock
        if not self._steps:
            clock.start()
        begin = clock.mark()
        inputs, target = self.batches.take()
        data = clock.mark()
        self._losses = self.loop.run(inputs, target)
        backward = clock.mark()
        self.optimiser.step()
        self.optimiser.zero_grad()
        spans = setup.forward.take(), setup.waits.take(), setup.buckets.take()
        self._steps.append(StepMarks(begin, data, backward, clock.mark(), *spans))

    def times(self) -> list[StepTimes]:
        steps, self._steps = self._steps, []
        self.setup.clock.finish()
        return [each.times(self.setup.clock) for each in steps]

    def reset(self) -> None:
        """Plain gradient descent keeps nothing but the weights."""
        self.weights.restore()
        self.batches.rewind()
        self._seed()
        self._steps = []
        self.setup.clock.finish()

    def loss(self) -> float:
        own = sum(float(each) for each in self._losses) if self.loop.counts else 0.0
        total = sum_over(self.setup.layout.control, own)
        return total / self.setup.layout.data_ranks if self.setup.mean else total

    def close(self) -> None:
        self.setup.layout.close()

    def _seed(self) -> None:
        """What dropout draws, unlike for the ranks that have other samples."""
        torch.manual_seed(self.setup.options.seed + self.setup.layout.data_index)


def _loop(setup: Setup, module: Any) -> Loop:
    schedule = setup.strategy.pipeline
    if schedule is None or setup.layout.sizes[schedule] == 1:
        return ChunkLoop(setup, module)
    from hakaru.measure.training._pipeline import PipelineLoop

    return PipelineLoop(setup, module, schedule)
