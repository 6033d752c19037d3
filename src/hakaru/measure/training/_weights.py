"""The weights that a training began with, kept in the host's memory so that it can begin again."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Weights:
    """Parameters and buffers of a module: of a sharded one, or of a stage, those that this rank has."""

    def __init__(self, module: nn.Module, device: str) -> None:
        self._tensors = [*module.parameters(), *module.buffers()]
        on_card = device.startswith("cuda")
        with torch.no_grad():
            copies = [_own(each).to("cpu", copy=True) for each in self._tensors]
        self._kept = [each.pin_memory() for each in copies] if on_card else copies

    @torch.no_grad()
    def restore(self) -> None:
        for each, kept in zip(self._tensors, self._kept, strict=True):
            _own(each).copy_(kept, non_blocking=True)


def _own(tensor: Any) -> torch.Tensor:
    """The part of it that this rank has, in its own memory."""
    held: torch.Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return held
