"""The network of RaNNC's tutorial: square linear layers in turn, without activations between them."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from hakaru.measure.networks.samples import TARGET_SEED, normal
from hakaru.measure.networks.workload import Workload


class Net(nn.Module):
    """A list of linear layers, each applied to what the one before gave."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def workload(hidden: int = 512, layers: int = 10, batch: int = 64) -> Workload:
    """The tutorial's sizes: batch 64, hidden 512, 10 layers, SGD with 0.01, `out.backward(target)`."""
    return Workload(
        name="mlp",
        make=partial(Net, hidden, layers),
        batch_of=partial(_batch, hidden),
        loss=weighted_sum,
        reduction="sum",
        learning_rate=0.01,
        batch=batch,
    )


def weighted_sum(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The loss whose gradient by the output is the target: what `out.backward(target)` follows."""
    return (output * target).sum()


def _batch(hidden: int, num: int, seed: int) -> tuple[Any, Any]:
    return normal(num, seed, hidden), normal(num, seed + TARGET_SEED, hidden)
