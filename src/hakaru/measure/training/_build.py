"""Put a strategy together: groups, the network as the strategy changes it, batches and the optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable
from hakaru.measure.networks.layers import dropout_of
from hakaru.measure.networks.workload import Workload
from hakaru.measure.training._batches import Batches
from hakaru.measure.training._chunks import ChunkLoop
from hakaru.measure.training._clock import clock_of
from hakaru.measure.training._groups import Layout, lay_out, sum_over
from hakaru.measure.training._marks import Buckets, Spans, StepMarks
from hakaru.measure.training._setup import Loop, Options, Setup
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._times import StepTimes
from hakaru.measure.training._trainer import Trainer
from hakaru.measure.training._weights import Weights

Made = TypeVar("Made")


def build_trainer(
    workload: Workload,
    strategy: Strategy,
    ranks: Sequence[int],
    me: int,
    device: str,
    options: Options,
) -> Trainer:
    """The trainer of this rank; where any rank cannot build it, all of them say why."""
    if problem := _problem(strategy, len(ranks), options):
        raise NotApplicable(problem)
    layout = lay_out(strategy, ranks, me, device)
    if layout.idle:
        _together(layout, lambda: None)  # the others' module
        return _together(layout, lambda: IdleTrainer(layout))
    clock = clock_of(device)
    setup = Setup(
        workload, strategy, layout, device, options, clock, Spans(clock), Spans(clock),
        Buckets(clock), {"strategy": str(strategy), "sizes": layout.sizes},
    )  # fmt: skip
    torch.manual_seed(options.seed)
    # the user's code may fail on one rank, and must not leave the others waiting in a collective
    module = _together(layout, lambda: workload.make().train())
    return _together(layout, lambda: RankTrainer(setup, module))


def _together(layout: Layout, make: Callable[[], Made]) -> Made:
    """What this rank makes, if no rank of the world fails; else all raise the first reason, or their own."""
    made, error = None, None
    try:
        made = make()
    except Exception as found:
        error = found
    try:
        _agree(error)
    except Exception:
        layout.close()
        raise
    return cast("Made", made)


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


def _agree(error: Exception | None) -> None:
    """Raise this rank's error, or another's."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        if error:
            raise error
        return
    said: list[Any] = [None] * dist.get_world_size()
    own = (isinstance(error, NotApplicable), str(error)) if error else None
    dist.all_gather_object(said, own)
    if error:
        raise error
    failed = [(rank, *each) for rank, each in enumerate(said) if each]
    if not failed:
        return
    rank, _, reason = failed[0]
    if all(not_applicable for _, not_applicable, _ in failed):
        raise NotApplicable(reason)
    raise HakaruError(f"rank {rank} cannot train: {reason}")


class IdleTrainer:
    """A rank outside of the training."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.facts: dict[str, Any] = {}

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

    def __init__(self, setup: Setup, module: Any) -> None:
        self.setup, self.facts = setup, setup.facts
        options, layout = setup.options, setup.layout
        self.facts["dropout"] = dropout_of(module)
        self.loop = _loop(setup, module)
        self.optimiser = torch.optim.SGD(self.loop.module.parameters(), lr=setup.learning_rate)
        self.weights = Weights(self.loop.module, setup.device)
        self.batches = Batches(
            setup.workload,
            options.batch,
            setup.share,
            layout.data_index,
            options.seed,
            setup.device,
        )
        self._losses: list[Any] = []
        self._steps: list[StepMarks] = []
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
        total = sum_over(self.setup.layout.everyone, own, self.setup.device)
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
