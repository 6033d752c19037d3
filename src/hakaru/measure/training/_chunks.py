"""A step in which every rank runs the whole network, or its share of each layer, on its chunks of samples."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from hakaru.measure.training._ddp import replicate
from hakaru.measure.training._setup import Setup


class ChunkLoop:
    """Forward and backward over the parts of this rank's share of the batch, one after the other."""

    def __init__(self, setup: Setup, module: Any) -> None:
        self.setup = setup
        self.counts = setup.layout.place.get("tensor", 0) == 0
        self.num = setup.options.accumulate
        self.weight = 1 / self.num if setup.mean else 1.0
        self.module = self._placed(module)

    def run(self, inputs: tuple[Any, ...], target: Any) -> list[Any]:
        chunks = [each.chunk(self.num) for each in (*inputs, target)]
        losses = []
        with self._around():
            for at, (*part, wanted) in enumerate(zip(*chunks, strict=True)):
                with self._exchange(at == self.num - 1):
                    with self.setup.forward.timed():
                        output = self.module(*part)
                        loss = self.setup.workload.loss(output, wanted) * self.weight
                    loss.backward()
                losses.append(loss.detach())
        return losses

    def join(self, wire: torch.dtype | None) -> None:
        setup, groups = self.setup, self.setup.layout.groups
        if fsdp := groups.get("fsdp"):
            from hakaru.measure.training._fsdp import shard

            copies = groups.get("ddp")
            self.module = shard(
                self.module, fsdp, copies, setup.device, wire, setup.mean, setup.waits
            )
        elif "ddp" in groups:
            self.module = replicate(setup, self.module, wire)

    def _placed(self, module: Any) -> Any:
        """On the device, and of each layer only what this rank computes."""
        setup, groups = self.setup, self.setup.layout.groups
        if "fsdp" in groups:
            from hakaru.measure.training._fsdp import check

            check(bool(groups.get("ddp")), setup.options.compression)
        if tensor := groups.get("tensor"):
            from hakaru.measure.training._tensor import split_channels

            module, setup.facts["whole"] = split_channels(module, tensor, setup.waits)
        return module.to(setup.device)

    def _exchange(self, last: bool) -> AbstractContextManager[Any]:
        """Gradients are exchanged in the last backward only."""
        groups = self.setup.layout.groups
        if "fsdp" in groups:
            self.module.set_requires_gradient_sync(last)
        elif "ddp" in groups and not last:
            held: AbstractContextManager[Any] = self.module.no_sync()
            return held
        return nullcontext()

    def _around(self) -> AbstractContextManager[Any]:
        if "fsdp" not in self.setup.layout.groups or not self.setup.device.startswith("cuda"):
            return nullcontext()
        from hakaru.measure.training._fsdp import stalls

        return stalls(self.setup.waits)
