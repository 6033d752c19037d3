"""The state of each GPU: link, memory errors, modes, throttling, and processes that use it already."""

from __future__ import annotations

from contextlib import suppress
from shlex import quote

from hakaru.measure.node.driver import CLOCK_FIELDS, SLOWING, slowing
from hakaru.measure.node.machine import Absent, Unread
from hakaru.measure.preflight.check import Ask, Finding, Judged, failed, node_check, passed, warned
from hakaru.measure.preflight.facts import Node
from hakaru.measure.preflight.gpu import cards, label
from hakaru.measure.preflight.gpu_fields import refuse_gaps, share_of, values_of
from hakaru.measure.preflight.pcie import reseat

POWER_CAP = 0x4
REPAIRS = {
    "remapped_rows.pending": "row remapping is pending",
    "remapped_rows.failure": "row remapping failed",
    "retired_pages.pending": "page retirement is pending",
}


@node_check(
    "gpu-pcie-width",
    title="Width of the GPUs' PCIe links, as the driver reports it",
    why="A card at x8 instead of x16 works, but slows down all the others: MN-1 found such cards late.",
)
def gpu_pcie_width(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    now = values_of(here, "pcie.link.width.current", int)
    most = values_of(here, "pcie.link.width.max", int)
    narrow = [
        (card, now[bus], most[bus])
        for card in here
        if (bus := card["bus"]) in now and bus in most and now[bus] < most[bus]
    ]
    if narrow:
        found = ", ".join(f"{label(card)} runs x{width} of x{full}" for card, width, full in narrow)
        return failed(found, "full width", reseat(narrow[0][0]["bus"]))
    silent = [label(card) for card in here if card["bus"] not in now or card["bus"] not in most]
    if silent:
        raise Unread(f"{', '.join(silent)}: the driver does not report the width of the link")
    return passed(f"{len(now)} links at full width{_generations(here)}", "full width")


@node_check(
    "gpu-ecc-errors",
    title="Uncorrected memory errors of the GPUs",
    why="A card with uncorrected errors gives wrong results or fails during a run.",
)
def gpu_ecc_errors(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    field = "ecc.errors.uncorrected.volatile.total"
    errors = values_of(here, field, int)
    bad = [card for card in here if errors.get(card["bus"], 0)]
    if not bad:
        refuse_gaps(here, errors, field)
        return passed(f"none on {share_of(errors, here)}", "none")
    found = ", ".join(f"{label(card)}: {errors[card['bus']]:,} uncorrected" for card in bad)
    fix = f"sudo nvidia-smi -i {quote(bad[0]['bus'])} -r  # if the errors return, replace the card"
    return failed(found, "none", fix)


@node_check(
    "gpu-memory-repair",
    title="Memory repairs of the GPUs that are pending or failed",
    why="The count of errors starts again with the driver; a faulty row or page stays until a reset.",
    by_hand="nvidia-smi -q -d ROW_REMAPPER,PAGE_RETIREMENT",
)
def gpu_memory_repair(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    rows = {str(each["bus"]): each for each in node["remapped-rows"]}
    known = [{**card, **rows.get(card["bus"], {})} for card in here]
    bad, asked = _repairs(known)
    if bad:
        fix = f"sudo nvidia-smi -i {quote(bad[0][0]['bus'])} -r  # if a repair failed, replace the card"
        found = ", ".join(f"{label(card)}: {what}" for card, what in bad)
        return failed(found, "none", fix)
    if not asked:
        raise Absent("these GPUs report neither remapped rows nor retired pages")
    for field, values in asked.items():
        refuse_gaps(known, values, field)
    return passed("none", "none")


@node_check(
    "gpu-ecc-mode",
    title="Error correction (ECC) of the GPUs",
    why="Without ECC a flipped bit goes unnoticed and the result is wrong.",
)
def gpu_ecc_mode(node: Node, ask: Ask) -> Finding:
    return _all_in(
        node, ask, "ecc.mode.current", "Enabled", warned, "sudo nvidia-smi -i {bus} -e 1"
    )


@node_check(
    "gpu-persistence",
    title="Persistence mode of the GPUs",
    why="Without it the driver unloads between jobs: jobs start seconds later, and settings are lost.",
)
def gpu_persistence(node: Node, ask: Ask) -> Finding:
    return _all_in(node, ask, "persistence_mode", "Enabled", warned, "sudo nvidia-smi -pm 1")


@node_check(
    "gpu-mig",
    title="Multi-instance mode (MIG) of the GPUs",
    why="A card split into instances is slower and smaller than the run expects.",
)
def gpu_mig(node: Node, ask: Ask) -> Finding:
    if not any("mig.mode.current" in card for card in cards(node, ask)):
        raise Absent("this driver is older than MIG")
    return _all_in(
        node, ask, "mig.mode.current", "Disabled", failed, "sudo nvidia-smi -i {bus} -mig 0"
    )


@node_check(
    "gpu-throttling",
    title="Throttling of the GPUs",
    why="All ranks wait for the slowest card; MN-1's cards of one model differed widely in speed.",
)
def gpu_throttling(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    field = next((name for name in CLOCK_FIELDS if name in here[0]), CLOCK_FIELDS[0])
    bits = values_of(here, field, lambda text: int(text, 0))
    slow = {bus: value & sum(SLOWING) for bus, value in bits.items() if value & sum(SLOWING)}
    if not slow:
        refuse_gaps(here, bits, field)
        return passed(f"none on {share_of(bits, here)}", "no throttling")
    found = ", ".join(
        f"{label(card)}: {', '.join(slowing(slow[card['bus']]))}"
        for card in here
        if card["bus"] in slow
    )
    fix = "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE  # check cooling, power limit and power supply"
    only_power = all(value == POWER_CAP for value in slow.values())
    return (warned if only_power else failed)(found, "no throttling", fix)


@node_check(
    "gpu-processes",
    title="Other processes on the GPUs",
    why="A forgotten process holds memory and slows down one card, and with it the whole run.",
)
def gpu_processes(node: Node, ask: Ask) -> Finding:
    cards(node, ask)
    there = node["gpu-processes"]
    if not there:
        return passed("none", "none")
    found = ", ".join(f"{each['name']} (pid {each['pid']}) on {each['bus']}" for each in there)
    pids = " ".join(str(each["pid"]) for each in there if str(each["pid"]).isdecimal())
    fix = f"ps -o pid,user,etime,args -p {pids.replace(' ', ',')}  # then ask the owner, or: kill {pids}"
    return failed(found, "none", fix)


def _all_in(node: Node, ask: Ask, field: str, wanted: str, otherwise: Judged, fix: str) -> Finding:
    """All cards in one mode; models without that mode are left out."""
    here = cards(node, ask)
    modes = values_of(here, field, str)
    off = [card for card in here if modes.get(card["bus"], wanted) != wanted]
    if not off:
        refuse_gaps(here, modes, field)
        return passed(f"{wanted.lower()} on {share_of(modes, here)}", wanted.lower())
    found = ", ".join(f"{label(card)}: {modes[card['bus']]}" for card in off)
    return otherwise(found, wanted.lower(), fix.format(bus=quote(off[0]["bus"])))


def _repairs(
    here: list[dict[str, str]],
) -> tuple[list[tuple[dict[str, str], str]], dict[str, dict[str, bool]]]:
    """Each card with a repair that is pending or failed, and the fields that these GPUs report.

    Cards since Ampere remap rows, older ones retire pages; none has both.
    """
    asked = {}
    for field in REPAIRS:
        with suppress(Absent):
            asked[field] = values_of(here, field, _is_yes)
    bad = [
        (card, REPAIRS[field])
        for card in here
        for field, values in asked.items()
        if values.get(card["bus"])
    ]
    return bad, asked


def _is_yes(text: str) -> bool:
    """nvidia-smi writes Yes and No, and for rows 1 and 0."""
    return {"yes": True, "1": True, "no": False, "0": False}[text.lower()]


def _generations(here: list[dict[str, str]]) -> str:
    """A note only: idle cards lower the generation to save power."""
    low = [
        card["index"]
        for card in here
        if card.get("pcie.link.gen.current") != card.get("pcie.link.gen.max")
    ]
    return f"; lower generation on GPU {', '.join(low)}, normal when idle" if low else ""
