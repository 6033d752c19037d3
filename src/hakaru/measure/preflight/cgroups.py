"""Limits of the control group that the process runs in, for cgroup v1 and v2."""

from __future__ import annotations

from hakaru.measure.preflight.machine import Absent, Machine, Unread

BASE = "/sys/fs/cgroup"


def limiting(
    machine: Machine, controller: str, v1_file: str, v2_file: str
) -> list[tuple[str, int]]:
    """Folder and limit of each enclosing group that sets one; an empty list means no limit."""
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
    texts = [(each, machine.text(f"{each}/{file}")) for each in there]
    return [(each, int(text)) for each, text in texts if text != "max"]


def _place(machine: Machine, controller: str, v1_file: str, v2_file: str) -> tuple[str, str, str]:
    """Mount, path and file name: version 1 where the controller is mounted so, else version 2."""
    unified = None
    for line in machine.text("/proc/self/cgroup").splitlines():
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            return f"{BASE}/{controller}", path, v1_file
        if number == "0" and not names:
            unified = path
    if unified is None:
        raise Absent(f"no {controller} control group")
    mixed = machine.exists(f"{BASE}/unified/cgroup.controllers")
    return f"{BASE}/unified" if mixed else BASE, unified, v2_file
