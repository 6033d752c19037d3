"""What the driver says of the GPUs: link width and generation, clocks, throttling, and the processes on them.

nvidia-smi answers, which comes with every driver; of AMD's cards rocm-smi lists the processes. Idle cards
lower the generation of their link, so it is read while the card copies.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FIELDS = (
    "index", "uuid", "pci.bus_id", "name", "driver_version", "pcie.link.width.current",
    "pcie.link.width.max", "pcie.link.gen.current", "pcie.link.gen.max", "clocks.sm",
    "clocks.max.sm", "temperature.gpu", "power.draw", "clocks_event_reasons.active",
)  # fmt: skip
# the name in older drivers, which refuse a query with a name that they do not know
OLD_NAMES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
UNKNOWN = ("", "[n/a]", "[not supported]", "n/a", "[unknown error]", "[insufficient permissions]")
# bits of clocks_event_reasons that slow a card down; idle (1) and application clocks (2) do not
SLOWING = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
GBYTES_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
SYS_PCI = Path("/sys/bus/pci/devices")
CSV = "--format=csv,noheader,nounits"
TIMEOUT_S = 20
LEAST_OF_LINK = 0.5  # of what the link carries; page-locked copies reach 0.8 and more

Ask = Callable[[Sequence[str]], str]


def ask_smi(arguments: Sequence[str]) -> str:
    """nvidia-smi's answer; empty where there is none."""
    return _ask("nvidia-smi", arguments)


def ask_rocm(arguments: Sequence[str]) -> str:
    """rocm-smi's answer; empty where there is none."""
    return _ask("rocm-smi", arguments)


def _ask(name: str, arguments: Sequence[str]) -> str:
    program = shutil.which(name)
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def read_cards(ask: Ask = ask_smi, uuid: str | None = None) -> list[dict[str, Any]]:
    """A dict a card, or of one card alone, which is quicker; null for what the driver does not know."""
    old = tuple(OLD_NAMES.get(name, name) for name in FIELDS)
    queries = (
        [f"--query-gpu={','.join(names)}", CSV, *([f"--id={uuid}"] if uuid else [])]
        for names in (FIELDS, old)
    )
    text = next((answer for query in queries if (answer := ask(query))), "")
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [
        {name: _value(cell) for name, cell in zip(FIELDS, row, strict=True)}
        for row in rows
        if len(row) == len(FIELDS)
    ]


def state_of(uuid: str | None, ask: Ask = ask_smi) -> dict[str, Any]:
    """Clocks, temperature, power and what slows a card down at this moment; empty where unknown."""
    cards = read_cards(ask, uuid) if uuid else []
    card = next((each for each in cards if each["uuid"] == uuid), None)
    if card is None:
        return {}
    kept = ("clocks.sm", "clocks.max.sm", "temperature.gpu", "power.draw")
    return {name: card[name] for name in kept} | {"slowed_by": slowing_reasons(card)}


def read_processes(uuid: str | None, ask: Ask = ask_smi) -> list[int]:
    """The processes that compute on a card, by id; none where the driver does not answer in full."""
    if uuid is None:
        return []
    text = ask([f"--id={uuid}", "--query-compute-apps=gpu_uuid,pid", CSV])
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    listed = [row[1].strip() for row in rows if len(row) == 2 and row[0] == uuid]
    return [int(pid) for pid in listed] if all(pid.isdecimal() for pid in listed) else []


def read_rocm_processes(ask: Ask = ask_rocm) -> list[int]:
    """The processes that compute on any of AMD's cards: rocm-smi lists them without their card.

    Its form is `{"system": {"PID4711": "python3, 1, 1139888128, 0, unknown"}}`.
    """
    try:
        sections = json.loads(ask(["--showpids", "--json"]))
        names = [str(name) for section in sections.values() for name in section]
    except (ValueError, AttributeError, TypeError):  # in words where there is no process at all
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


def slowing_reasons(card: dict[str, Any]) -> list[str]:
    """What slows the card down at this moment."""
    text = str(card.get("clocks_event_reasons.active") or "0")
    try:
        bits = int(text, 16) if text.startswith("0x") else int(float(text))
    except ValueError:
        return []
    return [name for bit, name in SLOWING.items() if bits & bit]


def declared_link(
    bus_id: str | None, ask: Ask = ask_smi, sys_pci: Path = SYS_PCI
) -> dict[str, Any]:
    """Width and generation of a card's link, now and at most: from sysfs, else from the driver."""
    folder = sys_pci / (bus_id or "none").lower()
    link = {
        "width": _number(folder / "current_link_width"),
        "max_width": _number(folder / "max_link_width"),
        "generation": _generation(folder / "current_link_speed"),
        "max_generation": _generation(folder / "max_link_speed"),
    }
    if link["width"] is not None and link["max_width"]:
        return link
    for card in read_cards(ask):
        if bus_id and str(card["pci.bus_id"]).lower().endswith(bus_id.lower()):
            return {
                "width": card["pcie.link.width.current"],
                "max_width": card["pcie.link.width.max"],
                "generation": card["pcie.link.gen.current"],
                "max_generation": card["pcie.link.gen.max"],
            }
    return link


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


def _value(cell: str) -> Any:
    text = cell.strip()
    if text.lower() in UNKNOWN:
        return None
    return int(text) if text.isdigit() else text


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _generation(path: Path) -> int | None:
    """`16.0 GT/s PCIe` is generation 4."""
    speeds = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
    try:
        return speeds.get(path.read_text().split()[0])
    except (OSError, IndexError):
        return None
