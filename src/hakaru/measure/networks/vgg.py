"""VGG16 (Simonyan and Zisserman 2015, configuration D)."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from hakaru.measure.networks.samples import CLASSES, images_of, smallest
from hakaru.measure.networks.workload import Workload

STAGES = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))  # channels in widths, convolutions
POOLED = 7
SMALLEST_IMAGE = 32


def workload(
    image: int = 224,
    width: int = 64,
    hidden: int = 4096,
    classes: int = CLASSES,
    dropout: float = 0.5,
    batch: int = 32,
) -> Workload:
    """`width` channels in the first stage and `hidden` numbers between the linear layers."""
    smallest("vgg16", image, SMALLEST_IMAGE)
    return Workload(
        name="vgg16",
        make=partial(VGG, width, hidden, classes, dropout),
        batch_of=partial(images_of, image, classes),
        loss=functional.cross_entropy,
        reduction="mean",
        learning_rate=0.01,
        batch=batch,
    )


class VGG(nn.Module):
    """Thirteen 3×3 convolutions and three linear layers."""

    def __init__(self, width: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for widths, convolutions in STAGES:
            for _ in range(convolutions):
                layers += [nn.Conv2d(channels, width * widths, 3, padding=1), nn.ReLU()]
                channels = width * widths
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(POOLED)
        self.classify = classifier(channels * POOLED**2, hidden, classes, dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.classify(self.pool(self.features(x)).flatten(1))
        return scores


def classifier(channels: int, hidden: int, classes: int, dropout: float) -> nn.Sequential:
    """Three linear layers with dropout after the first two."""
    return nn.Sequential(
        nn.Linear(channels, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, classes),
    )
