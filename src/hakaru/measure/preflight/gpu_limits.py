"""What holds GPUs below their speed by setting: application clocks, locked clocks and power limits.

All cards below their default by the same amount may be meant, to save energy, and warn. One card with lower
application clocks or a lower power limit than others of its model fails: all ranks wait for it. Locked clocks
only warn, also those of one card: the driver does not always show them, so the other cards may be locked too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote

from hakaru.measure.node.driver import (
    APPLICATION_FIELDS,
    CLOCK_FIELDS,
    HELD_BY_SETTING,
    POWER_FIELDS,
)
from hakaru.measure.node.machine import Absent, Unread
from hakaru.measure.preflight.check import (
    Ask,
    Finding,
    failed,
    fleet_check,
    node_check,
    passed,
    warned,
)
from hakaru.measure.preflight.compare import compare
from hakaru.measure.preflight.facts import Node, amount
from hakaru.measure.preflight.gpu import cards, label
from hakaru.measure.preflight.gpu_fields import refuse_gaps, values_of

Card = dict[str, str]
Reading = tuple[str, float]  # a model, and watts
CLOCKS = {"graphics": APPLICATION_FIELDS[:2], "memory": APPLICATION_FIELDS[2:]}
LIMIT, ENFORCED, DEFAULT = POWER_FIELDS
ROUNDING_W = 1.0
HELD = "held by a setting, such as nvidia-smi -lgc"
INFINITE = float("inf")
SHOW_POWER = "nvidia-smi -q -d POWER,PERFORMANCE"


@node_check(
    "gpu-clocks",
    title="Clocks that the GPUs are held to",
    why="Clocks lowered for another job stay until they are reset: the card is slow without any error.",
    by_hand="nvidia-smi -q -d CLOCK,PERFORMANCE",
)
def gpu_clocks(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    clocks = _application_clocks(here)
    low = {bus: text for bus, text in clocks.items() if text}
    held = dict.fromkeys(_held(here, clocks), HELD)
    if low or held:
        return _below(here, low | held, low, "default clocks", _reset(here, low, held))
    if not clocks:
        raise Absent(
            "these GPUs have no application clocks, and clocks locked by nvidia-smi -lgc cannot be read: "
            "measure under load"
        )
    return passed(f"default clocks on {len(clocks)} of {len(here)} GPUs", "default clocks")


@node_check(
    "gpu-power-limit",
    title="Power limits of the GPUs",
    why="A card with a lower power limit runs at lower clocks under load, and all ranks wait for it.",
    by_hand=SHOW_POWER,
)
def gpu_power_limit(node: Node, ask: Ask) -> Finding:
    here = cards(node, ask)
    limits, defaults = power_limits(here), values_of(here, DEFAULT, _number)
    refuse_gaps(here, defaults, DEFAULT)
    low = {
        bus: f"{watts:g} W of {defaults[bus]:g} W"
        for bus, watts in limits.items()
        if bus in defaults and watts < defaults[bus] - ROUNDING_W
    }
    if low:
        fix = _raise_limit(here, low, defaults)
        return _below(here, low, low, "default power limit", fix)
    known = limits.keys() & defaults.keys()
    if not known:
        raise Unread("no GPU reports both its power limit and the default")
    return passed(f"default limit on {len(known)} of {len(here)} GPUs", "default power limit")


@fleet_check(
    "same-gpu-limits",
    title="Same clocks and power limits of the GPUs on all nodes",
    why="A synchronous run is as fast as its slowest card; cards of one model may be limited differently.",
)
def same_gpu_limits(nodes: Sequence[Node], ask: Ask) -> Finding:
    fix = (
        "nvidia-smi --query-gpu=index,name,clocks.max.sm,power.limit,enforced.power.limit --format=csv"
        "  # then sudo nvidia-smi -i INDEX -pl WATTS"
    )
    rounded = _rounded(nodes, ask)
    return compare(nodes, ask, lambda node: _limits(cards(node, ask), rounded), failed, fix)


def power_limits(here: Sequence[Card]) -> dict[str, float]:
    """The limit of each card: that of nvidia-smi -pl, or a lower one which the board enforces."""
    found: dict[str, float] = {}
    for values in _known(here, (LIMIT, ENFORCED)):
        for bus, watts in values.items():
            found[bus] = min(watts, found.get(bus, watts))
    return found


def _known(here: Sequence[Card], fields: Sequence[str]) -> list[dict[str, float]]:
    """The fields that a card reports, without a gap in any of them; n/a where no card reports one."""
    found = []
    for field in fields:
        with suppress(Absent):
            values = values_of(here, field, _number)
            refuse_gaps(here, values, field)
            found.append(values)
    if not found:
        raise Absent(f"these GPUs do not report {fields[0]}")
    return found


def _application_clocks(here: list[Card]) -> dict[str, str]:
    """Of each card that has such clocks, those below their default in words; newer drivers have none."""
    found: dict[str, str] = {}
    for kind, (field, default) in CLOCKS.items():
        if not any(field in card for card in here):
            continue
        with suppress(Absent):
            now, most = values_of(here, field, _number), values_of(here, default, _number)
            refuse_gaps(here, dict.fromkeys(now.keys() & most.keys(), 0), field)
            for bus in now.keys() & most.keys():
                low = f"{kind} {now[bus]:g} of {most[bus]:g} MHz" if now[bus] < most[bus] else ""
                found[bus] = ", ".join(filter(None, (found.get(bus), low)))
    return found


def _held(here: list[Card], clocks: Mapping[str, str]) -> list[str]:
    """Cards whose clocks a setting holds now: no field of nvidia-smi shows clocks that were locked.

    Application clocks at their default set the same bit under load: cards that have them are left out.
    """
    field = next((name for name in CLOCK_FIELDS if name in here[0]), CLOCK_FIELDS[0])
    try:
        bits = values_of(here, field, lambda text: int(text, 0))
    except Absent:
        return []
    rest = [card["bus"] for card in here if card["bus"] not in clocks]
    return [bus for bus in rest if bits.get(bus, 0) & HELD_BY_SETTING]


def _below(
    here: Sequence[Card], words: Mapping[str, str], low: Mapping[str, str], wanted: str, fix: str
) -> Finding:
    """A failure where cards of one model differ in `low`, else a warning."""
    found = ", ".join(
        f"{label(card)}: {words[card['bus']]}" for card in here if card["bus"] in words
    )
    states = defaultdict(set)
    for card in here:
        states[card["name"]].add(low.get(card["bus"]))
    uneven = any(len(each) > 1 for each in states.values())
    return (failed if uneven else warned)(found, wanted, fix)


def _reset(here: Sequence[Card], low: Mapping[str, str], held: Mapping[str, str]) -> str:
    commands = [
        f"sudo nvidia-smi -i {_ids(here, buses)} {option}"
        for buses, option in ((low, "-rac"), (held, "-rgc"))
        if buses
    ]
    return " && ".join(commands)


def _raise_limit(
    here: Sequence[Card], low: Mapping[str, str], defaults: Mapping[str, float]
) -> str:
    """One command for the cards of one default; a limit that `-pl` did not set has another cause."""
    set_to: dict[str, float] = {}
    with suppress(Absent, Unread):
        set_to = values_of(here, LIMIT, _number)
    mine = [bus for bus in low if set_to.get(bus, INFINITE) < defaults[bus] - ROUNDING_W]
    if not mine:
        return f"{SHOW_POWER}  # the board or the chassis enforces it: see its power supply and its BMC"
    watts = defaults[mine[0]]
    alike = [bus for bus in mine if defaults[bus] == watts]
    return f"sudo nvidia-smi -i {_ids(here, alike)} -pl {watts:g}"


def _ids(here: Sequence[Card], buses: Mapping[str, str] | Sequence[str]) -> str:
    return quote(",".join(str(card["index"]) for card in here if card["bus"] in buses))


def _rounded(nodes: Sequence[Node], ask: Ask) -> dict[Reading, float]:
    """Each power limit on any node in whole watts, the same for those of a model within a rounding."""
    readings = defaultdict(set)
    for node in nodes:
        with suppress(Absent, Unread):  # `compare` reads the node again and reports it
            for model, watts in _readings(cards(node, ask)).values():
                readings[model].add(watts)
    return {(model, watts): same for model, each in readings.items() for watts, same in _same(each)}


def _same(readings: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Each reading with the limit that it stands for: 399.97 W beside 400 W is 400 W."""
    highest = INFINITE
    for watts in sorted(readings, reverse=True):
        if watts < highest - ROUNDING_W:
            highest = watts
        yield watts, float(round(highest))


