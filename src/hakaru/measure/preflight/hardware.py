"""Hardware and settings that should be the same on all nodes: a synchronous run waits for the slowest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hakaru.measure.node.machine import Absent
from hakaru.measure.preflight.check import Ask, Finding, failed, fleet_check, passed, size, warned
from hakaru.measure.preflight.compare import compare, several
from hakaru.measure.preflight.facts import Node, amount
from hakaru.measure.preflight.gpu import cards
from hakaru.registry import listed

MEMORY_SHARE = 0.98  # the firmware of equal nodes reserves different amounts
SETTINGS = ("governors", "transparent-hugepages", "numa-balancing")
MOST_NAMES = 8


@fleet_check(
    "same-cpu",
    title="Same CPUs on all nodes",
    why="A synchronous run is as fast as its slowest node.",
)
def same_cpu(nodes: Sequence[Node], ask: Ask) -> Finding:
    return compare(nodes, ask, _cpu, warned, "lscpu  # put nodes of one kind into one partition")


@fleet_check(
    "same-gpus",
    title="Same GPUs on all nodes",
    why="A synchronous run is as fast as its slowest card, and cannot start if one is missing.",
)
def same_gpus(nodes: Sequence[Node], ask: Ask) -> Finding:
    fix = "nvidia-smi -L  # put nodes of one kind into one partition"
    return compare(nodes, ask, lambda node: _gpus(node, ask), failed, fix)


@fleet_check(
    "same-memory",
    title="Same amount of memory on all nodes",
    why="The node with the least memory limits LINPACK's problem size; a failed memory module shows here.",
)
def same_memory(nodes: Sequence[Node], ask: Ask) -> Finding:
    several(nodes, ask)
    totals = {node.name: amount(node["memory"]["MemTotal"]) for node in nodes}
    most = max(totals.values())
    less = [name for name, total in totals.items() if total < MEMORY_SHARE * most]
    if not less:
        return passed(f"{size(most)} on {len(nodes):,} nodes")
    found = (
        f"as little as {size(min(totals.values()))}; less than others: {listed(less, MOST_NAMES)}"
    )
    fix = "sudo dmidecode -t memory | grep Size  # look for a failed module"
    return warned(found, f"{size(most)} on all nodes", fix)


_FILES = (
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/sys/kernel/numa_balancing",
)
_LOOK = f"grep . {' '.join(_FILES)}"


@fleet_check(
    "same-settings",
    title="Same kernel settings on all nodes",
    why="A different governor or page setting makes one node slower than the others.",
    essential=False,
    by_hand=_LOOK,
)
def same_settings(nodes: Sequence[Node], ask: Ask) -> Finding:
    return compare(nodes, ask, _settings, warned, _LOOK)


def _cpu(node: Node) -> str:
    return f"{node['cpu']['num_cpus']} x {node['cpu']['model']}"


def _gpus(node: Node, ask: Ask) -> str:
    models = Counter(str(card["name"]) for card in cards(node, ask))
    return ", ".join(f"{number} x {name}" for name, number in sorted(models.items()))


def _settings(node: Node) -> str:
    return ", ".join(f"{name} {_setting(node, name)}" for name in SETTINGS)


def _setting(node: Node, name: str) -> str:
    try:
        value = node[name]
    except Absent:
        return "none"
    return "+".join(sorted(value)) if isinstance(value, dict) else str(value)
