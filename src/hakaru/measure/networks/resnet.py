"""ResNet50 (He et al. 2016), with the stride in the 3×3 convolution as in today's frameworks.

Each block begins as its skip alone (Goyal et al. 2017 §5.1). Without that a change of 1e-7 in the weights
moves the loss by 1 % after one step of a small batch, and no two strategies could be compared.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from hakaru.measure.networks.samples import CLASSES, images_of
from hakaru.measure.networks.workload import Workload

BLOCKS = (3, 4, 6, 3)
EXPANSION = 4


def workload(
    image: int = 224,
    width: int = 64,
    blocks: int = 0,
    classes: int = CLASSES,
    groups: int = 0,
    batch: int = 32,
) -> Workload:
    """`blocks` in each of the four stages (0: 3, 4, 6 and 3); `groups` replaces batch norm by group norm."""
    return Workload(
        name="resnet50",
        make=partial(ResNet, width, (blocks,) * 4 if blocks else BLOCKS, classes, groups),
        batch_of=partial(images_of, image, classes),
        loss=functional.cross_entropy,
        reduction="mean",
        learning_rate=0.01,
        batch=batch,
    )


class ResNet(nn.Module):
    """A stem, four stages of bottleneck blocks with skips, and a linear layer."""

    def __init__(self, width: int, blocks: tuple[int, ...], classes: int, groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.norm1 = _norm(width, groups)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(width, width, blocks[0], 1, groups)
        self.layer2 = _stage(width * 4, width * 2, blocks[1], 2, groups)
        self.layer3 = _stage(width * 8, width * 4, blocks[2], 2, groups)
        self.layer4 = _stage(width * 16, width * 8, blocks[3], 2, groups)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(width * 8 * EXPANSION, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(functional.relu(self.norm1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        scores: torch.Tensor = self.classify(self.average(x).flatten(1))
        return scores


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolutions beside a skip, which has a convolution where shapes differ."""

    def __init__(self, channels: int, width: int, stride: int, groups: int) -> None:
        super().__init__()
        wide = width * EXPANSION
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.norm1 = _norm(width, groups)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = _norm(width, groups)
        self.conv3 = nn.Conv2d(width, wide, 1, bias=False)
        self.norm3 = _norm(wide, groups)
        nn.init.zeros_(self.norm3.weight)
        self.skip: nn.Module = nn.Identity()
        if stride > 1 or channels != wide:
            self.skip = nn.Sequential(
                nn.Conv2d(channels, wide, 1, stride=stride, bias=False), _norm(wide, groups)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norm1(self.conv1(x)))
        y = functional.relu(self.norm2(self.conv2(y)))
        return functional.relu(self.norm3(self.conv3(y)) + self.skip(x))


def _stage(channels: int, width: int, blocks: int, stride: int, groups: int) -> nn.Sequential:
    first = Bottleneck(channels, width, stride, groups)
    rest = (Bottleneck(width * EXPANSION, width, 1, groups) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


def _norm(channels: int, groups: int) -> nn.GroupNorm | nn.BatchNorm2d:
    return nn.GroupNorm(groups, channels) if groups else nn.BatchNorm2d(channels)
