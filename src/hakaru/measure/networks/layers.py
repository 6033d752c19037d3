"""What the benchmarks ask of a network's layers: which draw at random, which normalise over a batch, and
which can be split by output channels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hakaru.measure.context import torch


def has_batch_norm(module: Any) -> bool:
    """Whether what it gives for a sample depends on the others of its batch."""
    kind = torch().nn.modules.batchnorm._BatchNorm
    return any(isinstance(each, kind) for each in module.modules())


def dropout_of(module: Any) -> list[str]:
    """Modules that draw at random; each data parallel rank and stage draws others, and so losses differ."""
    return list(dict.fromkeys(name for name, _, _ in _random(module)))


def switch_off_dropout(module: Any) -> None:
    """Let none of its modules draw, also where forward drops by a share that the module holds."""
    for _, each, attribute in list(_random(module)):
        setattr(each, attribute, 0.0)


def shared_parts(module: Any) -> set[int]:
    """Modules at two places, and parameters of two modules."""
    seen: set[int] = set()
    twice: set[int] = set()
    for _, each in module.named_modules(remove_duplicate=False):
        twice |= {id(each)} & seen
        seen.add(id(each))
    owners: dict[int, int] = {}
    for each in module.modules():
        for held in each.parameters(recurse=False):
            if owners.setdefault(id(held), id(each)) != id(each):
                twice.add(id(held))
    return twice


def can_split(layer: Any, ranks: int, shared: set[int]) -> bool:
    """Whether tensor parallel training shares its output channels out among so many ranks.

    It must be a linear layer or a convolution, of this very type and with nothing attached to it, whose
    weight nothing else uses; `shared` is from `shared_parts`.
    """
    nn = torch().nn
    if type(layer) is nn.Conv2d and (layer.groups > 1 or layer.padding_mode != "zeros"):
        return False
    return (
        type(layer) in (nn.Linear, nn.Conv2d)
        and layer.weight.shape[0] % ranks == 0
        and id(layer.weight) not in shared
        and not _is_altered(layer)
    )


def splittable(module: Any, ranks: int) -> list[str]:
    """The paths of all layers that can be split."""
    shared = shared_parts(module)
    return [path for path, each in module.named_modules() if can_split(each, ranks, shared)]


def _is_altered(layer: Any) -> bool:
    """Hooks, or a forward of its own."""
    hooks = ("forward", "forward_pre", "backward", "backward_pre")
    return "forward" in vars(layer) or any(getattr(layer, f"_{each}_hooks") for each in hooks)


def _random(module: Any) -> Iterator[tuple[str, Any, str]]:
    """The name of a module that drops, itself, and the attribute with the share."""
    kind = torch().nn.modules.dropout._DropoutNd
    for name, each in module.named_modules():
        for attribute, value in list(vars(each).items()):
            drops = "drop" in attribute or (attribute == "p" and isinstance(each, kind))
            if drops and isinstance(value, float) and 0 < value <= 1:
                yield name, each, attribute
