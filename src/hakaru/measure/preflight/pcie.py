"""PCIe links of GPUs and network cards: a card at x8 instead of x16 works without any error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.node.pci import FOLDER, lanes, rate, read_link
from hakaru.measure.preflight.answers import problem_of
from hakaru.measure.preflight.check import Ask, Finding, failed, node_check, passed, warned
from hakaru.measure.preflight.facts import Node, fact

# by how the PCI class begins: 03 is a display controller; AMD's MI300 is a processing accelerator, 1200
KINDS = {"03": "GPU", "1200": "GPU", "0200": "network card", "0207": "InfiniBand card"}
NVIDIA, AMD = "10de", "1002"
BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@fact("pci-devices", optional=True)
def pci_devices(machine: Machine) -> list[dict[str, Any]]:
    """GPUs and network cards with the width and speed of their links; null where unknown."""
    if machine.missing("/sys/bus/pci"):
        raise Absent("this node has no PCI bus")
    ids = [name for name in machine.names(FOLDER) if BUS_ID.fullmatch(name)]
    kinds = {id: _kind(machine.text(f"{FOLDER}/{id}/class")) for id in ids}
    return [_device(machine, id, kind) for id, kind in kinds.items() if kind]


def gpus_of(devices: Sequence[Any], vendor: str) -> list[str]:
    """The bus ids of a vendor's GPUs among the devices of `pci-devices`."""
    found = [each for each in devices if each["kind"] == "GPU" and each["vendor"] == vendor]
    return [str(each["bus"]) for each in found]


def has_gpus(answer: Mapping[str, Any]) -> bool:
    """Whether a node has GPUs, or may have them: what cannot be read is no proof that it has none."""
    if problem_of(answer):
        return True
    try:
        devices = Node(answer)["pci-devices"]
    except Absent:
        return False
    except Unread:
        return True
    return any(gpus_of(devices, vendor) for vendor in (NVIDIA, AMD))


@node_check(
    "pcie-width",
    title="Width of PCIe links",
    why="MN-1 had cards that came up at x8 instead of x16, looked healthy, and took long to find.",
)
def pcie_width(node: Node, ask: Ask) -> Finding:
    devices = [each for each in node["pci-devices"] if lanes(each["max_width"])]
    if not devices:
        raise Absent("no GPU or network card reports the width of its link, as for virtual devices")
    known = [each for each in devices if lanes(each["width"])]
    narrow = [each for each in known if each["width"] < each["max_width"]]
    if narrow:
        found = ", ".join(
            f"{named(each)} runs x{each['width']} of x{each['max_width']}" for each in narrow
        )
        return failed(found, "full width", reseat(str(narrow[0]["bus"])))
    dark = [str(each["bus"]) for each in devices if each not in known]
    if dark:
        raise Unread(f"{', '.join(dark)}: the current width of the link cannot be read")
    _refuse_gaps(node["pci-devices"], devices, "full width")
    return passed(f"{len(devices)} links at full width", "full width")


@node_check(
    "pcie-speed",
    title="Speed of PCIe links",
    why="Each lower PCIe generation halves the bandwidth. Idle GPUs lower it to save power.",
    essential=False,
    by_hand="sudo lspci -vv | grep -E 'LnkCap|LnkSta'",
)
def pcie_speed(node: Node, ask: Ask) -> Finding:
    devices = [each for each in node["pci-devices"] if each["speed"] and each["max_speed"]]
    if not devices:
        raise Absent("no GPU or network card reports the speed of its link, as for virtual devices")
    slow = [each for each in devices if rate(each["speed"]) < rate(each["max_speed"])]
    found = ", ".join(f"{named(each)} runs {each['speed']} of {each['max_speed']}" for each in slow)
    cards = [str(each["bus"]) for each in slow if each["kind"] != "GPU"]
    if cards:
        fix = f"lspci -vvs {shlex.quote(cards[0])} | grep -E 'LnkCap|LnkSta'"
        return warned(found, "full speed", fix)
    _refuse_gaps(node["pci-devices"], devices, "speed")
    if slow:
        found = f"{found}; normal for idle GPUs, so measure under load"
        return passed(found, "full speed under load")
    return passed(f"{len(devices)} links at full speed", "full speed")


def _refuse_gaps(every: Sequence[Any], known: Sequence[Any], what: str) -> None:
    """Raise where a device does not report what another of its kind does."""
    kinds = [_alike(each) for each in known]
    silent = [each for each in every if each not in known and _alike(each) in kinds]
    if silent:
        names = ", ".join(map(named, silent))
        raise Unread(f"{names}: the {what} of the link cannot be read, which others report")


def _alike(device: Any) -> tuple[str, ...]:
    """The kind: all GPUs of a vendor that computes, else one model.

    A display of the management board and a virtual function of a network card have no link of their own.
    """
    is_computing = device["kind"] == "GPU" and device["vendor"] in (NVIDIA, AMD)
    return (device["kind"], device["vendor"], "" if is_computing else device["device"])


def named(device: Any) -> str:
    return f"{device['kind']} {device['bus']}"


def reseat(bus: str) -> str:
    return (
        f"cat {shlex.quote(f'{FOLDER}/{bus}/current_link_width')}"
        "  # reseat the card, check its riser and the slot's lanes in the BIOS, then check again"
    )


def _kind(text: str) -> str | None:
    """0x030200 is a GPU; None is neither a GPU nor a network card."""
    code = text.removeprefix("0x").lower()
    return next((kind for start, kind in KINDS.items() if code.startswith(start)), None)


def _device(machine: Machine, id: str, kind: str) -> dict[str, Any]:
    where = f"{FOLDER}/{id}"
    return {
        "bus": id,
        "kind": kind,
        "vendor": machine.text(f"{where}/vendor").removeprefix("0x").lower(),
        "device": machine.text(f"{where}/device").removeprefix("0x").lower(),
        **read_link(machine, id),
    }
