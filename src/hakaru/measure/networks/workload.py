"""What is trained: a network with its batches, its loss and its learning rate.

A sample depends on its seed only: batch_of(n, s) holds the samples of the seeds s … s + n - 1. So ranks that
share a global batch each make their own part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from hakaru.measure import context
from hakaru.measure.networks.layers import switch_off_dropout

Reduction = Literal["mean", "sum"]
ROUNDING = 1e-7  # of 32 bits, relative


@dataclass(frozen=True)
class Workload:
    """A network to train; `inputs` is a tensor, or a tuple of them for a forward of several arguments."""

    name: str  # "resnet50", or "package.module:factory"
    make: Callable[[], Any]  # a new nn.Module on the CPU; the caller seeds torch
    batch_of: Callable[[int, int], tuple[Any, Any]]  # (num_samples, seed) -> inputs, target
    loss: Callable[[Any, Any], Any]  # (output, target) -> scalar
    reduction: Reduction  # over the samples of a batch
    learning_rate: float
    batch: int  # default samples a rank and step


def shaken(workload: Workload) -> Workload:
    """The same network with its parameters off by about one rounding.

    How far its losses move is what rounding alone does: some networks amplify it a thousandfold in a step,
    and then no strategy can agree with a single process any better.
    """
    return replace(workload, make=partial(_shake, workload.make))


def without_dropout(workload: Workload) -> Workload:
    """The same network with nothing that draws at random, so that losses can be compared.

    Dropout is switched off in its layers, and where a module holds the share that its forward drops by.
    """
    return replace(workload, make=partial(_steady, workload.make))


def arguments(inputs: Any) -> tuple[Any, ...]:
    """The arguments of the network's forward."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def _shake(make: Callable[[], Any]) -> Any:
    torch, module = context.torch(), make()
    source = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in module.parameters():
            each.mul_(1 + ROUNDING * (torch.rand(each.shape, generator=source) * 2 - 1))
    return module


def _steady(make: Callable[[], Any]) -> Any:
    module = make()
    switch_off_dropout(module)
    return module
