"""Automatic partitioning of an unmodified network, as RaNNC does it: trace, cost, cut, run as a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def pipe_of(
    module: Any,
    example_inputs: Sequence[Any],
    num_stages: int,
    memory_bytes: int | None = None,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """The network cut into stages where its measured cost says, and the document; see pipe.py for options."""
    from hakaru.measure.context import torch

    torch()
    from hakaru.measure.partition import pipe

    return pipe.pipe_of(module, example_inputs, num_stages, memory_bytes, **options)
