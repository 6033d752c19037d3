"""The GPUs of a node as nvidia-smi reports them, and whether it sees all that are on the PCI bus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hakaru.measure.node.driver import (
    APPLICATION_FIELDS,
    CLOCK_FIELDS,
    LINK_FIELDS,
    POWER_FIELDS,
    bus_id,
    query,
    query_cards,
)
from hakaru.measure.node.machine import HANGS, Absent, Machine, NotInstalled, Unread
from hakaru.measure.preflight.check import Ask, Finding, failed, node_check, passed, warned
from hakaru.measure.preflight.facts import Node, fact
from hakaru.measure.preflight.pcie import AMD, NVIDIA, gpus_of, pci_devices
from hakaru.registry import listed

FIELDS = (
    "index", "uuid", "name", "pci.bus_id", "driver_version", "memory.total", "persistence_mode",
    "ecc.mode.current", "ecc.errors.uncorrected.volatile.total", "retired_pages.pending", "mig.mode.current",
    *LINK_FIELDS, *CLOCK_FIELDS, *APPLICATION_FIELDS, "clocks.max.sm", *POWER_FIELDS,
)  # fmt: skip
LOST = re.compile(r"GPU is lost|Unknown Error|requires reset|^ERR!?$", re.IGNORECASE)
LOAD = "sudo modprobe nvidia && nvidia-smi"
HUNG = (
    "sudo dmesg | grep -iE 'xid|nvrm'  # nvidia-smi hangs, as with a dead card: restart the node, "
    "and replace the card if it returns"
)
NONE_HERE = "no NVIDIA GPU: nvidia-smi is not installed, and none is on the PCI bus"


@fact("gpus", optional=True)
def gpus(machine: Machine) -> list[dict[str, str]]:
    """Each card's fields as nvidia-smi writes them, with the bus id as sysfs writes it."""
    try:
        found = query_cards(machine, FIELDS)
    except NotInstalled as error:
        if not _on_bus(machine):
            raise Absent(NONE_HERE) from None
        raise Unread(f"{error}, but an NVIDIA GPU is on the PCI bus") from None
    if not found:
        raise Unread("nvidia-smi lists no GPU")
    return found


@fact("remapped-rows")
def remapped_rows(machine: Machine) -> list[dict[str, str]]:
    """Whether a repair of the memory is pending or has failed; nvidia-smi lists it apart."""
    fields = ("gpu_bus_id", "remapped_rows.pending", "remapped_rows.failure")
    rows = query(machine, "remapped-rows", fields)
    return [{**row, "bus": bus_id(row["gpu_bus_id"])} for row in rows]


@fact("gpu-processes")
def gpu_processes(machine: Machine) -> list[dict[str, str]]:
    rows = query(machine, "compute-apps", ("gpu_bus_id", "pid", "process_name"))
    return [
        {"bus": bus_id(row["gpu_bus_id"]), "pid": row["pid"], "name": row["process_name"]}
        for row in rows
    ]


def cards(node: Node, ask: Ask) -> list[dict[str, str]]:
    """The node's GPUs; n/a where the run uses none, and not measured where they are AMD's."""
    if ask.gpus_per_node == 0:
        raise Absent("the run uses no GPU")
    try:
        return list(node["gpus"])
    except Absent:
        refuse_amd(node, ask)
        raise


def refuse_amd(node: Node, ask: Ask) -> None:
    """Raise `Unread` for a run on AMD GPUs: what is not read about them must not count as absent."""
    found = gpus_of(node.get("pci-devices", []), AMD)
    if found and ask.gpus_per_node != 0:
        raise Unread(
            f"not measured: AMD GPU on the PCI bus ({listed(found)}), and this version "
            "reads NVIDIA's driver only; for a run without GPUs: --gpus-per-node 0"
        )


@node_check(
    "gpu-visible",
    title="GPUs that the driver sees",
    why="A run on all GPUs cannot start if one is missing: MN-1's runs on 1,024 GPUs needed every one.",
)
def gpu_visible(node: Node, ask: Ask) -> Finding:
    devices = node.get("pci-devices", [])
    on_bus = gpus_of(devices, NVIDIA)
    wanted = f"{ask.gpus_per_node:,} GPUs" if ask.gpus_per_node else "every GPU on the PCI bus"
    try:
        seen = cards(node, ask)
    except (Absent, Unread) as error:
        lacking = isinstance(error, Absent) and ask.gpus_per_node
        if lacking or (on_bus and ask.gpus_per_node != 0):
            where = f"; on the PCI bus: {', '.join(on_bus)}" if on_bus else ""
            return failed(f"{error}{where}", wanted, HUNG if HANGS in str(error) else LOAD)
        raise
    lost = [label(card) for card in seen if any(LOST.search(str(text)) for text in card.values())]
    if lost:
        return failed(
            f"lost: {', '.join(lost)}", wanted, "sudo nvidia-smi -r  # or restart the node"
        )
    if len(seen) < (ask.gpus_per_node or 1):
        return failed(f"{len(seen)} GPUs", wanted, "nvidia-smi -L && sudo dmesg | grep -i xid")
    return _compared(seen, on_bus, gpus_of(devices, AMD), wanted, ask)


def label(card: Any) -> str:
    return f"GPU {card.get('index', '?')} ({card.get('bus', '?')})"


def _compared(
    seen: Any, on_bus: Sequence[str], of_amd: Sequence[str], wanted: str, ask: Ask
) -> Finding:
    """A GPU that the driver does not see fails, unless fewer GPUs were asked for and they are there."""
    buses = [str(card["bus"]) for card in seen]
    unseen = [bus for bus in on_bus if bus not in buses]
    found = f"{len(seen)} GPUs: {', '.join(sorted({str(card['name']) for card in seen}))}"
    if unseen:  # lost by the driver, or kept from this job by its control group
        fix = "sudo dmesg | grep -i xid  # if Slurm hides it: --slurm gpus_per_node=N"
        judged = warned if ask.gpus_per_node else failed
        return judged(f"{found}; not seen by the driver: {', '.join(unseen)}", wanted, fix)
    if of_amd:  # a processor's graphics unit beside the GPUs of the run, as a rule
        return warned(
            f"{found}; not checked: AMD GPU {', '.join(of_amd)}", wanted, "lspci -d 1002:"
        )
    return passed(found, wanted)


def _on_bus(machine: Machine) -> bool:
    try:
        return bool(gpus_of(pci_devices(machine), NVIDIA))
    except Absent:
        return False
