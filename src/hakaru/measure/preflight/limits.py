"""Limits of a process: open files and stack, which stopped MN-1 at about 800 processes, and locked memory.

The limits read are those of the process that gathers the facts: start it the way the ranks are started.
"""

from __future__ import annotations

import re
from typing import Any

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.check import (
    Ask,
    Finding,
    count,
    failed,
    node_check,
    passed,
    power_of_two,
    size,
    warned,
)
from hakaru.measure.preflight.environment import whole_setting
from hakaru.measure.preflight.facts import Node, amount, fact

LIMITS_CONF = "/etc/security/limits.d/90-hakaru.conf"
LINE = re.compile(r"^(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", re.MULTILINE)
CAP_IPC_LOCK = 1 << 14

# How many descriptors a rank holds. NCCL's guide gives no formula ("a considerable number ... at scale";
# 144 ranks with 16 GIN contexts need over 32,000, which is not counted here), so this is an estimate:
#
#   rings and trees:  BASE_FILES + num_ranks
#     MN-1: "file descriptors by the number of processes", stopped at about 800. With the usual limit of
#     1,024 this line is crossed at 769 ranks.
#   all-to-all:       BASE_FILES + 2 * channels * (sockets + 1) * (num_ranks - 1)
#     2 for send and receive; `channels` a network peer: NCCL starts from 2 (src/graph/paths.cc); `sockets`
#     of a connection: NCCL_SOCKET_NTHREADS * NCCL_NSOCKS_PERTHREAD, plus one for control
#     (src/transport/net_socket.cc). InfiniBand opens its connections through such sockets too
#     (ROCm/rccl pull 577). NVIDIA/nccl issue 550: 64 sockets and 8 channels ran out with 16 ranks.
#
# Assumed: one communicator, one GPU a process, and AWS' larger defaults (16 sockets) set by variable.
# The soft limit counts: NCCL raises it to the hard one only in the process that holds the bootstrap root
# (setFilesLimit in src/bootstrap.cc). That the estimate can be too low is known: 32 ranks on 4 nodes ran
# out of 1,024 under a hard limit of 1,048,576 (goodfire-ai/spd pull 957). So less than USUAL_FILES warns
# as soon as there are several nodes; 4,096 mended NVIDIA/nccl issue 127, and NCCL's guide sets 131,072.
BASE_FILES = 256  # Python, torch, CUDA devices, libraries, data files
USUAL_FILES = 4096
CHANNELS, MOST_SOCKETS = 2, 64

# NCCL's guide: 8 MiB is enough; "unlimited" gives threads only 2 MiB (glibc), and crashes were
# reproduced with 44 ranks (NVIDIA/nccl issue 2186). NCCL 2.28 and later mend it themselves.
STACK_BYTES = 8 << 20
STACK_MENDED = (2, 28)


@fact("limits")
def limits(machine: Machine) -> dict[str, dict[str, Any]]:
    found = LINE.findall(machine.text("/proc/self/limits"))
    if not found:
        raise Unread("/proc/self/limits: found no limit")
    return {name: {"soft": _limit(soft), "hard": _limit(hard)} for name, soft, hard in found}


@fact("capabilities")
def capabilities(machine: Machine) -> int:
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]{1,16})$", machine.text("/proc/self/status"), re.M)
    if not found:
        raise Unread("/proc/self/status: no CapEff")
    return int(found.group(1), 16)


@fact("open-files-system")
def open_files_system(machine: Machine) -> dict[str, int]:
    used, _, most = machine.text("/proc/sys/fs/file-nr").split()
    return {"used": int(used), "most": int(most)}


@fact("rdma-devices", optional=True)
def rdma_devices(machine: Machine) -> dict[str, dict[str, str]]:
    """State and rate of each InfiniBand or RoCE port."""
    base = "/sys/class/infiniband"
    if machine.missing(base) or not machine.names(base):
        raise Absent(f"no InfiniBand or RoCE device (nothing under {base})")
    ports = {}
    for device in machine.names(base):
        for port in machine.names(f"{base}/{device}/ports"):
            where = f"{base}/{device}/ports/{port}"
            state, rate = machine.text(f"{where}/state"), machine.text(f"{where}/rate")
            ports[f"{device}:{port}"] = {"state": state, "rate": rate}
    return ports


def files_needed(
    num_ranks: int, all_to_all: bool = False, sockets: int = 1, channels: int = CHANNELS
) -> int:
    """Descriptors that one rank needs, by the estimate above."""
    rings = BASE_FILES + num_ranks
    if not all_to_all:
        return rings
    return max(rings, BASE_FILES + 2 * channels * (sockets + 1) * (num_ranks - 1))


@node_check(
    "open-files",
    title="Open files of a process",
    why="NCCL opens more files with more ranks: MN-1's runs were killed above about 800 processes.",
)
def open_files(node: Node, ask: Ask) -> Finding:
    soft, hard = limit_of(node, "Max open files")
    least, most = files_needed(ask.num_ranks), all_to_all(node, ask)
    found = f"soft {count(soft)}, hard {count(hard)}"
    wanted = f"{least:,} for {ask.num_ranks:,} ranks, {most:,} for all-to-all"
    usual = most if ask.alone else max(most, USUAL_FILES)
    if soft >= usual:
        return passed(found, wanted)
    fix = raise_limit("nofile", "n", power_of_two(usual), hard)
    if soft < (most if ask.all_to_all else least):
        return failed(found, wanted, fix)
    return warned(found, f"{wanted}; {USUAL_FILES:,} or more on several nodes", fix)


