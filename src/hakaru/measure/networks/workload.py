"""What is trained: a network with its batches, its loss and its learning rate.

A sample depends on its seed only: batch_of(n, s) holds the samples of the seeds s … s + n - 1. So ranks that
share a global batch each make their own part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Reduction = Literal["mean", "sum"]


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


def arguments(inputs: Any) -> tuple[Any, ...]:
    """The arguments of the network's forward."""
    return inputs if isinstance(inputs, tuple) else (inputs,)
