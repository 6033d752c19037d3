"""How a node is wired: which cores and cards belong to which NUMA node, and how fast its network ports are.

Read from sysfs; the driver adds how its cards reach one another. What the kernel does not know is null.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hakaru.measure.gpu import read_cards
from hakaru.measure.node.machine import HERE, Machine

MOST_LINES = 64
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def read_topology(machine: Machine = HERE) -> dict[str, Any]:
    """As plain data, for the record."""
    sys, cards = machine.root / "sys", read_cards(machine)
    return {
        "numa_nodes": _numa_nodes(sys),
        "cards": [_card(sys, each) for each in cards],
        "between_cards": _matrix(machine) if len(cards) > 1 else [],
        "ports": _ports(sys),
        "rdma_ports": _rdma_ports(sys),
    }


def _numa_nodes(sys: Path) -> dict[str, str | None]:
    """The cores of each node, as `0-15`."""
    folders = sorted(
        sys.glob("devices/system/node/node[0-9]*"), key=lambda path: int(path.name[4:])
    )
    return {folder.name[4:]: _text(folder / "cpulist") for folder in folders}


def _card(sys: Path, card: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": card["uuid"],
        "bus_id": card["bus"],
        "numa_node": _numa_node(sys / "bus/pci/devices" / (card["bus"] or "none")),
    }


def _matrix(machine: Machine) -> list[str]:
    """`nvidia-smi topo -m`, a line a card: NV12 is twelve NVLinks, PIX one PCIe switch, SYS the sockets."""
    text = machine.known(lambda on: on.output("nvidia-smi", "topo", "-m")) or ""
    lines = _COLOUR.sub("", text).splitlines()
    return [" ".join(line.split()) for line in lines if line.lstrip().startswith("GPU")][
        :MOST_LINES
    ]


def _ports(sys: Path) -> dict[str, dict[str, Any]]:
    """Network interfaces of hardware, not bridges and the like."""
    return {
        folder.name: {
            "state": _text(folder / "operstate"),
            "mbit_s": _speed(folder / "speed"),
            "numa_node": _numa_node(folder / "device"),
        }
        for folder in sorted(sys.glob("class/net/*"))[:MOST_LINES]
        if (folder / "device").exists()
    }


def _rdma_ports(sys: Path) -> dict[str, str | None]:
    """The rate of each InfiniBand or RoCE port, as `100 Gb/sec (4X EDR)`."""
    files = sorted(sys.glob("class/infiniband/*/ports/*/rate"))[:MOST_LINES]
    return {f"{path.parts[-4]}:{path.parts[-2]}": _text(path) for path in files}


def _speed(path: Path) -> int | None:
    """None for -1, which is how the kernel writes an unknown speed."""
    text = _text(path) or ""
    return int(text) if text.isdecimal() else None


def _numa_node(folder: Path) -> int | None:
    text = _text(folder / "numa_node") or ""
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:  # the kernel refuses to read the speed of a port that is down
        return None
