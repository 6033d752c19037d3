"""A torch DataLoader over a data set of any layout: workers that stay, prefetch, a seeded order.

The bytes of an epoch are counted twice: those that were delivered, and those that the workers really read
from a device. Workers may join a control group, so that only they feel its limit.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.measure.storage._ahead import ahead
from hakaru.measure.storage._counters import process_read_bytes
from hakaru.measure.storage._order import BY_SHARD, WHOLE, Share, batches, epoch_order
from hakaru.measure.storage._samples import WARM_UP, Batch, Pace, Samples, Source
from hakaru.measure.truth.throttle import Throttle

LATE_S = 300.0  # without a batch, after which the workers count as stuck


@dataclass(frozen=True)
class Plan:
    """How samples are loaded. `most_bytes_s` holds all workers of this rank together back to a rate."""

    layout: str
    image: int
    batch: int
    workers: int
    prefetch: int = 2
    decode: str = "raw"
    seed: int = 0
    share: Share = WHOLE
    most_bytes_s: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("image", 1), ("batch", 1), ("workers", 0), ("prefetch", 1)):
            if getattr(self, name) < least:
                raise HakaruError(f"{name}={getattr(self, name)}: expected {least} or more")


class Loader:
    """Epochs of batches. `group` limits the workers alone, and so needs one worker or more."""

    def __init__(
        self, source: Source, plan: Plan, group: Throttle | None = None, pin: bool = False
    ) -> None:
        if group is not None and not plan.workers:
            raise HakaruError(
                "a memory limit is for loader workers, and workers=0 has none: use workers=1 or more"
            )
        self.plan, self.source, self._group = plan, source, group
        self._pids: Any = multiprocessing.Array("l", max(1, plan.workers), lock=False)
        self._epoch: Sequence[list[int]] = ()
        self._loader: Any = self._make(pin)

    def start(self) -> None:
        """Start the workers and let them make a batch each without reading anything."""
        empty = [WARM_UP] * self.plan.batch
        for _ in self._run([empty] * max(1, self.plan.workers) * self.plan.prefetch):
            pass

    @property
    def pids(self) -> list[int]:
        """The processes that read."""
        return [pid for pid in self._pids if pid] if self.plan.workers else [os.getpid()]

    def read_bytes(self) -> int | None:
        """What they had really read from a device so far."""
        return process_read_bytes(self.pids)

    def order(self, epoch: int) -> list[list[int]]:
        """This rank's batches of an epoch."""
        spans = getattr(self.source, "spans", None) if self.plan.layout in BY_SHARD else None
        runs = spans() if spans is not None else None
        order = epoch_order(len(self.source), self.plan.seed, epoch, self.plan.share, runs)
        return list(batches(order, self.plan.batch))

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        return self._run(self.order(number))

    def close(self) -> None:
        """End the workers."""
        self._loader = None

    def __enter__(self) -> Loader:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, listed: Sequence[list[int]]) -> Iterator[Batch]:
        self._epoch = listed
        # without workers nobody else loads, and training waits for all of it
        return ahead(self._batches()) if self.plan.workers else self._batches()

    def _batches(self) -> Iterator[Batch]:
        for batch in self._loader:
            if batch.problem:
                raise HakaruError(batch.problem)
            yield batch

    def _make(self, pin: bool) -> Any:
        plan = self.plan
        pace = None
        if plan.most_bytes_s is not None:
            pace = Pace(plan.most_bytes_s / max(1, plan.workers))
        options: dict[str, Any] = {}
        if plan.workers:
            options = {
                "prefetch_factor": plan.prefetch,
                "persistent_workers": True,
                "worker_init_fn": _Begin(self._pids, self._group),
                "multiprocessing_context": "fork",
                "timeout": LATE_S,
            }
        return torch().utils.data.DataLoader(
            Samples(self.source, plan.image, plan.decode, pace),
            batch_sampler=_Batches(self),
            num_workers=plan.workers,
            collate_fn=_unchanged,
            pin_memory=pin,
            **options,
        )


class _Batches:
    """The current epoch's batches, as torch asks for them."""

    def __init__(self, owner: Loader) -> None:
        self._owner = owner

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self._owner._epoch)

    def __len__(self) -> int:
        return len(self._owner._epoch)


@dataclass(frozen=True)
class _Begin:
    """What a worker does first: say who it is, and join its group."""

    pids: Any
    group: Throttle | None

    def __call__(self, number: int) -> None:
        if self.group is not None:
            self.group.add(os.getpid())
        self.pids[number] = os.getpid()


def _unchanged(batch: Batch) -> Batch:
    return batch
