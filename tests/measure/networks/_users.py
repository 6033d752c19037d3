"""Factories as a user writes them, right and wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

NUMBER = 3


class Two(nn.Module):
    """A forward of two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * scale


class Pair(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x, x


def plain() -> Any:
    return nn.Linear(4, 3), torch.randn(6, 4)


def two_arguments() -> Any:
    return Two(), (torch.randn(6, 4), torch.rand(6, 1))


def classes() -> Any:
    return nn.Linear(4, 3), torch.randn(6, 4), torch.arange(6) % 3, functional.cross_entropy


def summed() -> Any:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(output, target, reduction="sum")

    return nn.Linear(4, 3), torch.randn(6, 4), torch.arange(6) % 3, loss


def squared_sum() -> Any:
    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output * target).sum() ** 2

    return nn.Linear(4, 3), torch.randn(6, 4), torch.ones(6, 3), loss


def raises() -> Any:
    raise RuntimeError("no weights here")


def only_module() -> Any:
    return nn.Linear(4, 3)


def three() -> Any:
    return nn.Linear(4, 3), torch.randn(6, 4), torch.randn(6, 3)


def no_module() -> Any:
    return "net", torch.randn(6, 4)


def no_tensor() -> Any:
    return nn.Linear(4, 3), [1.0, 2.0]


def uneven() -> Any:
    return Two(), (torch.randn(6, 4), torch.rand(5, 1))


def wrong_shape() -> Any:
    return nn.Linear(4, 3), torch.randn(6, 5)


def two_outputs() -> Any:
    return Pair(), torch.randn(6, 4)


def no_loss() -> Any:
    return nn.Linear(4, 3), torch.randn(6, 4), torch.randn(6, 3), "mean"
