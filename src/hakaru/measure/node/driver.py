"""NVIDIA's driver as nvidia-smi reports it; nvidia-smi comes with every driver."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hakaru.measure.node.machine import Machine, Unread

CSV = "--format=csv,noheader,nounits"
# a driver refuses the whole query for one field that it does not know
REFUSED = re.compile(r'Field "([a-z_.]+)" is not a valid field')
# two names of one field: the first came with 535, which still knows the second
CLOCK_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
LINK_FIELDS = (
    "pcie.link.width.current", "pcie.link.width.max", "pcie.link.gen.current", "pcie.link.gen.max",
)  # fmt: skip
# set by -ac, which drivers since 580 have given up for -lgc: newer cards answer that it is deprecated
APPLICATION_FIELDS = (
    "clocks.applications.graphics", "clocks.default_applications.graphics",
    "clocks.applications.memory", "clocks.default_applications.memory",
)  # fmt: skip
POWER_FIELDS = ("power.limit", "enforced.power.limit", "power.default_limit")
# the card does not have it, or no longer
NO_VALUE = (
    "[n/a]", "n/a", "[not supported]", "not supported",
    "[requested functionality has been deprecated]", "requested functionality has been deprecated",
)  # fmt: skip
HELD_BY_SETTING = 0x2  # bit of the clock fields: application clocks, or clocks that a user locked
NOT_READ = ("", "[unknown error]", "[insufficient permissions]")
# bits of the clock fields that slow a card down; idle (1) and application clocks (2) do not
SLOWING = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
# a fault of the cooling or the power supply; a card may reach its power cap by design
FAULTS = (SLOWING[0x8], SLOWING[0x40], SLOWING[0x80])


def query_cards(
    machine: Machine, fields: Sequence[str], uuid: str | None = None
) -> list[dict[str, str]]:
    """Each card's fields as nvidia-smi writes them, with the bus id as sysfs writes it; or of one card."""
    rows = query(machine, "gpu", fields, uuid)
    return [{**row, "bus": bus_id(row["pci.bus_id"])} for row in rows]


def query(
    machine: Machine, what: str, fields: Sequence[str], uuid: str | None = None
) -> list[dict[str, str]]:
    """The rows of `nvidia-smi --query-…`, of all cards or of one, without the fields that it refuses."""
    asked, card = list(fields), [f"--id={uuid}"] if uuid else []
    while asked:
        done = machine.finished("nvidia-smi", f"--query-{what}={','.join(asked)}", CSV, *card)
        if not done.returncode:
            return _rows(done.stdout, asked)
        output = done.stdout + done.stderr
        refused = REFUSED.search(output)
        if not refused or refused.group(1) not in asked:
            raise Unread(
                f"nvidia-smi failed with exit code {done.returncode}: {output.strip()[:200]}"
            )
        asked.remove(refused.group(1))
    raise Unread("nvidia-smi refused every field")


def value(cell: str) -> int | str | None:
    """A cell as a number where it is one; None where the driver gives no value."""
    if cell.lower() in (*NO_VALUE, *NOT_READ):
        return None
    return int(cell) if cell.isdecimal() else cell


def bus_id(text: str) -> str:
    """00000000:3B:00.0 as sysfs writes it: 0000:3b:00.0."""
    domain, colon, rest = text.lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}:{rest}" if colon else domain


def slowing(bits: int) -> list[str]:
    """What slows a card down, by the bits of its clock field."""
    return [name for bit, name in SLOWING.items() if bits & bit]


def _rows(text: str, fields: Sequence[str]) -> list[dict[str, str]]:
    most = len(fields) - 1 if fields[-1] == "process_name" else -1  # a name may hold commas
    lines = [line.split(",", most) for line in text.splitlines() if line.strip()]
    wrong = next((cells for cells in lines if len(cells) != len(fields)), None)
    if wrong:
        raise Unread(f"nvidia-smi: expected {len(fields)} fields in each line, found {wrong!r:.80}")
    return [dict(zip(fields, map(str.strip, cells), strict=True)) for cells in lines]
