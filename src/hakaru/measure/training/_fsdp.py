"""FSDP2: each rank keeps a shard of every parameter, collects a block's whole ones to use it, and frees them.

After ZeRO (Rajbhandari et al. 2020). With ddp around it the shards' gradients are summed over the copies
(HSDP).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from hakaru.measure._base import NotApplicable
from hakaru.measure.training._marks import Spans

NEEDED = ("set_custom_all_gather", "set_gradient_divide_factor", "set_all_reduce_hook")


def check(has_copies: bool, compression: str) -> None:
    """Refuse what this torch, or FSDP beside DDP, cannot do."""
    if missing := [each for each in NEEDED if not hasattr(FSDPModule, each)]:
        raise NotApplicable(
            f"fsdp needs a torch with FSDPModule.{missing[0]}; this is {torch.__version__}"
        )
    if has_copies and compression != "none":
        raise NotApplicable(
            "gradients are compressed under ddp or under fsdp, not under both together"
        )


def shard(
    module: nn.Module,
    group: Any,
    copies: Any,
    device: str,
    wire: torch.dtype | None,
    mean: bool,
    waits: Spans,
) -> Any:
    """The module with each block sharded over the group; gradients are summed over `copies`, if any."""
    policy = MixedPrecisionPolicy(reduce_dtype=wire)
    on_card = device.startswith("cuda")
    mesh = DeviceMesh.from_group(group, torch.device(device).type)
    for block in (*blocks(module), module):
        fully_shard(block, mesh=mesh, mp_policy=policy)
    size = dist.get_world_size(group) * (dist.get_world_size(copies) if copies else 1)
    for unit in module.modules():
        if isinstance(unit, FSDPModule):
            each: Any = unit
            if not on_card:
                each.set_custom_all_gather(_Gather(waits))
                each.set_custom_reduce_scatter(_Scatter(waits))
            each.set_force_sum_reduction_for_comms(True)
            each.set_gradient_divide_factor(float(size if mean else 1))
            if copies:
                # native HSDP has no hook to time it
                each.set_all_reduce_hook(_sum_over(copies, None if on_card else waits))
    return module


def blocks(module: nn.Module) -> list[nn.Module]:
    """The elements of its lists and sequences, the outermost ones, with parameters that nothing else uses."""
    whole = _uses(module)
    found = {id(each): each for each in _elements(module)}
    return [
        each
        for each in found.values()
        if (own := _uses(each)) and all(whole[key] == count for key, count in own.items())
    ]


def _elements(module: nn.Module) -> Iterator[nn.Module]:
    is_list = isinstance(module, (nn.ModuleList, nn.Sequential))
    for child in module.children():
        if is_list and not isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            yield child
        else:
            yield from _elements(child)


def _uses(module: nn.Module) -> Counter[int]:
    """How often each parameter occurs in it."""
    return Counter(id(each) for _, each in module.named_parameters(remove_duplicate=False))


class _Plain:
    """Buffers from the usual allocator."""

    def __init__(self, waits: Spans) -> None:
        self.waits = waits

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class _Gather(_Plain):
    """Collects parameters; on a processor the call blocks, and so its time is waiting."""

    def __call__(
        self, output_tensor: Any, input_tensor: Any, group: Any, async_op: bool = False
    ) -> Any:
        call = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        with self.waits.timed():
            return call(output_tensor, input_tensor, group=group, async_op=async_op)


class _Scatter(_Plain):
    """Sums gradients and leaves each rank its shard of them."""

    def __call__(
        self, output_tensor: Any, input_tensor: Any, group: Any, op: Any, async_op: bool = False
    ) -> Any:
        call = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        with self.waits.timed():
            return call(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


def _sum_over(copies: Any, waits: Spans | None) -> Callable[[torch.Tensor], None]:
    """A card sums in a stream of its own while it computes: only what `stalls` sees of it is waiting."""

    def exchange(shard: torch.Tensor) -> None:
        with waits.timed() if waits else nullcontext():
            dist.all_reduce(shard, group=copies)

    return exchange


@contextmanager
def stalls(waits: Spans) -> Iterator[None]:
    """Time the waits of a card's compute stream, which is where FSDP's communication shows on a card.

    FSDP2 orders its streams by `wait_event` from Python; there is no hook for it, hence the replacement.
    """
    streams: Any = torch.cuda.Stream
    compute, original = torch.cuda.current_stream(), streams.wait_event

    def wait_event(stream: Any, event: Any) -> None:
        if stream != compute:
            original(stream, event)
            return
        begin = waits.clock.mark()
        original(stream, event)
        waits.add(begin, waits.clock.mark())

    streams.wait_event = wait_event
    try:
        yield
    finally:
        streams.wait_event = original
