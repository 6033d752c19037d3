"""Ranks that train small networks in one process and as automatically cut pipelines."""

from __future__ import annotations

import copy
import json
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

from hakaru.measure.partition import pipe_of
from tests.measure.partition._networks import LongSkip, Row, SmallResNet, SmallTransformer

SCHEDULES: dict[str, Any] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
MICRO, NUM = 4, 4  # samples of a micro-batch, micro-batches
RATE = 0.05


def cases() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    torch.manual_seed(3)
    batch = MICRO * NUM
    return {
        "row": (Row(), torch.randn(batch, 16)),
        "resnet": (SmallResNet(), torch.randn(batch, 3, 8, 8)),
        "transformer": (SmallTransformer(), torch.randint(50, (batch, 8))),
        "skip": (LongSkip(), torch.randn(batch, 16)),
    }


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output * target).sum()


def alone(module: nn.Module, x: torch.Tensor, target: torch.Tensor) -> dict[str, Any]:
    """Two steps of one process over the same micro-batches."""
    module = copy.deepcopy(module).train()
    found: dict[str, Any] = {"losses": [], "outputs": []}
    for _ in range(2):
        pairs = zip(x.split(MICRO), target.split(MICRO), strict=True)
        outputs = []
        for part, wanted in pairs:
            output = module(part)
            loss = loss_of(output, wanted)
            loss.backward()
            found["losses"].append(float(loss))
            outputs.append(output.detach())
        found["outputs"].append(torch.cat(outputs))
        step(list(module.parameters()))
    return found


def piped(
    module: nn.Module, x: torch.Tensor, target: torch.Tensor, stages: int, schedule: str, group: Any
) -> dict[str, Any]:
    pipe, document = pipe_of(
        copy.deepcopy(module), (x[:MICRO],), stages, schedule=schedule, microbatches=NUM
    )
    rank = dist.get_rank(group)
    stage = pipe.build_stage(rank, torch.device("cpu"), group)
    runner = SCHEDULES[schedule](stage, NUM, loss_fn=loss_of, scale_grads=False)
    found: dict[str, Any] = {"losses": [], "outputs": [], "plan": document, "num": pipe.num_stages}
    found["operations"] = operations_of(pipe, stages)
    for _ in range(2):
        losses: list[torch.Tensor] = []
        if rank == stages - 1:
            found["outputs"].append(runner.step(target=target, losses=losses).detach())
        else:
            runner.step(*((x,) if rank == 0 else ()))
        found["losses"] += [float(each) for each in losses]
        step(list(stage.submod.parameters()))
    return found


def operations_of(pipe: Any, stages: int) -> list[list[str]]:
    """The names of what each stage computes."""
    return [
        [node.name for node in pipe.get_stage_module(at).graph.nodes if node.op == "call_function"]
        for at in range(stages)
    ]


def step(parameters: list[nn.Parameter]) -> None:
    with torch.no_grad():
        for each in parameters:
            if each.grad is not None:
                each -= RATE / 100 * each.grad
                each.grad = None


def main(rank: int, world: int, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    groups = {stages: dist.new_group(list(range(stages))) for stages in (2, 3)}
    found = {}
    for name, (module, x) in cases().items():
        with torch.no_grad():
            target = torch.randn_like(copy.deepcopy(module)(x))
        known = alone(module, x, target)
        for stages, schedule in ((2, "gpipe"), (3, "1f1b"), (3, "gpipe")):
            if rank >= stages:
                continue
            result = piped(module, x, target, stages, schedule, groups[stages])
            if rank == stages - 1:
                found[f"{name}-{stages}-{schedule}"] = compared(known, result)
    dist.barrier()
    dist.destroy_process_group()
    if found:
        print(json.dumps(found))


def compared(known: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    gaps = [
        float((a - b).abs().max() / a.abs().max())
        for a, b in zip(known["outputs"], result["outputs"], strict=True)
    ]
    return {
        "losses": [known["losses"], result["losses"]],
        "output_gap": max(gaps),
        **{key: result[key] for key in ("plan", "num", "operations")},
    }


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
