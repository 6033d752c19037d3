"""Two runs side by side, the earlier first: medians over the devices, and which of these have changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hakaru.figures.measure.view import ARROW, natural
from hakaru.measure.compare import (
    BETTER,
    ONLY_AFTER,
    ONLY_BEFORE,
    SAME,
    TOO_FEW,
    UNSURE,
    WORSE,
    Row,
    compare_runs,
    rank,
    signed_share,
)
from hakaru.measure.numbers import amount, interval_text
from hakaru.measure.record import Run, shown_parameters
from hakaru.measure.statistics import LEAST_LEVEL, median_interval

Key = tuple[str, str, str, str]
Ends = tuple[float, float] | None
ONLY = (ONLY_BEFORE, ONLY_AFTER)
ALIKE = (SAME, UNSURE, TOO_FEW)  # of which nobody can say that it has changed


@dataclass(frozen=True)
class Value:
    """A median and its interval, if there is one: of one device its own, of several that of their median."""

    median: float
    low: float | None
    high: float | None
    num_devices: int


@dataclass(frozen=True)
class Line:
    """One quantity of the devices of a model in both runs.

    The medians only sum up: `change` is that of the device that differs most, `devices` counts the changes,
    and `most` names the device.
    """

    benchmark: str
    parameters: str
    model: str
    quantity: str
    unit: str
    first: Value | None
    second: Value | None
    ratio: float | None
    change: str
    devices: dict[str, int]
    most: str = ""

    @property
    def differs(self) -> bool:
        """Whether a device has changed, lost its number, or is in one of the runs alone."""
        return bool(self.devices.keys() - set(ALIKE))


def set_beside(earlier: Run, later: Run) -> list[Line]:
    """What either run has, in the order of benchmarks; a number that does not count is not there."""
    groups: dict[Key, list[Row]] = {}
    for row in compare_runs(earlier, later):
        key = (row.benchmark, shown_parameters(row.parameters), row.model, row.quantity)
        groups.setdefault(key, []).append(row)
    keys = sorted(groups, key=lambda key: tuple(natural(part) for part in key))
    return [_line(key, groups[key]) for key in keys]


class Cells(NamedTuple):
    """A line as it is printed: a value and its interval for each run, and what has changed."""

    line: Line
    first: tuple[str, str]
    second: tuple[str, str]
    ratio: str
    change: str


class Beside(NamedTuple):
    """What both runs have, what differs first, and how many quantities only one of them has."""

    lines: list[Cells]
    only: Counter[str]


def beside(lines: Sequence[Line]) -> Beside:
    both = sorted((each for each in lines if each.change not in ONLY), key=lambda x: rank(x.change))
    only = Counter(each.change for each in lines if each.change in ONLY)
    return Beside([_cells(each) for each in both], only)


def _cells(each: Line) -> Cells:
    return Cells(
        each,
        _printed(each.first, each.unit),
        _printed(each.second, each.unit),
        "–"
        if each.ratio is None
        else f"{each.ratio:,.3f}"
        if each.ratio < 1e6
        else amount(each.ratio),
        _changed(each),
    )


def _printed(value: Value | None, unit: str) -> tuple[str, str]:
    if value is None:
        return "–", ""
    return amount(value.median, unit), interval_text(value.low, value.high)


def _changed(each: Line) -> str:
    """As `1 of 1,024 worse: n7/cuda:3 −20 %; 8 only before, 2 better`; of one device just the change."""
    num = sum(each.devices.values())
    if num == 1:
        return each.change
    first = f"{each.devices[each.change]:,} of {num:,} {each.change}"
    most = f": {each.most}" if each.most else ""
    others = sorted(each.devices.keys() - {each.change, *ALIKE}, key=lambda x: (rank(x), x))
    more = ", ".join(f"{each.devices[name]:,} {name}" for name in others)
    return first + most + (f"; {more}" if more else "")


def _line(key: Key, rows: Sequence[Row]) -> Line:
    first = _value([(each.before, each.before_ends) for each in rows])
    second = _value([(each.after, each.after_ends) for each in rows])
    ratio = second.median / first.median if first and second else math.inf
    devices = Counter(each.change for each in rows)
    change = min(devices, key=lambda name: (name in ONLY, rank(name)))
    return Line(
        *key, rows[0].unit, first, second, ratio if math.isfinite(ratio) else None, change,
        dict(devices), _most([each for each in rows if each.change == change]),
    )  # fmt: skip


def _value(found: Sequence[tuple[float | None, Ends]]) -> Value | None:
    known = [(median, ends) for median, ends in found if median is not None]
    if not known:
        return None
    if len(known) == 1:
        median, ends = known[0]
        low, high = ends or (None, None)
        return Value(median, low, high, 1)
    over = median_interval([median for median, _ in known])
    is_known = over.level >= LEAST_LEVEL
    low, high = (over.low, over.high) if is_known else (None, None)
    return Value(over.median, low, high, len(known))


def _most(rows: Sequence[Row]) -> str:
    """Of those that surely changed, the one that did most."""
    known = [(abs(math.log(row.ratio)), row) for row in rows if row.ratio]
    if not known or rows[0].change not in (WORSE, BETTER):
        return ""
    _, row = max(known, key=lambda pair: pair[0])
    where = row.where.partition("/")[2] if ARROW in row.where else row.where
    return f"{where} {signed_share((row.ratio or 1.0) - 1)}"
