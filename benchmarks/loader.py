"""The loader of the storage benchmarks against a bare DataLoader over the same reader, in turn.

The bare one reads, scales and stacks the same samples, with as many workers and batches ahead. The harness
adds the times of each batch, the counts of bytes and the check that each sample came once.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import interleaved
from hakaru.measure.datasets.synthetic import ensure
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._samples import DEVIATION, MEAN

TOTAL_BYTES = 64 << 20
WORKERS, PREFETCH, BATCH, IMAGE = 2, 2, 16, 64


def ratios(rounds: int) -> list[float]:
    """Our rate over the bare one, a value a round; a round is an epoch of each over cached files."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        reader = ensure(Path(folder) / "packed", "packed", 1, TOTAL_BYTES)
        plan = Plan("packed", IMAGE, BATCH, WORKERS, PREFETCH)
        bare = torch.utils.data.DataLoader(
            _Samples(reader), batch_size=BATCH, shuffle=True, num_workers=WORKERS,
            prefetch_factor=PREFETCH, persistent_workers=True,
        )  # fmt: skip
        with Loader(reader, plan) as loader:
            numbers = iter(range(10**9))
            sides = (lambda: _timed(bare), lambda: _timed(loader.epoch(next(numbers))))
            for side in sides:
                side()
            return interleaved(rounds, *sides)


def _timed(batches: Any) -> float:
    begin = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begin


class _Samples:
    """A data set as a person writes it: one sample at a time."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __len__(self) -> int:
        return len(self.reader)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch

        sample = self.reader.read(index)
        wanted = 3 * IMAGE * IMAGE
        pixels = np.frombuffer(sample.data, dtype=np.uint8, count=min(wanted, len(sample.data)))
        pixels = np.resize(pixels, wanted).reshape(3, IMAGE, IMAGE)
        scaled = (pixels.astype(np.float32) / 255 - MEAN) / DEVIATION
        return torch.from_numpy(scaled), sample.label
