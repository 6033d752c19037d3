"""Memory of a node, and what its control groups leave of it for this process."""

from __future__ import annotations

import re

from hakaru.measure.node.cgroups import limiting
from hakaru.measure.node.machine import HERE, Absent, Machine, Unread


def memory(machine: Machine) -> dict[str, int]:
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", machine.text("/proc/meminfo"), re.MULTILINE)
    found = {name: int(kib) * 1024 for name, kib in lines}
    keep = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    missing = [name for name in keep if name not in found]
    if missing:
        raise Unread(f"/proc/meminfo has no {missing[0]}")
    return {name: found[name] for name in keep}


def cgroup_memory(machine: Machine) -> dict[str, int]:
    """Memory left in the control group; cached file pages count as free, since the kernel drops them."""
    groups = limiting(machine, "memory", "memory.limit_in_bytes", "memory.max")
    if not groups:
        raise Absent("no control group limits the memory")
    return {"free_bytes": min(limit - _used(machine, folder) for folder, limit in groups)}


def available_bytes(machine: Machine = HERE) -> int | None:
    """Memory that this process may use; None where it cannot be read."""
    node, group = machine.known(memory), machine.known(cgroup_memory)
    if node is None:
        return None
    return min([node["MemAvailable"], *(group or {}).values()])


def _used(machine: Machine, folder: str) -> int:
    v2 = machine.exists(f"{folder}/memory.current")
    used = machine.number(f"{folder}/{'memory.current' if v2 else 'memory.usage_in_bytes'}")
    name = "inactive_file" if v2 else "total_inactive_file"
    found = re.search(rf"^{name} (\d+)$", machine.text(f"{folder}/memory.stat"), re.MULTILINE)
    return used - (int(found.group(1)) if found else 0)
