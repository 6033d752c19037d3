"""Pipelines: each rank holds a stage of the automatically cut network, and micro-batches flow through them.

GPipe (Huang et al. 2019) runs all forwards and then all backwards; 1F1B (PipeDream, Narayanan et al. 2019)
takes turns as soon as it can, and keeps fewer activations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

from hakaru.measure._base import NotApplicable
from hakaru.measure.networks.workload import arguments
from hakaru.measure.partition import pipe_of
from hakaru.measure.training._ddp import replicate
from hakaru.measure.training._marks import Spans
from hakaru.measure.training._setup import Setup

SCHEDULES: dict[str, Any] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
PER_STAGE = 4  # micro-batches a stage, from which on GPipe finds the bubble small
MOST_PER_STAGE = 8


def micro_batch_choices(batch: int, stages: int) -> list[int]:
    """Into how many micro-batches a pipeline's samples may be cut, the likeliest best first."""
    most = MOST_PER_STAGE * stages
    fitting = [num for num in range(stages, min(batch, most) + 1) if batch % num == 0]
    return sorted(
        fitting, key=lambda num: (num > PER_STAGE * stages, abs(num - PER_STAGE * stages))
    )


class PipelineLoop:
    """This rank's stage, and the schedule that drives it."""

    def __init__(self, setup: Setup, module: Any, schedule: str) -> None:
        self.setup = setup
        num_stages = setup.layout.sizes[schedule]
        stage_index = setup.layout.place[schedule]
        self.counts = stage_index == num_stages - 1
        self.is_first = stage_index == 0
        num = micro_batches(setup, num_stages)
        inputs, _ = setup.workload.batch_of(setup.share // num, setup.options.seed)
        pipe, plan = _cut(setup, module, arguments(inputs), num_stages, schedule, num)
        setup.facts["plan"] = plan
        group = setup.layout.groups[schedule]
        self.stage = pipe.build_stage(stage_index, setup.device, group)
        self.stage.stage_index_to_group_rank = {  # groups sort their ranks
            stage: dist.get_group_rank(group, rank)
            for stage, rank in enumerate(setup.layout.lines[schedule])
        }
        self.stage.forward_one_chunk = self._computing(self.stage.forward_one_chunk, setup.forward)
        self.stage.backward_one_chunk = self._computing(self.stage.backward_one_chunk, None)
        weight = 1 / num if setup.mean else 1.0

        def loss(output: Any, target: Any) -> Any:
            return setup.workload.loss(output, target) * weight

        self.schedule = SCHEDULES[schedule](
            self.stage,
            num,
            loss_fn=self._computing(loss, setup.forward),
            scale_grads=False,  # the weight has done it
        )
        signature = inspect.signature(self.schedule.step)
        self._options = (
            {"return_outputs": False} if "return_outputs" in signature.parameters else {}
        )

    def join(self, wire: torch.dtype | None) -> None:
        if "ddp" not in self.setup.layout.groups:
            return
        graph = self.stage.submod.graph
        self.stage.submod = replicate(self.setup, self.stage.submod, wire)
        self.stage.submod.graph = graph  # where the stage reads what it receives

    @property
    def module(self) -> Any:
        return self.stage.submod

    def run(self, inputs: tuple[Any, ...], target: Any) -> list[Any]:
        """All that is not computing in this time is waiting for other stages."""
        losses: list[Any] = []
        given: dict[str, Any] = {"target": target, "losses": losses} if self.counts else {}
        with self.setup.waits.timed():
            self.schedule.step(*(inputs if self.is_first else ()), **given, **self._options)
        return [each.detach() for each in losses]

    def _computing(self, call: Callable[..., Any], phase: Spans | None) -> Callable[..., Any]:
        """The call, with its time taken off the waiting and added to the phase."""
        clock = self.setup.clock

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = clock.mark()
            found = call(*args, **kwargs)
            end = clock.mark()
            self.setup.waits.add(end, begin)  # backwards: it counts as less than nothing
            if phase:
                phase.add(begin, end)
            return found

        return timed


def micro_batches(setup: Setup, num_stages: int) -> int:
    """The number asked for if it fits, else the likeliest best."""
    choices = micro_batch_choices(setup.share, num_stages)
    asked = setup.options.microbatches
    if not asked and choices:
        return choices[0]
    if not asked:
        raise NotApplicable(
            f"{setup.share} samples do not divide into {num_stages} to {MOST_PER_STAGE * num_stages}"
            f" micro-batches for {num_stages} stages; choose another batch"
        )
    if setup.share % asked:
        raise NotApplicable(f"{setup.share} samples do not divide into {asked} micro-batches")
    if asked < num_stages:
        raise NotApplicable(
            f"{num_stages} stages need {num_stages} micro-batches or more, not {asked}"
        )
    return asked


def _cut(
    setup: Setup, module: Any, inputs: tuple[Any, ...], num_stages: int, schedule: str, num: int
) -> tuple[Any, dict[str, Any]]:
    return pipe_of(
        module,
        inputs,
        num_stages,
        schedule=schedule,
        microbatches=num,
        replicas=setup.layout.data_ranks,
        device=setup.device,
        name=setup.workload.name,
    )
