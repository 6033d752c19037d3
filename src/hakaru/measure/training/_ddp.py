"""Data parallel training: whole copies whose gradients are summed in buckets while backward still runs.

The hook does by hand what DistributedDataParallel does without one, so that the moments and the bytes are
known. Gradients in 16 bits follow MN-1 §3.2.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hakaru.measure._base import NotApplicable
from hakaru.measure.training._setup import Setup

WIRE: dict[str, torch.dtype | None] = {
    "none": None,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
}
# the running statistics of batch norm are no part of the loss, and sending them would delay each forward
_NO_SYNC_OF_BUFFERS: dict[str, Any] = (
    {"forward_sync_buffers": False}
    if "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters
    else {"broadcast_buffers": False}
)


def replicate(setup: Setup, module: Any, wire: torch.dtype | None) -> Any:
    """The module with its gradients averaged, or summed, over the copies in each backward."""
    group, device, mean = setup.layout.groups["ddp"], setup.device, setup.mean
    buckets = setup.buckets
    cards = [torch.device(device)] if device.startswith("cuda") else None
    copied = DistributedDataParallel(
        module, device_ids=cards, process_group=group, **_NO_SYNC_OF_BUFFERS
    )
    size = dist.get_world_size(group)

    def exchange(bucket: Any) -> Any:
        held = bucket.buffer()
        if wire is not None or mean:
            held.div_(size)  # before the cast, so that 16 bits do not overflow
        sent = held.to(wire or held.dtype)
        at = buckets.begin(sent.nbytes)
        future = dist.all_reduce(sent, group=group, async_op=True).get_future()

        def received(done: Any) -> Any:
            buckets.end(at)
            if wire is not None:
                held.copy_(done.value()[0])
                if not mean:
                    held.mul_(size)
            return held

        return future.then(received)

    copied.register_comm_hook(None, lambda _, bucket: exchange(bucket))
    return copied


def wire_type(compression: str, group: Any, device: str) -> torch.dtype | None:
    """The type on the wire, if the group's backend can sum it; all ranks of the group ask together."""
    kind = WIRE[compression]
    if kind is None:
        return None
    held = torch.ones(2, dtype=kind, device=device)
    try:
        dist.all_reduce(held, group=group)
    except RuntimeError as error:
        backend = dist.get_backend(group)
        raise NotApplicable(
            f"{backend} does not sum {compression} ({str(error).splitlines()[0]}); use fp16 or none"
        ) from error
    if held.float().tolist() != [float(dist.get_world_size(group))] * 2:
        raise NotApplicable(f"{dist.get_backend(group)} sums {compression} wrongly; use none")
    return kind
