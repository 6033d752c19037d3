"""Memory: free memory for the ranks, shared memory for NCCL, swap, and the kernel's page settings."""

from __future__ import annotations

import re

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.node.memory import cgroup_memory, memory
from hakaru.measure.preflight.check import (
    GIB,
    Ask,
    Finding,
    failed,
    node_check,
    passed,
    size,
    warned,
)
from hakaru.measure.preflight.facts import Node, amount, fact
from hakaru.measure.preflight.gpu import cards

FREE_SHARE = 0.8  # with less of the memory available, other processes hold it
# NCCL's shared buffers: about 4 MiB a channel ("failed to extend /dev/shm/nccl-... to 4194660 bytes" in its
# guide), 2 channels for each ordered pair of ranks on the node; the guide's own setting is 1 GiB.
SHARED_A_PAIR, SHARED_USUAL = 2 * (4 << 20), GIB
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
NUMA_BALANCING = "/proc/sys/kernel/numa_balancing"

fact("memory")(memory)
fact("cgroup-memory", optional=True)(cgroup_memory)


@fact("shared-memory")
def shared_memory(machine: Machine) -> dict[str, int]:
    lines = machine.output("df", "-kP", str(machine.root / "dev/shm")).splitlines()
    _, total, _, free, *_ = lines[-1].split()
    return {"total_bytes": int(total) * 1024, "free_bytes": int(free) * 1024}


@fact("transparent-hugepages", optional=True)
def transparent_hugepages(machine: Machine) -> str:
    if machine.missing(HUGE_PAGES):
        raise Absent("the kernel has no transparent huge pages")
    found = re.search(r"\[(\w+)\]", machine.text(HUGE_PAGES))
    if not found:
        raise Unread(f"{HUGE_PAGES}: no value is marked as active")
    return found.group(1)


@fact("numa-balancing", optional=True)
def numa_balancing(machine: Machine) -> int:
    if machine.missing(NUMA_BALANCING):
        raise Absent("the kernel has no NUMA balancing")
    return machine.number(NUMA_BALANCING)


@node_check(
    "free-memory",
    title="Free memory",
    why="A rank without memory is killed during the run, and one that swaps slows down all the others.",
)
def free_memory(node: Node, ask: Ask) -> Finding:
    table, need = node["memory"], ask.local_ranks * ask.memory_per_rank_bytes
    free, total = amount(table["MemAvailable"]), amount(table["MemTotal"])
    found = f"{size(free)} available of {size(total)}"
    group = _group_free(node)
    if group < free:
        free, found = group, f"{found}, {size(group)} left in the control group"
    wanted = f"{size(need)} for {ask.local_ranks:,} ranks on the node"
    fix = (
        "ps -eo pid,user,rss,comm --sort=-rss | head  # then stop what holds it, or use fewer ranks"
    )
    if free < need:
        return failed(found, wanted, fix)
    if amount(table["MemAvailable"]) < FREE_SHARE * total:
        return warned(found, f"{wanted}; {FREE_SHARE:.0%} of the memory for LINPACK", fix)
    return passed(found, wanted)


@node_check(
    "swap",
    title="Swap in use",
    why="Pages that were swapped out are read back during a measurement.",
    essential=False,
    by_hand="cat /proc/swaps",
)
def swap(node: Node, ask: Ask) -> Finding:
    table = node["memory"]
    used = amount(table["SwapTotal"]) - amount(table["SwapFree"])
    found = f"{size(used)} of {size(amount(table['SwapTotal']))} in use"
    if used <= 0:
        return passed(found, "none in use")
    return warned(found, "none in use", "sudo swapoff -a && sudo swapon -a")


@node_check(
    "shared-memory",
    title="Shared memory in /dev/shm",
    why="NCCL and data loaders exchange data within a node through /dev/shm; containers limit it to 64 MiB.",
)
def shared(node: Node, ask: Ask) -> Finding:
    table, ranks = node["shared-memory"], ask.local_ranks
    free, usual = amount(table["free_bytes"]), f"usually {size(SHARED_USUAL)}"
    least = ranks * (ranks - 1) * SHARED_A_PAIR if _uses_gpus(node, ask) else 0
    found = f"{size(free)} free of {size(amount(table['total_bytes']))}"
    wanted = f"{size(least)} for {ranks:,} ranks on the node, {usual}" if least else usual
    mib = max(least, SHARED_USUAL) >> 20
    fix = f"mount -o remount,size={mib}m /dev/shm  # in a container: --shm-size={mib}m"
    if free < least:
        return failed(found, wanted, fix)
    return warned(found, wanted, fix) if free < SHARED_USUAL else passed(found, wanted)


@node_check(
    "transparent-hugepages",
    title="Transparent huge pages",
    why="LINPACK is faster with huge pages, since its arrays are large.",
    essential=False,
    by_hand=f"cat {HUGE_PAGES}",
)
def huge_pages(node: Node, ask: Ask) -> Finding:
    found = str(node["transparent-hugepages"])
    if found in ("always", "madvise"):
        return passed(found, "always or madvise")
    return warned(found, "always or madvise", f"echo madvise | sudo tee {HUGE_PAGES}")


@node_check(
    "numa-balancing",
    title="Automatic NUMA balancing",
    why="The kernel moves pages between sockets during a measurement, so results vary.",
    essential=False,
    by_hand="cat /proc/sys/kernel/numa_balancing",
)
def balancing(node: Node, ask: Ask) -> Finding:
    if amount(node["numa-balancing"]) == 0:
        return passed("off", "off")
    return warned("on", "off", "sysctl -w kernel.numa_balancing=0")


def _uses_gpus(node: Node, ask: Ask) -> bool:
    """Whether the ranks talk over NCCL; GPUs that cannot be read still need it, or RCCL."""
    try:
        cards(node, ask)
    except Absent:
        return False
    except Unread:
        pass
    return True


def _group_free(node: Node) -> float:
    """Infinite where no group sets a limit; a group that cannot be read is unknown."""
    try:
        return amount(node["cgroup-memory"]["free_bytes"])
    except Absent:
        return float("inf")
