"""Tensor parallel training of any module: each rank computes a share of every layer's output channels.

After Megatron-LM (Shoeybi et al. 2019): outputs are gathered in forward, and the input's gradient is summed
over the ranks in backward. A linear layer, an activation and a linear layer in a row share one exchange.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from hakaru.measure._base import NotApplicable
from hakaru.measure.networks.layers import can_split, shared_parts
from hakaru.measure.training._marks import Spans

ELEMENTWISE = (nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.Identity)


@dataclass(frozen=True)
class Share:
    """The ranks that split a layer, this rank among them, and where waiting is counted."""

    group: Any
    rank: int
    size: int
    waits: Spans

    def of(self, tensor: torch.Tensor, dimension: int) -> torch.Tensor:
        """This rank's part."""
        return tensor.chunk(self.size, dimension)[self.rank].contiguous()

    def summed(self, tensor: torch.Tensor) -> torch.Tensor:
        held = tensor.clone(memory_format=torch.contiguous_format)
        with self.waits.timed():
            dist.all_reduce(held, group=self.group)
        return held

    def gathered(self, tensor: torch.Tensor, dimension: int) -> torch.Tensor:
        own = tensor.contiguous()
        parts = [torch.empty_like(own) for _ in range(self.size)]
        with self.waits.timed():
            dist.all_gather(parts, own, group=self.group)
        return torch.cat(parts, dimension)


class _Spread(torch.autograd.Function):
    """The same input for all; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, share: Share) -> torch.Tensor:
        ctx.share = share
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return ctx.share.summed(grads[0]), None


class _Gather(torch.autograd.Function):
    """All parts side by side; the gradient of this rank's part is its part of the gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, share: Share, dimension: int) -> torch.Tensor:
        ctx.share, ctx.dimension = share, dimension
        return share.gathered(x, dimension)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return ctx.share.of(grads[0], ctx.dimension), None, None


class _Sum(torch.autograd.Function):
    """The sum of all ranks' parts; each part has the gradient of the sum."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, share: Share) -> torch.Tensor:
        return share.summed(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0], None


def spread(x: torch.Tensor, share: Share) -> torch.Tensor:
    found: torch.Tensor = _Spread.apply(x, share)  # type: ignore[no-untyped-call]
    return found


def gather(x: torch.Tensor, share: Share, dimension: int) -> torch.Tensor:
    found: torch.Tensor = _Gather.apply(x, share, dimension)  # type: ignore[no-untyped-call]
    return found


class ChannelSplit(nn.Module):
    """A linear or convolutional layer of which this rank has a share of the output channels."""

    def __init__(
        self,
        layer: nn.Linear | nn.Conv2d,
        share: Share,
        compute: Callable[[torch.Tensor, Any, Any], torch.Tensor],
        dimension: int,
        gathers: bool = True,
    ) -> None:
        super().__init__()
        self.share, self.dimension, self.gathers = share, dimension, gathers
        self._compute = compute
        self.weight = _part(layer.weight, share, 0)
        self.bias = None if layer.bias is None else _part(layer.bias, share, 0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self._compute(spread(x, self.share), self.weight, self.bias)
        return gather(y, self.share, self.dimension) if self.gathers else y


class InputSplit(nn.Module):
    """A linear layer of which this rank has a share of the input channels."""

    def __init__(self, layer: nn.Linear, share: Share) -> None:
        super().__init__()
        self.share = share
        self.weight = _part(layer.weight, share, 1)
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = _Sum.apply(functional.linear(x, self.weight), self.share)  # type: ignore[no-untyped-call]
        return summed if self.bias is None else summed + self.bias


def split_channels(module: nn.Module, group: Any, waits: Spans) -> tuple[nn.Module, list[str]]:
    """The module, the same on all ranks, with its layers split, and the names of those that stay whole."""
    share = Share(group, dist.get_rank(group), dist.get_world_size(group), waits)
    surgeon = _Surgeon(share, shared_parts(module))
    found = surgeon.split(module, "")
    if not surgeon.done:
        raise NotApplicable(
            f"no linear or convolutional layer's output channels divide by {share.size} ranks; "
            "use another number of ranks, or ddp"
        )
    return found, surgeon.whole


class _Surgeon:
    """Replaces layers in a module, each once however often it is used."""

    def __init__(self, share: Share, shared: set[int]) -> None:
        self.share, self.shared = share, shared
        self.done: dict[int, nn.Module] = {}
        self.whole: list[str] = []

    def split(self, module: nn.Module, name: str) -> nn.Module:
        if id(module) in self.done:
            return self.done[id(module)]
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            if not self._divides(module):
                self.whole.append(name)
                return module
            self.done[id(module)] = self._by_channels(module)
            return self.done[id(module)]
        if type(module).forward is nn.Sequential.forward:
            self._split_pairs(list(module.children()))
        for key, child in module._modules.items():
            if child is not None:
                module._modules[key] = self.split(child, f"{name}.{key}" if name else key)
        return module

    def _split_pairs(self, children: list[nn.Module]) -> None:
        """Linear layers with an activation between them: the first need not gather, the second sums."""
        for first, between, second in zip(children, children[1:], children[2:], strict=False):
            if (
                type(first) is nn.Linear
                and isinstance(between, ELEMENTWISE)
                and type(second) is nn.Linear
                and first.out_features == second.in_features
                and not {id(first), id(second)} & (self.shared | self.done.keys())
                and all(self._divides(each) for each in (first, second))
            ):
                self.done[id(first)] = self._by_channels(first, gathers=False)
                self.done[id(second)] = InputSplit(second, self.share)

    def _divides(self, layer: nn.Module) -> bool:
        return can_split(layer, self.share.size, self.shared)

    def _by_channels(self, layer: nn.Linear | nn.Conv2d, gathers: bool = True) -> ChannelSplit:
        if isinstance(layer, nn.Linear):
            return ChannelSplit(layer, self.share, functional.linear, -1, gathers)
        compute = partial(
            functional.conv2d,
            stride=layer.stride,
            padding=layer.padding,
            dilation=layer.dilation,
        )
        return ChannelSplit(layer, self.share, compute, -3, gathers)


def _part(weight: torch.Tensor, share: Share, dimension: int) -> nn.Parameter:
    return nn.Parameter(share.of(weight.detach(), dimension).clone(), weight.requires_grad)
