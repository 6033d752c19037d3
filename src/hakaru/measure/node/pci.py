"""PCIe links as sysfs reports them."""

from __future__ import annotations

import re
from typing import Any

from hakaru.measure.node.machine import Machine

FOLDER = "/sys/bus/pci/devices"
MOST_LANES = 32  # the kernel writes 255 for an unknown width, and 0 for virtual functions
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # by GT/s


def read_link(machine: Machine, bus: str) -> dict[str, Any]:
    """Width and speed of a device's link, now and at most; null where unknown, as for virtual devices."""

    def file(name: str) -> str | None:
        return machine.known(lambda on: on.text(f"{FOLDER}/{bus}/{name}"))

    return {
        "width": lanes(file("current_link_width")),
        "max_width": lanes(file("max_link_width")),
        "speed": _speed(file("current_link_speed")),
        "max_speed": _speed(file("max_link_speed")),
    }


def port_speed(machine: Machine, bus: str) -> str | None:
    """The highest speed of the port that a device sits on; null at the root of the bus, as in many guests.

    The entries of FOLDER are links, so that the folder around one is the port's.
    """
    return _speed(machine.known(lambda on: on.text(f"{FOLDER}/{bus}/../max_link_speed")))


def lanes(value: Any) -> int | None:
    number = int(value) if str(value).isdecimal() else 0
    return number if 1 <= number <= MOST_LANES else None


def rate(speed: Any) -> float:
    """16.0 of `16.0 GT/s`."""
    return float(str(speed).split()[0])


def generation(speed: str | None) -> int | None:
    """`16.0 GT/s` is generation 4."""
    return GENERATIONS.get(rate(speed)) if speed else None


def _speed(text: str | None) -> str | None:
    """`16.0 GT/s PCIe`, or nothing for `Unknown speed`."""
    found = re.match(r"\d+(\.\d+)? GT/s", text or "")
    return found.group() if found else None
