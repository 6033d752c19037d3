"""AlexNet in its form for one GPU (Krizhevsky 2014)."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from hakaru.measure.networks.samples import CLASSES, images_of, smallest
from hakaru.measure.networks.vgg import classifier
from hakaru.measure.networks.workload import Workload

POOLED = 6
SMALLEST_IMAGE = 63


def workload(
    image: int = 224,
    width: int = 64,
    hidden: int = 4096,
    classes: int = CLASSES,
    dropout: float = 0.5,
    batch: int = 64,
) -> Workload:
    """`width` channels in the first layer, `hidden` numbers between the linear layers; images from 64 on."""
    smallest("alexnet", image, SMALLEST_IMAGE)
    return Workload(
        name="alexnet",
        make=partial(AlexNet, width, hidden, classes, dropout),
        batch_of=partial(images_of, image, classes),
        loss=functional.cross_entropy,
        reduction="mean",
        learning_rate=0.01,
        batch=batch,
    )


class AlexNet(nn.Module):
    """Five convolutions and three linear layers."""

    def __init__(self, width: int, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 11, stride=4, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(width, width * 3, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(width * 3, width * 6, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width * 6, width * 4, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width * 4, width * 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2),
        )
        self.pool = nn.AdaptiveAvgPool2d(POOLED)
        self.classify = classifier(width * 4 * POOLED**2, hidden, classes, dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.classify(self.pool(self.features(x)).flatten(1))
        return scores
