"""Data that the cores of a NUMA node take turns with.

Where data lies in memory changes a core's rate by a few percent: pages that fall together in a cache displace
one another. Cores that share their data differ by themselves alone. Data for each of 64 cores would also fill
the memory, and take minutes to make.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from hakaru.measure.devices import SYS_CPU, Device

Held = TypeVar("Held")
IN_USE: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def shared(device: Device, make: Callable[[], Held], *what: object) -> Held:
    """What `make` gives, once for each GPU and each NUMA node, for as long as a case holds it."""
    key = (device.torch_name, numa_node(device), *what)
    found: Held | None = IN_USE.get(key)
    if found is None:
        found = IN_USE[key] = make()
    return found


def numa_node(device: Device, sys_cpu: Path = SYS_CPU) -> str:
    """The name of the node that a device's first core is on; empty for a GPU and where it is unknown."""
    if device.kind == "gpu" or not device.cores:
        return ""
    return min((path.name for path in sys_cpu.glob(f"cpu{device.cores[0]}/node[0-9]*")), default="")
