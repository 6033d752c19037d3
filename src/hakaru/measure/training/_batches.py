"""The batches of a training: this rank's share of each global batch, made before the first step."""

from __future__ import annotations

from typing import Any

from hakaru.measure.networks.workload import Workload, arguments

KEPT = 4  # batches, in turn: making random images would take longer than a card trains on them
STRIDE = 1 << 24  # between the samples of two seeds


class Batches:
    """Shares of `num` samples; the global batches of a seed are the same for any number of ranks."""

    def __init__(
        self, workload: Workload, batch: int, num: int, index: int, seed: int, device: str
    ) -> None:
        self.device = device
        self._at = -1
        self._held = []
        for each in range(KEPT):
            inputs, target = workload.batch_of(num, seed * STRIDE + each * batch + index * num)
            self._held.append(tuple(self._pinned(part) for part in (*arguments(inputs), target)))

    def take(self) -> tuple[tuple[Any, ...], Any]:
        """The next batch on the device: the network's arguments, and the target."""
        self._at = (self._at + 1) % KEPT
        *inputs, target = (each.to(self.device, non_blocking=True) for each in self._held[self._at])
        return tuple(inputs), target

    def rewind(self) -> None:
        """Begin again with the first one."""
        self._at = -1

    def _pinned(self, tensor: Any) -> Any:
        return tensor.pin_memory() if self.device.startswith("cuda") else tensor
