"""Networks for tests that steer where a rank loses its time; workers import them by name."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from torch import nn

DELAY = "HAKARU_TEST_DELAY"  # seconds that this process sleeps in each backward pass
LAYER = "HAKARU_TEST_LAYER"  # before the gradients of this layer
WIDTH = 1024


class _Sleep(torch.autograd.Function):
    """Nothing in forward; in backward it sleeps before it hands the gradient on."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        time.sleep(ctx.seconds)
        return grads[0], None


class Delayed(nn.Module):
    """Linear layers; this process may sleep in the backward pass, after the layers behind `layer`."""

    def __init__(self, width: int, num: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(num))
        self.seconds = float(os.environ.get(DELAY, "0"))
        self.at = int(os.environ.get(LAYER, "0"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for at, layer in enumerate(self.layers):
            x = layer(x)
            if at == self.at and self.seconds:
                x = _Sleep.apply(x, self.seconds)
        return x


def small() -> Any:
    """1 MiB of gradients: communication is short beside a delay."""
    return Delayed(256, 4), torch.randn(8, 256)


def large() -> Any:
    """48 MiB of gradients, in several buckets."""
    return Delayed(WIDTH, 12), torch.randn(4, WIDTH)


def flat() -> Any:
    """4 MiB of gradients and next to no computing: all of a step is communication."""
    return Delayed(WIDTH, 1), torch.randn(2, WIDTH)