@node_check(
    "open-files-system",
    title="Open files of the whole node",
    why="All ranks of a node share the kernel's limit on open files.",
)
def open_files_of_the_node(node: Node, ask: Ask) -> Finding:
    table = node["open-files-system"]
    free = amount(table["most"]) - amount(table["used"])
    least, most = (
        ask.local_ranks * each for each in (files_needed(ask.num_ranks), all_to_all(node, ask))
    )
    found = f"{count(free)} free of {count(amount(table['most']))}"
    wanted = f"{least:,} free, {most:,} for all-to-all"
    if free >= most:
        return passed(found, wanted)
    fix = f"sysctl -w fs.file-max={power_of_two(amount(table['used']) + most)}"
    enough = free >= least and not ask.all_to_all
    return warned(found, wanted, fix) if enough else failed(found, wanted, fix)


@node_check(
    "stack",
    title="Stack size",
    why="NCCL needs a larger stack with many ranks: MN-1's runs were killed at the limit.",
)
def stack(node: Node, ask: Ask) -> Finding:
    soft, hard = limit_of(node, "Max stack size")
    found, wanted = f"soft {size(soft)}", f"{size(STACK_BYTES)} or more, but not unlimited"
    if STACK_BYTES <= soft < float("inf"):
        return passed(found, wanted)
    if soft < STACK_BYTES:
        return failed(found, wanted, raise_limit("stack", "s", STACK_BYTES >> 10, hard / 1024))
    if _release(node) >= STACK_MENDED:
        return passed(
            f"{found}; NCCL {node['version-nccl']} sets the stacks of its threads itself", wanted
        )
    found = f"{found}: threads of NCCL before 2.28 get 2 MiB and may crash"
    return warned(found, wanted, f"ulimit -s {STACK_BYTES >> 10}")


@node_check(
    "locked-memory",
    title="Locked memory",
    why="InfiniBand locks its buffers in memory: with a limit, NCCL and MPI fail or fall back to TCP.",
)
def locked_memory(node: Node, ask: Ask) -> Finding:
    node["rdma-devices"]
    soft, hard = limit_of(node, "Max locked memory")
    found = f"soft {size(soft)}, hard {size(hard)}"
    if soft == float("inf"):
        return passed(found, "unlimited")
    if int(node.get("capabilities", 0)) & CAP_IPC_LOCK:
        return passed(f"{found}; CAP_IPC_LOCK lifts the limit", "unlimited")
    return failed(found, "unlimited", raise_limit("memlock", "l", "unlimited", hard))


@node_check(
    "rdma-ports",
    title="InfiniBand ports",
    why="NCCL silently uses only the active ports: MN-1's nodes needed both of theirs for full bandwidth.",
)
def rdma_ports(node: Node, ask: Ask) -> Finding:
    ports = {str(name): str(port["state"]) for name, port in node["rdma-devices"].items()}
    if not ports:
        raise Unread("an InfiniBand or RoCE device is there, but none of its ports could be read")
    down = [f"{name} is {state}" for name, state in ports.items() if "ACTIVE" not in state]
    if not down:
        return passed(f"{len(ports)} active")
    fix = "ibstat  # then check the cable, the switch port and the subnet manager"
    found = ", ".join(down)
    return (failed if len(down) == len(ports) else warned)(found, "every port ACTIVE", fix)


def limit_of(node: Node, name: str) -> tuple[float, float]:
    found = node["limits"].get(name)
    if found is None:
        raise Unread(f"/proc/self/limits has no {name!r}")
    return amount(found["soft"]), amount(found["hard"])


def raise_limit(item: str, option: str, value: int | str, hard: float) -> str:
    """A shell command where the hard limit allows it, else the administrator's setting."""
    if isinstance(value, int) and value <= hard:
        return f"ulimit -{option} {value}  # in the job script, before srun, mpirun or torchrun"
    slurm = "infinity" if value == "unlimited" else f"{value}K" if item == "stack" else value
    return (
        f"echo '* - {item} {value}' | sudo tee -a {LIMITS_CONF}  # then log in again; "
        f"under Slurm also Limit{item.upper()}={slurm} in slurmd.service"
    )


def all_to_all(node: Node, ask: Ask) -> int:
    """Descriptors that one rank needs for all-to-all with the NCCL variables of this node."""
    threads = whole_setting(node, "NCCL_SOCKET_NTHREADS", 1)
    sockets = min(MOST_SOCKETS, threads * whole_setting(node, "NCCL_NSOCKS_PERTHREAD", 1))
    channels = whole_setting(node, "NCCL_NCHANNELS_PER_NET_PEER", CHANNELS)
    return files_needed(ask.num_ranks, True, sockets, channels)


def _release(node: Node) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", str(node.get("version-nccl", "")))
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def _limit(text: str) -> int | str:
    if text != "unlimited" and not text.isdecimal():
        raise Unread(f"/proc/self/limits: expected a number or unlimited, found {text[:40]!r}")
    return text if text == "unlimited" else int(text)
