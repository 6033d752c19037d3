"""What the driver says of the GPUs: link width and generation, clocks, throttling, and the processes on them.

nvidia-smi answers, which comes with every driver; of AMD's cards rocm-smi lists the processes. Idle cards
lower the generation of their link, so it is read while the card copies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hakaru.measure.node import driver, pci
from hakaru.measure.node.machine import HERE, Machine, Unread

FROM_DRIVER = {
    "width": "pcie.link.width.current",
    "generation": "pcie.link.gen.current",
    "max_generation": "pcie.link.gen.max",  # of the card in this system
}
FIELDS = (
    "uuid", "pci.bus_id", "name", *FROM_DRIVER.values(), "clocks.sm", "clocks.max.sm", "temperature.gpu",
    "power.draw", *driver.CLOCK_FIELDS,
)  # fmt: skip
GBYTES_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
LEAST_OF_LINK = 0.5  # of what the link carries; page-locked copies reach 0.8 and more


def read_cards(machine: Machine = HERE, uuid: str | None = None) -> list[dict[str, Any]]:
    """A dict a card, or of one card alone, which is quicker; null for what the driver does not know."""
    rows = machine.known(lambda on: driver.query_cards(on, FIELDS, uuid)) or []
    return [{name: driver.value(row.get(name, "")) for name in (*FIELDS, "bus")} for row in rows]


def state_of(uuid: str | None, machine: Machine = HERE) -> dict[str, Any]:
    """Clocks, temperature, power and what slows a card down at this moment; empty where unknown."""
    cards = read_cards(machine, uuid) if uuid else []
    card = next((each for each in cards if each["uuid"] == uuid), None)
    if card is None:
        return {}
    kept = ("clocks.sm", "clocks.max.sm", "temperature.gpu", "power.draw")
    return {name: card[name] for name in kept} | {"slowed_by": slowing_reasons(card)}


def read_processes(uuid: str | None, machine: Machine = HERE) -> list[int]:
    """The processes that compute on a card, by id; none where the driver does not answer in full."""
    if uuid is None:
        return []
    rows = (
        machine.known(lambda on: driver.query(on, "compute-apps", ("gpu_uuid", "pid"), uuid)) or []
    )
    listed = [row["pid"] for row in rows if row["gpu_uuid"] == uuid]
    return [int(pid) for pid in listed] if all(pid.isdecimal() for pid in listed) else []


def read_rocm_processes(machine: Machine = HERE) -> list[int]:
    """The processes that compute on any of AMD's cards: rocm-smi lists them without their card.

    Its form is `{"system": {"PID4711": "python3, 1, 1139888128, 0, unknown"}}`.
    """
    try:
        sections = json.loads(machine.output("rocm-smi", "--showpids", "--json"))
        names = [str(name) for section in sections.values() for name in section]
    except (Unread, ValueError, AttributeError, TypeError):  # in words where there is no process
        return []
    found = (re.fullmatch(r"(?:PID)?(\d+)", name) for name in names)
    return [int(each[1]) for each in found if each]


def strangers(listed: Sequence[int], own: int) -> list[int] | None:
    """The other processes among those on a card; None where that cannot be known.

    Our own process holds the card, so that a list without it is not to be trusted. In a container it may be
    listed under another id: a single process is then ours.
    """
    others = [pid for pid in listed if pid != own]
    if len(others) < len(listed):
        return others
    return [] if len(others) == 1 else others or None


def slowing_reasons(card: dict[str, Any]) -> list[str] | None:
    """What slows the card down at this moment; None where the driver does not say."""
    bits = [card[name] for name in driver.CLOCK_FIELDS if card.get(name) is not None]
    try:
        return driver.slowing(int(str(bits[0]), 0)) if bits else None
    except ValueError:
        return None


def is_faulty(state: Mapping[str, Any]) -> bool:
    """Whether the cooling or the power supply slows the card down; a power cap may be meant."""
    return not set(driver.FAULTS).isdisjoint(state.get("slowed_by") or ())


def declared_link(bus: str | None, machine: Machine = HERE) -> dict[str, Any]:
    """Width and generation of a card's link, now and at most: from sysfs, else from the driver.

    A card and its port agree on the generation that both have. The card's own width only sysfs knows: the
    driver's most is that of the slot, so that a narrow slot would look whole.
    """
    link = pci.read_link(machine, bus or "none")
    ends = [link["max_speed"], pci.port_speed(machine, bus or "none")]
    most = [generation for speed in ends if (generation := pci.generation(speed))]
    found = {
        "width": link["width"],
        "max_width": link["max_width"],
        "generation": pci.generation(link["speed"]),
        "max_generation": min(most) if len(most) == len(ends) else None,
    }
    if None in (found[name] for name in FROM_DRIVER):
        cards = [card for card in read_cards(machine) if bus and card["bus"] == bus]
        for name, field in FROM_DRIVER.items() if cards else ():
            found[name] = found[name] or cards[0][field]
    return found


def link_problem(link: dict[str, Any]) -> str | None:
    """A link below what its card can do: x8 of x16, or an older generation under load."""
    found = []
    if _is_less(width := link.get("width"), most := link.get("max_width")):
        found.append(
            f"its PCIe link is x{width}, and the card can do x{most}: reseat it or check the riser"
        )
    if _is_less(now := link.get("generation"), best := link.get("max_generation")):
        found.append(
            f"its PCIe link runs at generation {now} of {best} under load: the slot or a BIOS setting may "
            "limit it, else reseat the card or check the riser"
        )
    return "; ".join(found) or None


def unread_of_link(link: dict[str, Any]) -> str | None:
    """What of a link is unknown, in words: nobody then said that it is as wide and fast as it can be."""
    names = {
        "width": "width",
        "max_width": "widest",
        "generation": "generation",
        "max_generation": "newest generation",
    }
    unread = [text for name, text in names.items() if link.get(name) is None]
    return f"unread of its PCIe link: {', '.join(unread)}" if unread else None


def unread_of_clocks(state: Mapping[str, Any]) -> str | None:
    """That nobody said whether the driver slows the card down, in words; a core has its clock alone."""
    is_known = "core_mhz" in state or state.get("slowed_by") is not None
    return None if is_known else "unread: what slows the card down"


def _is_less(value: object, most: object) -> bool:
    return isinstance(value, int) and isinstance(most, int) and 0 < value < most


def copy_problem(link_limit: object, bandwidth: float | None) -> str | None:
    """Copies far below what the declared link carries, named."""
    if not isinstance(link_limit, int | float) or bandwidth is None:
        return None
    share = bandwidth / link_limit
    text = f"copies reach {share:.0%} of the {link_limit:.3g} GB/s that its PCIe link carries"
    return text if share < LEAST_OF_LINK else None


def link_limit_gbytes_s(link: dict[str, Any]) -> float | None:
    """What the link carries one way at its width and generation of this moment."""
    width, generation = link.get("width"), link.get("generation")
    if not isinstance(width, int) or generation not in GBYTES_PER_LANE:
        return None
    return width * GBYTES_PER_LANE[generation]
