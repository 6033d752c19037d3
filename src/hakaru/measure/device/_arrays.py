"""The arrays of the memory benchmark: large enough that their rate is the memory's and not a cache's.

STREAM's rule: each array has at least four times the size of the last-level cache.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hakaru.measure.context import torch
from hakaru.measure.devices import SYS_CPU, SYS_NODE, Device
from hakaru.measure.node.memory import available_bytes

MIB = 2**20
TIMES_CACHE = 4
SHARE_OF_FREE = 8  # an array takes at most an eighth of a card's free memory, or of a NUMA node's
PERIOD = 1024  # after which the numbers in an array repeat
# on a GPU more than 4 times the largest cache there is, AMD's Infinity Cache of 256 MiB
LEAST_ON_GPU, LEAST_ON_CORE = 1024, 256
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Room:
    """A device's last-level cache and the memory that it may fill, in MiB; null where unknown."""

    cache_mib: float | None
    free_mib: float | None
    least_mib: int = LEAST_ON_CORE

    def choose_mib(self) -> int:
        """The size of an array that no cache holds, as far as the memory allows it."""
        wanted = max(self.least_mib, -int(-TIMES_CACHE * (self.cache_mib or 0)))
        most = wanted if self.free_mib is None else int(self.free_mib / SHARE_OF_FREE)
        return max(1, min(wanted, most))

    def facts(self, mib: int) -> dict[str, Any]:
        """The size that was used, for the record, and whether a cache helped."""
        found = {"array_mib": mib, "cache_mib": self.cache_mib}
        if self.cache_mib is None:
            return found | {"cache_note": "the size of the last-level cache is unknown"}
        if mib < TIMES_CACHE * self.cache_mib:
            note = (
                f"the arrays of {mib} MiB are less than {TIMES_CACHE} times the cache of "
                f"{self.cache_mib:g} MiB, which makes the rate higher than the memory's"
            )
            return found | {"cache_note": note}
        return found


def room_of(device: Device) -> Room:
    if device.kind == "gpu":
        return _room_of_gpu(device.torch_name)
    cache, free = last_level_cache_bytes(device.cores), free_bytes()
    num_nodes = len(list(SYS_NODE.glob("node[0-9]*"))) or 1
    return Room(
        None if cache is None else cache / MIB, None if free is None else free / MIB / num_nodes
    )


def _room_of_gpu(name: str) -> Room:
    cuda = torch().cuda
    cache = getattr(cuda.get_device_properties(name), "L2_cache_size", 0)
    free, _ = cuda.mem_get_info(name)
    return Room(cache / MIB if cache else None, free / MIB, LEAST_ON_GPU)


class Arrays:
    """Two arrays to read and one to write; `a` repeats 0 to 1023 and `b` is all ones."""

    def __init__(self, device: str, num: int) -> None:
        found = torch()
        self.pattern = found.arange(PERIOD, dtype=found.float64, device=device)
        self.a = self.pattern.repeat(num // PERIOD)
        self.b = found.ones_like(self.a)
        self.out = found.zeros_like(self.a)


def last_level_cache_bytes(cores: Sequence[int], sys_cpu: Path = SYS_CPU) -> int | None:
    """All last-level caches that these cores reach, together; None where the kernel does not list them."""
    caches: dict[tuple[int, str], int] = {}
    for core in cores:
        folders = sys_cpu.glob(f"cpu{core}/cache/index*")
        listed = [(_size(each / "level"), _size(each / "size"), each) for each in folders]
        level, size, folder = max(listed, default=(0, 0, sys_cpu), key=lambda each: each[0])
        if size:
            caches[level, _text(folder / "shared_cpu_list")] = size
    return sum(caches.values()) or None


@lru_cache(maxsize=1)
def free_bytes() -> int | None:
    """Memory that this process may use; read once, so that all devices get arrays of one size."""
    return available_bytes()


def _size(path: Path) -> int:
    """`266240K` in bytes; 0 where it cannot be read."""
    found = re.fullmatch(r"(\d+)([KMG]?)", _text(path))
    return int(found[1]) * UNITS[found[2]] if found else 0


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
