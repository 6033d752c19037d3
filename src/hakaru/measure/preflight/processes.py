"""Limits on processes and threads: the user's, the kernel's and the control group's."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from typing import Any

from hakaru.measure.node.cgroups import limiting
from hakaru.measure.node.machine import Machine, Unread
from hakaru.measure.preflight.check import (
    Ask,
    Finding,
    count,
    failed,
    node_check,
    passed,
    power_of_two,
)
from hakaru.measure.preflight.environment import whole_setting
from hakaru.measure.preflight.facts import Node, amount, fact
from hakaru.measure.preflight.limits import limit_of, raise_limit

# Threads that one rank starts besides OpenMP's: Python and data loaders, CUDA's, NCCL's proxies and
# watchdogs, torch's autograd. An estimate on the safe side: a rank of gloo on CPUs was seen with 5.
THREADS_A_RANK = 64


@fact("user-threads")
def user_threads(machine: Machine) -> int:
    """Threads that this user runs now: they count against `ulimit -u`."""
    total = 0
    for name in filter(str.isdecimal, machine.names("/proc")):
        with suppress(Unread):  # the process has ended
            status = machine.text(f"/proc/{name}/status")
            total += _threads(status) if _uid(status) == os.getuid() else 0
    return total


@fact("kernel-threads")
def kernel_threads(machine: Machine) -> dict[str, int]:
    used = machine.text("/proc/loadavg").split()[3].partition("/")[2]
    return {
        "used": int(used),
        "pid_max": machine.number("/proc/sys/kernel/pid_max"),
        "threads-max": machine.number("/proc/sys/kernel/threads-max"),
    }


@fact("cgroup-processes", optional=True)
def cgroup_processes(machine: Machine) -> dict[str, Any]:
    """The group that leaves the fewest free."""
    groups = limiting(machine, "pids", "pids.max", "pids.max")
    if not groups:
        return {"limit": "unlimited", "used": 0, "folder": ""}
    left = [(limit, machine.number(f"{folder}/pids.current"), folder) for folder, limit in groups]
    limit, used, folder = min(left, key=lambda each: each[0] - each[1])
    return {"limit": limit, "used": used, "folder": folder}


def threads_needed(node: Node, ask: Ask) -> int:
    """OpenMP starts a thread a core in each rank unless OMP_NUM_THREADS says otherwise."""
    pool = whole_setting(node, "OMP_NUM_THREADS", int(amount(node["cpu"]["num_cpus"])))
    return ask.local_ranks * (THREADS_A_RANK + pool)


@node_check(
    "user-processes",
    title="Processes and threads of the user",
    why="Every thread counts against `ulimit -u`: at the limit, ranks cannot start threads and die.",
)
def user_processes(node: Node, ask: Ask) -> Finding:
    soft, hard = limit_of(node, "Max processes")
    used, need = amount(node["user-threads"]), threads_needed(node, ask)
    found = f"{count(soft)} allowed, {count(used)} in use"
    if soft - used >= need:
        return passed(found, f"{need:,} free")
    return failed(
        found, f"{need:,} free", raise_limit("nproc", "u", power_of_two(used + need), hard)
    )


@node_check(
    "kernel-processes",
    title="Processes and threads of the whole node",
    why="All ranks of a node share the limits kernel.pid_max and kernel.threads-max.",
)
def kernel_processes(node: Node, ask: Ask) -> Finding:
    table, need = node["kernel-threads"], threads_needed(node, ask)
    used = amount(table["used"])
    small = [name for name in ("pid_max", "threads-max") if amount(table[name]) - used < need]
    found = f"pid_max {count(amount(table['pid_max']))}, threads-max {count(amount(table['threads-max']))}"
    found = f"{found}, {count(used)} in use"
    if not small:
        return passed(found, f"{need:,} free")
    value = power_of_two(used + need)
    settings = " ".join(f"kernel.{name}={value}" for name in small)
    return failed(found, f"{need:,} free", f"sysctl -w {settings}")


@node_check(
    "cgroup-processes",
    title="Processes and threads of the control group",
    why="Slurm, systemd and containers limit a job's threads in addition to `ulimit -u`.",
)
def cgroup_limit(node: Node, ask: Ask) -> Finding:
    group, need = node["cgroup-processes"], threads_needed(node, ask)
    limit, used = amount(group["limit"]), amount(group["used"])
    found = f"{count(limit)} allowed, {count(used)} in use"
    if limit - used >= need:
        return passed(found, f"{need:,} free")
    file = shlex.quote(f"{group['folder']}/pids.max")
    fix = f"echo max | sudo tee {file}  # permanently: TasksMax=infinity in the unit that starts the job"
    return failed(found, f"{need:,} free", fix)


def _uid(status: str) -> int | None:
    found = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    return int(found.group(1)) if found else None


def _threads(status: str) -> int:
    found = re.search(r"^Threads:\s+(\d+)", status, re.MULTILINE)
    return int(found.group(1)) if found else 1