def _limits(here: list[Card], rounded: Mapping[Reading, float]) -> str:
    """`NVIDIA A100: 1410 MHz, 400 W`; two values where cards of one model differ."""
    clocks = _most_clocks(here)
    power = {bus: rounded[reading] for bus, reading in _readings(here).items()}
    if not clocks and not power:
        raise Absent("these GPUs report neither their highest clock nor a power limit")
    models = sorted({card["name"] for card in here})
    return "; ".join(
        f"{name}: {_text(here, name, clocks)} MHz, {_text(here, name, power)} W" for name in models
    )


def _most_clocks(here: list[Card]) -> dict[str, float]:
    field = "clocks.max.sm"
    try:
        found = values_of(here, field, _number)
    except Absent:
        return {}
    refuse_gaps(here, found, field)
    return found


def _readings(here: list[Card]) -> dict[str, Reading]:
    """Of each card that reports a power limit."""
    try:
        limits = power_limits(here)
    except Absent:
        return {}
    return {
        card["bus"]: (card["name"], limits[card["bus"]]) for card in here if card["bus"] in limits
    }


def _text(here: list[Card], model: str, values: Mapping[str, float]) -> str:
    mine = {card["bus"] for card in here if card["name"] == model}
    numbers = sorted({value for bus, value in values.items() if bus in mine})
    return " or ".join(f"{each:g}" for each in numbers) or "unknown"


def _number(text: str) -> float:
    """`400.00`; nan is none."""
    return amount(float(text))
