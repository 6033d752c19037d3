"""What takes the batches: a network that trains on them, or nothing, so that only the loader is timed.

Ranks do not exchange gradients here: communication is measured by `scaling`, and a rank that waits for
another's data would count that as compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.measure.networks import load
from hakaru.measure.networks.workload import Workload
from hakaru.measure.storage._samples import NUM_CLASSES, Batch
from hakaru.registry import hint

NONE = "none"
MODELS = ("alexnet", "vgg16", "resnet50", "inception-v3", NONE)
SMALL_IMAGE = 128  # below it networks are a quarter as wide, as tens of samples a second say little
SMALL: dict[str, dict[str, int]] = {
    "alexnet": {"width": 32, "hidden": 512},
    "vgg16": {"width": 16, "hidden": 512},
    "resnet50": {"width": 16},
    "inception-v3": {"width": 8},
}
LEAST_IMAGE = {"inception-v3": 75}


class Consumer(Protocol):
    """Takes one batch; has done all its work with it when it returns."""

    def step(self, batch: Batch) -> None: ...

    def close(self) -> None: ...


class Nothing:
    """Takes batches and lets them go."""

    def step(self, batch: Batch) -> None:
        return

    def close(self) -> None:
        return


class Training:
    """Steps of stochastic gradient descent."""

    def __init__(self, workload: Workload, device: str, seed: int = 0) -> None:
        torch().manual_seed(seed)
        self.workload, self.device = workload, device
        self.module: Any = workload.make().to(device).train()
        self.optimiser = torch().optim.SGD(self.module.parameters(), lr=workload.learning_rate)
        self._wait: Callable[[], None] = lambda: None
        if device != "cpu":
            self._wait = lambda: torch().cuda.synchronize(device)

    def step(self, batch: Batch) -> None:
        inputs = batch.inputs.to(self.device, non_blocking=True)
        target = batch.target.to(self.device, non_blocking=True)
        self.optimiser.zero_grad(set_to_none=True)
        self.workload.loss(self.module(inputs), target).backward()
        self.optimiser.step()
        self._wait()

    def close(self) -> None:
        self.module = self.optimiser = None


def image_of(model: str, image: int) -> int:
    """The size of a side; Inception's layers leave nothing of smaller ones."""
    return max(image, LEAST_IMAGE.get(model, 1))


def sizes_of(model: str, image: int) -> dict[str, int]:
    """What the network is made of; it is said beside the result."""
    return {"image": image_of(model, image)} | (SMALL.get(model, {}) if image < SMALL_IMAGE else {})


def find_consumer(model: str, image: int, device: str) -> Consumer:
    if model == NONE:
        return Nothing()
    if model not in MODELS:
        raise HakaruError(f"model={model!r}: {hint(model, MODELS)}")
    return Training(load(model, **sizes_of(model, image)), device)


def null_batch(image: int, num: int) -> Batch:
    """A batch that is already there, to warm a network up."""
    inputs = torch().zeros(num, 3, image, image)
    target = torch().arange(num) % NUM_CLASSES
    return Batch(inputs, target, tuple(range(num)), 0, 0.0, 0.0, 0)
