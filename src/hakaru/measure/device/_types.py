"""The number types of the device benchmarks, by the names that people use."""

from __future__ import annotations

from math import sqrt
from typing import Any

from hakaru.measure.context import torch

# torch's name, and the relative error that one rounding makes
TYPES: dict[str, tuple[str, float]] = {
    "fp64": ("float64", 2.0**-53),
    "fp32": ("float32", 2.0**-24),
    "tf32": ("float32", 2.0**-11),
    "fp16": ("float16", 2.0**-11),
    "bf16": ("bfloat16", 2.0**-8),
}
SIZES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}


def torch_type(name: str) -> Any:
    return getattr(torch(), TYPES[name][0])


def prepare_type(tensor: Any, name: str) -> Any:
    """The tensor in the type, and the GPUs ready to multiply it."""
    set_multiplication(name)
    return tensor.to(torch_type(name))


def set_multiplication(name: str) -> None:
    """How GPUs multiply fp32 from now on: tf32 is fp32 with another mode of multiplication."""
    found = torch()
    if found.cuda.is_available():
        found.backends.cuda.matmul.allow_tf32 = name == "tf32"


def rounding(name: str, size: int) -> float:
    """The typical error of a product's element, relative to the product's typical element.

    The result is rounded once. Its sum of `size` terms is kept in fp32 or better, and those roundings add up
    to the square root of their number.
    """
    sums = TYPES["fp64" if name == "fp64" else "fp32"][1]
    return TYPES[name][1] + sums * sqrt(size)
