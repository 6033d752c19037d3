"""Ranks that train small networks in one process and as automatically cut pipelines."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Pipe, Schedule1F1B, ScheduleGPipe

from hakaru.measure.partition import pipe_of
from hakaru.measure.partition.trace import export, operations
from tests.measure.partition._networks import LongSkip, Masked, Row, SmallResNet, SmallTransformer

SCHEDULES: dict[str, Any] = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
MICRO, NUM = 4, 4  # samples of a micro-batch, micro-batches
RATE = 0.05
# values go from the first stage to the last: two of LongSkip, one without a gradient of Masked
OVER_A_STAGE: dict[type, tuple[str, ...]] = {
    LongSkip: ("tanh_1", "mul"),
    Masked: ("linear_1", "linear_2"),
}


def cases() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    torch.manual_seed(3)
    batch = MICRO * NUM
    return {
        "row": (Row(), torch.randn(batch, 16)),
        "resnet": (SmallResNet(), torch.randn(batch, 3, 8, 8)),
        "transformer": (SmallTransformer(), torch.randint(50, (batch, 8))),
        "skip": (LongSkip(), torch.randn(batch, 16)),
        "mask": (Masked(), torch.randn(batch, 16)),
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
    cuts = OVER_A_STAGE.get(type(module), ()) if stages == 3 else ()
    pipe, document = pipe_of(
        copy.deepcopy(module), (x[:MICRO],), stages, schedule=schedule, microbatches=NUM, cuts=cuts
    )
    rank = dist.get_rank(group)
    stage = pipe.build_stage(rank, torch.device("cpu"), group)
    runner = SCHEDULES[schedule](stage, NUM, loss_fn=loss_of, scale_grads=False)
    found: dict[str, Any] = {"losses": [], "outputs": [], "plan": document, "num": pipe.num_stages}
    if rank == stages - 1:
        found["computed"] = computed(pipe)
        found["planned"] = planned(copy.deepcopy(module), (x[:MICRO],), document["cut_before"])
    for _ in range(2):
        losses: list[torch.Tensor] = []
        if rank == stages - 1:
            found["outputs"].append(runner.step(target=target, losses=losses).detach())
        else:
            runner.step(*((x,) if rank == 0 else ()))
        found["losses"] += [float(each) for each in losses]
        step(list(stage.submod.parameters()))
    return found


def computed(pipe: Pipe) -> list[list[str]]:
    """What each stage computes, in order."""
    return [list(_targets(pipe.get_stage_module(at))) for at in range(pipe.num_stages)]


def _targets(stage: Any) -> Iterator[str]:
    """torch puts a stage's operations into modules again; parts of lists come and go with that."""
    for node in stage.graph.nodes:
        if node.op == "call_module":
            yield from _targets(stage.get_submodule(node.target))
        elif node.op == "call_function" and not is_moved(str(node.target)):
            yield str(node.target)


def planned(
    module: nn.Module, inputs: tuple[torch.Tensor, ...], cut_before: list[str]
) -> list[list[str]]:
    """What each stage should compute: the network's operations, divided before those of the plan."""
    found: list[list[str]] = [[]]
    for node in operations(export(module, inputs)):
        if node.name in cut_before:
            found.append([])
        if not is_moved(str(node.target)):
            found[-1].append(str(node.target))
    return found


def is_moved(target: str) -> bool:
    return any(each in target for each in ("getitem", "arange", "ones", "tril"))


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
        for stages, schedule in ((2, "gpipe"), (3, "1f1b")):
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
        **{key: result[key] for key in ("plan", "num", "computed", "planned")},
    }


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
