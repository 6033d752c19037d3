"""Why torch.export refuses a network, with the place in it and what to do."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import torch
from torch import nn

from hakaru.errors import HakaruError
from hakaru.measure.partition.agree import NoPartition

LEAF_SPEC = r"`isinstance\(treespec, LeafSpec\)` is deprecated"
TORCH = str(Path(torch.__file__).parent)


@contextmanager
def without_logs() -> Iterator[None]:
    """torch's own words about a failed trace go on for pages; the error says what is needed.

    Of warnings only torch's about its own use of `LeafSpec`: those of the network are the user's.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", LEAF_SPEC, FutureWarning)
            yield
    finally:
        logging.disable(before)


@contextmanager
def explained(module: nn.Module) -> Iterator[None]:
    """A failed trace as an error that names the place in the network."""
    try:
        yield
    except HakaruError:
        raise
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise NoPartition(_refusal(module, cause)) from error


def _refusal(module: nn.Module, error: BaseException) -> str:
    where = _place(module, error.__traceback__)
    begin = f"{type(module).__name__} cannot be traced: {where}"
    if type(error).__name__ == "GuardOnDataDependentSymNode" or "data-dependent" in str(error):
        return (
            f"{begin} goes by a tensor's value, which torch.export refuses. Compute both branches and choose"
            " with torch.where, or train with ddp or fsdp, which need no trace"
        )
    first = str(error).strip().split("\n")[0] or type(error).__name__
    return f"{begin}: {type(error).__name__}: {first}. See the limits of torch.export"


def _place(module: nn.Module, trace: TracebackType | None) -> str:
    """The module that was running, and the innermost line of the user's own code."""
    paths = {id(each): name or "the network" for name, each in module.named_modules()}
    line, path, inside = "", "the network", False
    while trace is not None:
        code, values = trace.tb_frame.f_code, trace.tb_frame.f_locals
        first = values.get(code.co_varnames[0]) if code.co_varnames else None
        if isinstance(first, nn.Module) and id(first) in paths:
            path = paths[id(first)]
            inside = True
        if inside and not code.co_filename.startswith((TORCH, "<")):
            line = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{path} ({line})" if line else path
