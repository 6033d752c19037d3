"""A network of the user's: `package.module:factory`, called without arguments.

The factory returns the module and its inputs (a tensor, or a tuple of tensors, with samples in the first
dimension), and if wanted a target and a loss. Without these the loss is the sum of output × random target.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hakaru.errors import HakaruError
from hakaru.measure.networks.mlp import weighted_sum
from hakaru.measure.networks.samples import TARGET_SEED, normal
from hakaru.measure.networks.workload import Reduction, Workload, arguments
from hakaru.registry import hint

EXPECTED = "(module, inputs) or (module, inputs, target, loss)"
CLOSE = 1e-4
Made = tuple[nn.Module, tuple[torch.Tensor, ...], Any, Callable[[Any, Any], Any] | None]


def load_factory(name: str, batch: int = 0, learning_rate: float = 0.01, **sizes: Any) -> Workload:
    """The user's network; samples beyond those of the factory's inputs repeat them."""
    factory = _find(name)
    if sizes:
        raise HakaruError(
            f"{name} has no size {next(iter(sizes))!r}; set the sizes of a network of your own in its factory"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module, inputs, target, loss = _call(name, factory)
        shape = _output_shape(name, module, inputs)
    return Workload(
        name=name,
        make=partial(_make, name, factory),
        batch_of=partial(_batch, inputs, target, shape),
        loss=loss or weighted_sum,
        reduction=_reduction(name, loss, shape, target) if loss else "sum",
        learning_rate=learning_rate,
        batch=batch or len(inputs[0]),
    )


def _find(name: str) -> Callable[[], Any]:
    where, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last, so that no file there replaces an installed module
    try:
        module = importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{where}.".startswith(f"{error.name}."):
            raise HakaruError(f"{name}: {where} needs {error.name!r}, which is missing") from error
        raise HakaruError(
            f"{name}: there is no module {error.name!r} in {Path.cwd()} or on PYTHONPATH"
        ) from None
    except Exception as error:
        raise HakaruError(f"{name}: importing {where} failed: {_described(error)}") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        known = [each for each in vars(module) if not each.startswith("_")]
        what = "is no function" if attribute and hasattr(module, attribute) else "does not exist"
        raise HakaruError(
            f"{name}: {attribute or 'the factory'!r} {what} in {where}; {hint(attribute, known)}"
        )
    return found  # type: ignore[no-any-return]


def _call(name: str, factory: Callable[[], Any]) -> Made:
    try:
        made = factory()
    except Exception as error:
        raise HakaruError(f"{name}() failed: {_described(error)}") from error
    if not isinstance(made, tuple) or len(made) not in (2, 4):
        found = f"a tuple of {len(made)}" if isinstance(made, tuple) else f"{type(made).__name__}"
        raise HakaruError(f"{name}() returned {found}, expected {EXPECTED}")
    module, inputs, target, loss = (*made, None, None)[:4]
    if not isinstance(module, nn.Module):
        raise HakaruError(
            f"{name}() returned {type(module).__name__} as its module, expected an nn.Module"
        )
    if problem := _samples_problem(arguments(inputs), target):
        raise HakaruError(f"{name}(): {problem}")
    if len(made) == 4 and not callable(loss):
        raise HakaruError(f"{name}() returned {type(loss).__name__} as its loss, not a function")
    return module, tuple(each.detach().cpu() for each in arguments(inputs)), target, loss


def _samples_problem(inputs: tuple[Any, ...], target: Any) -> str | None:
    for each in inputs if target is None else (*inputs, target):
        if not isinstance(each, torch.Tensor) or not each.dim():
            return (
                f"inputs and target hold {type(each).__name__}, expected tensors whose first dimension"
                " counts samples"
            )
    counts = {len(each) for each in inputs} | ({len(target)} if target is not None else set())
    if len(counts) > 1 or 0 in counts:
        return f"inputs and target have {sorted(counts)} samples, expected one number above 0"
    return None


def _output_shape(name: str, module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.Size:
    try:
        with torch.no_grad():
            output = module.train()(*inputs)
    except Exception as error:
        raise HakaruError(f"{name}: the module fails on its inputs: {_described(error)}") from error
    if not isinstance(output, torch.Tensor) or output.shape[:1] != inputs[0].shape[:1]:
        found = (
            f"a tensor of shape {tuple(output.shape)}"
            if isinstance(output, torch.Tensor)
            else type(output).__name__
        )
        raise HakaruError(
            f"{name}: the module gives {found}, expected a tensor of {len(inputs[0])} samples; wrap it in a"
            " module whose forward returns one tensor"
        )
    return output.shape


def _reduction(
    name: str, loss: Callable[[Any, Any], Any], shape: torch.Size, target: Any
) -> Reduction:
    """Whether the loss is a mean or a sum: what it gives when every sample comes twice."""
    output = normal(shape[0], 0, *shape[1:])
    try:
        once = float(loss(output, target))
        twice = float(
            loss(output.repeat(2, *[1] * (output.dim() - 1)), _rows(target, 2 * len(target), 0))
        )
    except Exception as error:
        raise HakaruError(f"{name}: the loss fails: {_described(error)}") from error
    if abs(twice - once) <= CLOSE * abs(once):
        return "mean"
    if abs(twice - 2 * once) <= CLOSE * abs(once):
        return "sum"
    raise HakaruError(
        f"{name}: with every sample twice the loss goes from {once:g} to {twice:g}; expected the same (a mean"
        " over samples) or twice as much (a sum)"
    )


def _make(name: str, factory: Callable[[], Any]) -> nn.Module:
    return _call(name, factory)[0]


def _batch(
    inputs: tuple[torch.Tensor, ...], target: Any, shape: torch.Size, num: int, seed: int
) -> tuple[Any, Any]:
    drawn = tuple(_rows(each, num, seed) for each in inputs)
    wanted = (
        normal(num, seed + TARGET_SEED, *shape[1:]) if target is None else _rows(target, num, seed)
    )
    return drawn[0] if len(drawn) == 1 else drawn, wanted


def _rows(tensor: torch.Tensor, num: int, seed: int) -> torch.Tensor:
    return tensor[(torch.arange(num) + seed) % len(tensor)]


def _described(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
