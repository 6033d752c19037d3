"""CPUs: how many there are, of which model, and which governor sets their clock."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.check import Ask, Finding, node_check, passed, warned
from hakaru.measure.preflight.facts import Node, fact

FOLDER = "/sys/devices/system/cpu"


@fact("cpu")
def cpu(machine: Machine) -> dict[str, Any]:
    """Number and model; Arm CPUs give a part number in place of a model name."""
    text = machine.text("/proc/cpuinfo")
    num_cpus = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    model = re.search(r"^(?:model name|CPU part|cpu)\s*:\s*(.+)$", text, re.MULTILINE)
    if not num_cpus or not model:
        raise Unread("/proc/cpuinfo: found no processor or no model")
    return {"model": model.group(1).strip(), "num_cpus": num_cpus}


@fact("governors", optional=True)
def governors(machine: Machine) -> dict[str, int]:
    """Number of clock domains under each governor."""
    folder = f"{FOLDER}/cpufreq"
    names = [] if machine.missing(folder) else machine.names(folder)
    policies = [name for name in names if name.startswith("policy")]
    if not policies:
        raise Absent(f"no cpufreq policy under {folder}: firmware or a hypervisor sets the clock")
    return dict(Counter(machine.text(f"{folder}/{each}/scaling_governor") for each in policies))


@node_check(
    "governor",
    title="CPU frequency governor",
    why="A power-saving governor raises the clock late: ranks differ, and all wait for the slowest.",
)
def governor(node: Node, ask: Ask) -> Finding:
    found = {str(name): int(domains) for name, domains in node["governors"].items()}
    text = ", ".join(f"{name} on {domains}" for name, domains in sorted(found.items()))
    if found and set(found) == {"performance"}:
        return passed(text, "performance")
    return warned(text, "performance", "sudo cpupower frequency-set -g performance")
