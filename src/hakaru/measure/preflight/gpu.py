"""The GPUs of a node as nvidia-smi reports them, and whether it sees all that are on the PCI bus."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from hakaru.measure.preflight.check import Ask, Finding, failed, node_check, passed, warned
from hakaru.measure.preflight.facts import Node, fact
from hakaru.measure.preflight.machine import Absent, Machine, NotInstalled, Unread
from hakaru.measure.preflight.pcie import AMD, NVIDIA, gpus_of, pci_devices
from hakaru.registry import listed

FIELDS = (
    "index", "uuid", "name", "pci.bus_id", "driver_version", "memory.total", "persistence_mode",
    "ecc.mode.current", "ecc.errors.uncorrected.volatile.total", "mig.mode.current",
    "pcie.link.width.current", "pcie.link.width.max", "pcie.link.gen.current", "pcie.link.gen.max",
    "clocks_event_reasons.active", "clocks_throttle_reasons.active",
)  # fmt: skip
CSV = "--format=csv,noheader,nounits"
# a driver refuses the whole query for one field that it does not know: clocks_event_reasons came with
# 535, which still knows the older name
REFUSED = re.compile(r'Field "([a-z_.]+)" is not a valid field')
LOST = re.compile(r"GPU is lost|Unknown Error|requires reset|^ERR!?$", re.IGNORECASE)
NONE_HERE = "no NVIDIA GPU: nvidia-smi is not installed, and none is on the PCI bus"


@fact("gpus")
def gpus(machine: Machine) -> list[dict[str, str]]:
    """Each card's fields as nvidia-smi writes them, with the bus id as sysfs writes it."""
    try:
        return [_card(row) for row in _query(machine)]
    except NotInstalled as error:
        if not _on_bus(machine):
            raise Absent(NONE_HERE) from None
        raise Unread(f"{error}, but an NVIDIA GPU is on the PCI bus") from None


@fact("gpu-processes")
def gpu_processes(machine: Machine) -> list[dict[str, str]]:
    text = machine.output("nvidia-smi", "--query-compute-apps=gpu_bus_id,pid,process_name", CSV)
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    if any(len(row) < 3 for row in rows):
        raise Unread(f"nvidia-smi: expected bus id, pid and name, found {rows[0]!r:.80}")
    return [{"bus": _bus(row[0]), "pid": row[1], "name": ",".join(row[2:])} for row in rows]


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
            return failed(f"{error}{where}", wanted, "sudo modprobe nvidia && nvidia-smi")
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


def _query(machine: Machine) -> list[dict[str, str]]:
    fields = list(FIELDS)
    while fields:
        done = machine.finished("nvidia-smi", f"--query-gpu={','.join(fields)}", CSV)
        refused = REFUSED.search(done.stdout + done.stderr)
        if done.returncode and refused and refused.group(1) in fields:
            fields.remove(refused.group(1))
            continue
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[:200]
            raise Unread(f"nvidia-smi failed with exit code {done.returncode}: {said}")
        return _rows(done.stdout, fields)
    raise Unread("nvidia-smi refused every field")


def _rows(text: str, fields: list[str]) -> list[dict[str, str]]:
    rows = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if row]
    if not rows:
        raise Unread("nvidia-smi lists no GPU")
    if any(len(row) != len(fields) for row in rows):
        raise Unread(
            f"nvidia-smi: expected {len(fields)} fields for each GPU, found {rows[0]!r:.80}"
        )
    return [dict(zip(fields, (cell.strip() for cell in row), strict=True)) for row in rows]


def _card(row: dict[str, str]) -> dict[str, str]:
    return {**row, "bus": _bus(row["pci.bus_id"])}


def _bus(text: str) -> str:
    """00000000:3B:00.0 as sysfs writes it: 0000:3b:00.0."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{domain[-4:] if domain.startswith('0000') else domain}:{rest}"


def _on_bus(machine: Machine) -> bool:
    try:
        return bool(gpus_of(pci_devices(machine), NVIDIA))
    except Absent:
        return False
