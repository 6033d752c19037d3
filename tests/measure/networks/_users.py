"""Factories as a user writes them, right and wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

NUMBER = 3
CALLED: list[bool] = []


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


class Odd(nn.Module):
    """What an automatic strategy may stumble over: layers used twice, tied weights, groups, odd channels."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 8, 3, padding=1, groups=2),
            nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
            nn.Conv2d(8, 6, 3, stride=2, dilation=2, bias=False),
            nn.Conv2d(6, 5, 1),
        )
        self.twice = nn.Linear(5, 5)
        self.shared = nn.Linear(8, 8)
        self.widen = nn.Sequential(
            nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), self.shared, nn.ReLU(), self.shared
        )
        self.tied = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.tied[1].weight = self.tied[0].weight
        self.rows = nn.ModuleList([nn.ModuleList([nn.Linear(8, 8)])])
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.image(x).mean((2, 3))
        x = self.widen(self.twice(torch.relu(self.twice(x)))).unsqueeze(1)
        x = self.tied[1](torch.tanh(self.tied[0](x)))
        return x + self.attend(x, self.rows[0][0](x), x, need_weights=False)[0]


def odd() -> Any:
    return Odd(), torch.randn(8, 3, 12, 12)


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


def fails_on_rank_2() -> Any:
    """The second time, when the module for training is made."""
    CALLED.append(True)
    if len(CALLED) > 1 and torch.distributed.get_rank() == 2:
        raise RuntimeError("no weights on this disk")
    return plain()


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
