"""Random batches, seeded for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hakaru.errors import HakaruError

CLASSES = 1000
TARGET_SEED = 1 << 40  # so that no target repeats an input


def normal(num: int, seed: int, *shape: int) -> torch.Tensor:
    """Samples of a standard normal distribution."""
    return _each(num, seed, lambda source: torch.randn(shape, generator=source))


def smallest(name: str, image: int, least: int) -> None:
    """Refuse images of which pooling would leave nothing."""
    if image < least:
        raise HakaruError(f"{name}: image={image}: expected {least} pixels or more")


def images_of(image: int, classes: int, num: int, seed: int) -> tuple[Any, Any]:
    """Square colour images, and a class for each."""
    labels = _each(
        num, seed + TARGET_SEED, lambda source: torch.randint(classes, (), generator=source)
    )
    return normal(num, seed, 3, image, image), labels


def tokens_of(length: int, words: int, num: int, seed: int) -> tuple[Any, Any]:
    """Texts of random words, and for each word the one after it."""
    text = _each(num, seed, lambda source: torch.randint(words, (length + 1,), generator=source))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def _each(num: int, seed: int, draw: Callable[[torch.Generator], torch.Tensor]) -> torch.Tensor:
    source = torch.Generator()
    return torch.stack([draw(source.manual_seed(seed + each)) for each in range(num)])
