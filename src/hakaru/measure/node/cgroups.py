"""The control group that this process runs in, and its limits, for cgroup v1 and v2."""

from __future__ import annotations

import re

from hakaru.measure.node.machine import Absent, Machine, Unread

BASE = "/sys/fs/cgroup"


def limiting(
    machine: Machine, controller: str, v1_file: str, v2_file: str
) -> list[tuple[str, int]]:
    """Folder and limit of each enclosing group that sets one; an empty list means no limit."""
    folders = _with_file(machine, controller, v1_file, v2_file)
    texts = [(folder, machine.text(path)) for folder, path in folders]
    return [(folder, int(text)) for folder, text in texts if text != "max"]


def cpu_stat(machine: Machine) -> str:
    """The path of this process' cpu.stat."""
    return _with_file(machine, "cpu", "cpu.stat", "cpu.stat")[0][1]


def throttled_s(text: str) -> float | None:
    """How long a quota has stopped a group so far, from its cpu.stat; None where that is not counted."""
    found = re.search(r"^throttled_(usec|time) (\d+)$", text, re.MULTILINE)
    return int(found[2]) * {"usec": 1e-6, "time": 1e-9}[found[1]] if found else None


def quota_period_s(machine: Machine) -> float:
    """The longest period of the CPU quotas that this process is under; 0 without any."""
    found = _with_file(machine, "cpu", "cpu.cfs_quota_us", "cpu.max")
    return max((_period_us(machine, folder, path) for folder, path in found), default=0) / 1e6


def _period_us(machine: Machine, folder: str, path: str) -> int:
    if path.endswith("cpu.max"):
        quota, period = machine.text(path).split()
        return 0 if quota == "max" else int(period)
    return machine.number(f"{folder}/cpu.cfs_period_us") if machine.number(path) > 0 else 0


def _with_file(
    machine: Machine, controller: str, v1_file: str, v2_file: str
) -> list[tuple[str, str]]:
    """The process' group and those around it that have this file, innermost first, each with its path."""
    folder, path, file = _place(machine, controller, v1_file, v2_file)
    parts = [part for part in path.split("/") if part]
    if ".." in parts:  # seen from inside a container: its own group is the base
        parts = []
    folders = ["/".join([folder, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    there = [each for each in folders if machine.exists(f"{each}/{file}")]
    if not there and parts:
        raise Unread(f"{folders[0]}/{file}: not found, nor in the enclosing groups")
    if not there:
        raise Absent(f"the process is in the root group, which has no {file}")
    return [(each, f"{each}/{file}") for each in there]


def _place(machine: Machine, controller: str, v1_file: str, v2_file: str) -> tuple[str, str, str]:
    """Mount, path and file name: version 1 where the controller is mounted so, else version 2."""
    unified = None
    for line in machine.text("/proc/self/cgroup").splitlines():
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            mount = controller if machine.exists(f"{BASE}/{controller}") else names  # cpu,cpuacct
            return f"{BASE}/{mount}", path, v1_file
        if number == "0" and not names:
            unified = path
    if unified is None:
        raise Absent(f"no {controller} control group")
    mixed = machine.exists(f"{BASE}/unified/cgroup.controllers")
    return f"{BASE}/unified" if mixed else BASE, unified, v2_file
