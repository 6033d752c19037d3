"""The networks that benchmarks train: the papers', a small transformer, and any module of the user's."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.measure.networks.layers import has_batch_norm
from hakaru.measure.networks.workload import Workload, without_dropout
from hakaru.registry import hint, listed

__all__ = ["NAMES", "has_batch_norm", "load", "without_dropout"]

_FILES = {
    "mlp": "mlp",
    "resnet50": "resnet",
    "inception-v3": "inception",
    "vgg16": "vgg",
    "alexnet": "alexnet",
    "transformer": "transformer",
}
NAMES: tuple[str, ...] = tuple(_FILES)
DROPOUT = "dropout"
MAY_BE_ZERO = ("blocks", "groups")  # zero is the published network


def load(model: str, **sizes: Any) -> Workload:
    """A network by name, or the user's as `package.module:factory`; `sizes` make it smaller or larger.

    Sizes may also follow the name, as in `resnet50@image=64+classes=10`.
    """
    torch()
    name, text = check_name(model)
    sizes = _sizes(model, text) | sizes
    if ":" in name:
        from hakaru.measure.networks.factory import load_factory

        return load_factory(name, **sizes)
    make = importlib.import_module(f"{__name__}.{_FILES[name]}").workload
    known = list(inspect.signature(make).parameters)
    if unknown := [each for each in sizes if each not in known]:
        raise HakaruError(f"{name} has no size {unknown[0]!r}; it has {listed(known)}")
    found: Workload = make(**{size: _number(name, size, each) for size, each in sizes.items()})
    return found


def check_name(model: str) -> tuple[str, str]:
    """The name and the text of the sizes, of a network that there is; it needs no torch."""
    name, _, text = model.partition("@")
    if ":" not in name and name not in _FILES:
        raise HakaruError(
            f"there is no network {name!r} (your own is named as package.module:factory); "
            f"{hint(name, NAMES)}"
        )
    _sizes(model, text)
    return name, text


def _sizes(model: str, text: str) -> dict[str, int | float]:
    pairs = [word.partition("=") for word in text.split("+")] if text else []
    if bad := [size for size, _, value in pairs if not (size and value)]:
        raise HakaruError(
            f"{model!r}: {bad[0]!r} is no size; write them as resnet50@image=64+classes=10"
        )
    return {size: _parsed(model, size, value) for size, _, value in pairs}


def _parsed(model: str, size: str, text: str) -> int | float:
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise HakaruError(f"{model!r}: {size}={text!r}: expected a number") from None


def _number(name: str, size: str, value: Any) -> int | float:
    """A size from code or from text: a share for dropout, a whole number for all others."""
    try:
        number = float(value)
    except ValueError:
        raise HakaruError(f"{name}: {size}={value!r}: expected a number") from None
    if size == DROPOUT and 0 <= number < 1:
        return number
    least = 0 if size in MAY_BE_ZERO else 1
    if size == DROPOUT or not number.is_integer() or number < least:
        expected = "0 to 1" if size == DROPOUT else f"a whole number from {least} on"
        raise HakaruError(f"{name}: {size}={value}: expected {expected}")
    return int(number)
