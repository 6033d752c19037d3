"""Inception-v3 (Szegedy et al. 2016) without its auxiliary classifier."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from hakaru.measure.networks.samples import CLASSES, images_of, smallest
from hakaru.measure.networks.workload import Workload

FULL_WIDTH = 32
SMALLEST_IMAGE = 75


def workload(
    image: int = 299,
    width: int = FULL_WIDTH,
    classes: int = CLASSES,
    dropout: float = 0.5,
    batch: int = 32,
) -> Workload:
    """`width` channels in the first layer (full size: 32); images from 75 on."""
    smallest("inception-v3", image, SMALLEST_IMAGE)
    return Workload(
        name="inception-v3",
        make=partial(Inception, width / FULL_WIDTH, classes, dropout),
        batch_of=partial(images_of, image, classes),
        loss=functional.cross_entropy,
        reduction="mean",
        learning_rate=0.01,
        batch=batch,
    )


class Convolution(nn.Sequential):
    """A convolution, batch norm and a rectifier."""

    def __init__(
        self,
        channels: int,
        outputs: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        padding: int | tuple[int, int] = 0,
    ) -> None:
        super().__init__(
            nn.Conv2d(channels, outputs, kernel, stride=stride, padding=padding, bias=False),
            nn.BatchNorm2d(outputs, eps=0.001),
            nn.ReLU(),
        )


class Branches(nn.Module):
    """Branches beside one another, their channels put together."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([each(x) for each in self.branches], 1)


class Inception(nn.Module):
    """A stem of convolutions, eleven blocks of branches, and a linear layer."""

    def __init__(self, scale: float, classes: int, dropout: float) -> None:
        super().__init__()
        n = partial(_channels, scale)
        self.stem = nn.Sequential(
            Convolution(3, n(32), 3, stride=2),
            Convolution(n(32), n(32), 3),
            Convolution(n(32), n(64), 3, padding=1),
            nn.MaxPool2d(3, stride=2),
            Convolution(n(64), n(80), 1),
            Convolution(n(80), n(192), 3),
            nn.MaxPool2d(3, stride=2),
        )
        self.blocks = nn.Sequential(*_blocks(scale))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(dropout)
        wide = 2 * n(384) * 2 + n(320) + n(192)
        self.classify = nn.Linear(wide, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.blocks(self.stem(x))).flatten(1)
        scores: torch.Tensor = self.classify(self.dropout(x))
        return scores


def _channels(scale: float, channels: int) -> int:
    return max(1, round(channels * scale))


def _blocks(scale: float) -> list[Branches]:
    """The blocks of Fig. 5, 6 and 7 of the paper, with grid reductions between them."""
    n = partial(_channels, scale)
    channels = n(192)
    found: list[Branches] = []
    for pooled in (32, 64, 64):
        found.append(_small(n, channels, n(pooled)))
        channels = n(64) + n(64) + n(96) + n(pooled)
    found.append(_first_reduction(n, channels))
    channels += n(384) + n(96)
    for inner in (128, 160, 160, 192):
        found.append(_factored(n, channels, n(inner)))
        channels = 4 * n(192)
    found.append(_second_reduction(n, channels))
    channels += n(320) + n(192)
    for _ in range(2):
        found.append(_wide(n, channels))
        channels = 4 * n(384) + n(320) + n(192)
    return found


def _small(n: partial[int], channels: int, pooled: int) -> Branches:
    return Branches(
        Convolution(channels, n(64), 1),
        nn.Sequential(Convolution(channels, n(48), 1), Convolution(n(48), n(64), 5, padding=2)),
        nn.Sequential(
            Convolution(channels, n(64), 1),
            Convolution(n(64), n(96), 3, padding=1),
            Convolution(n(96), n(96), 3, padding=1),
        ),
        _pooled(channels, pooled),
    )


def _first_reduction(n: partial[int], channels: int) -> Branches:
    return Branches(
        Convolution(channels, n(384), 3, stride=2),
        nn.Sequential(
            Convolution(channels, n(64), 1),
            Convolution(n(64), n(96), 3, padding=1),
            Convolution(n(96), n(96), 3, stride=2),
        ),
        nn.MaxPool2d(3, stride=2),
    )


def _factored(n: partial[int], channels: int, inner: int) -> Branches:
    out = n(192)
    return Branches(
        Convolution(channels, out, 1),
        nn.Sequential(Convolution(channels, inner, 1), _row(inner, inner), _column(inner, out)),
        nn.Sequential(
            Convolution(channels, inner, 1),
            _column(inner, inner),
            _row(inner, inner),
            _column(inner, inner),
            _row(inner, out),
        ),
        _pooled(channels, out),
    )


def _second_reduction(n: partial[int], channels: int) -> Branches:
    inner = n(192)
    return Branches(
        nn.Sequential(Convolution(channels, inner, 1), Convolution(inner, n(320), 3, stride=2)),
        nn.Sequential(
            Convolution(channels, inner, 1),
            _row(inner, inner),
            _column(inner, inner),
            Convolution(inner, inner, 3, stride=2),
        ),
        nn.MaxPool2d(3, stride=2),
    )


def _wide(n: partial[int], channels: int) -> Branches:
    out = n(384)
    return Branches(
        Convolution(channels, n(320), 1),
        nn.Sequential(Convolution(channels, out, 1), _split(out)),
        nn.Sequential(
            Convolution(channels, n(448), 1), Convolution(n(448), out, 3, padding=1), _split(out)
        ),
        _pooled(channels, n(192)),
    )


def _split(channels: int) -> Branches:
    """A 3×3 convolution as a row and a column side by side."""
    return Branches(
        Convolution(channels, channels, (1, 3), padding=(0, 1)),
        Convolution(channels, channels, (3, 1), padding=(1, 0)),
    )


def _row(channels: int, outputs: int) -> Convolution:
    return Convolution(channels, outputs, (1, 7), padding=(0, 3))


def _column(channels: int, outputs: int) -> Convolution:
    return Convolution(channels, outputs, (7, 1), padding=(3, 0))


def _pooled(channels: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), Convolution(channels, outputs, 1))
