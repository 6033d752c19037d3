"""One epoch: how long it took, how long training waited for data, and where the bytes came from.

Utilisation is MLPerf Storage's: compute time ÷ total time, from when the first batch is there. Waiting for
that one, which fills the pipeline, and for other ranks is in neither: an infinitely fast store would be
blamed for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hakaru.measure._base import WrongResult
from hakaru.measure.storage._consumer import Consumer
from hakaru.measure.storage._counters import FileSystem, Label, label_of, read_share
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._loader import Loader
from hakaru.measure.storage._samples import Batch
from hakaru.measure.storage._store import Store


@dataclass(frozen=True)
class Epoch:
    """Of all ranks together: the slowest one's times, and everybody's bytes."""

    seconds: float
    first_s: float  # until the first batch was there
    waited_s: float  # for all others
    computed_s: float
    num_samples: int
    delivered_bytes: int
    read_bytes: int | None
    device_bytes: int | None
    is_remote: bool = False

    @property
    def label(self) -> Label:
        return label_of(self.read_bytes, self.delivered_bytes, self.is_remote)

    @property
    def from_device(self) -> float | None:
        return read_share(self.read_bytes, self.delivered_bytes)

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.num_samples / self.seconds

    @property
    def mb_per_s(self) -> float:
        return self.delivered_bytes / self.seconds / 1e6

    @property
    def stall(self) -> float:
        """The share of the time that training waited for data, once the first was there."""
        return self.waited_s / (self.seconds - self.first_s)

    @property
    def utilisation(self) -> float:
        return self.computed_s / (self.seconds - self.first_s)

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 6),
            "first_s": round(self.first_s, 6),
            "stall": round(self.stall, 6),
            "read_bytes": self.read_bytes,
            "delivered_bytes": self.delivered_bytes,
            "device_counter_bytes": self.device_bytes,
            "label": self.label,
        }


@dataclass
class _Tally:
    """What one rank saw of its epoch."""

    begin: float
    end: float = 0.0
    first: float = 0.0
    waited: float = 0.0
    computed: float = 0.0
    num_bytes: int = 0
    num_samples: int = 0
    read: int | None = None
    disk: int | None = None

    def take(self, num_samples: int, num_bytes: int, asked: float, got: float, done: float) -> None:
        if self.num_samples:
            self.waited += got - asked
        else:
            self.first = got - asked
        self.computed += done - got
        self.num_bytes += num_bytes
        self.num_samples += num_samples
        self.end = done


def run_epoch(group: Group, loader: Loader, store: Store, consumer: Consumer, number: int) -> Epoch:
    """An epoch on all ranks, which begin together; `WrongResult` where samples are missing or come twice."""
    order = loader.order(number)
    group.ranks.barrier()
    before, disk_before = loader.read_bytes(), _disk_bytes(store.below)
    tally, seen = group.together(lambda: _consume(loader.epoch(number), consumer))
    tally.read = _difference(loader.read_bytes(), before)
    tally.disk = _difference(
        _disk_bytes(store.below), disk_before
    )  # all ranks of the host have read
    wanted = [index for batch in order for index in batch]
    group.together(lambda: _check(seen, wanted, tally.num_bytes, store))
    return _together(group, tally, store)


def _consume(batches: Iterable[Batch], consumer: Consumer) -> tuple[_Tally, list[int]]:
    seen: list[int] = []
    tally = _Tally(begin=time.monotonic())
    asked, iterator = tally.begin, iter(batches)
    while True:
        batch = next(iterator, None)
        got = time.monotonic()
        if batch is None:
            tally.waited += got - asked
            tally.end = got
            return tally, seen
        consumer.step(batch)
        seen.extend(batch.indices)
        num_samples, num_bytes = len(batch.indices), batch.num_bytes
        batch = None  # freed now, and not while the next one is waited for
        done = time.monotonic()
        tally.take(num_samples, num_bytes, asked, got, done)
        asked = done


def _together(group: Group, tally: _Tally, store: Store) -> Epoch:
    """The slowest rank's times: a job is as fast as that one."""
    every: list[_Tally] = group.share(tally)
    slowest = max(every, key=lambda each: each.end - each.begin)
    disks = group.of_hosts(tally.disk)
    delivered = sum(each.num_bytes for each in every)
    return Epoch(
        seconds=slowest.end - slowest.begin,
        first_s=slowest.first,
        waited_s=slowest.waited,
        computed_s=slowest.computed,
        num_samples=sum(each.num_samples for each in every),
        delivered_bytes=delivered,
        read_bytes=store.counted(group.total(tally.read), delivered),
        device_bytes=None if None in disks else sum(disks),
        is_remote=store.is_remote,
    )


def _check(seen: list[int], wanted: list[int], num_bytes: int, store: Store) -> None:
    if sorted(seen) != sorted(wanted):
        raise WrongResult(
            f"an epoch delivered {len(seen):,} samples that are not the {len(wanted):,} asked for"
        )
    expected = int(store.lengths[wanted].sum()) if wanted else 0
    if num_bytes != expected:
        raise WrongResult(
            f"an epoch delivered {num_bytes:,} bytes, and its samples have {expected:,}"
        )


def _disk_bytes(below: FileSystem | None) -> int | None:
    return below.read_bytes() if below is not None else None


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before
