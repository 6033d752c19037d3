"""Two runs side by side: what both measured, each as the median over its devices, and whether it changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hakaru.figures.measure.view import Reading, RunView, natural, parse_object
from hakaru.figures.measure.words import amount, interval_text
from hakaru.measure._base import Better
from hakaru.measure.record import shown_parameters
from hakaru.measure.statistics import median_interval

Change = Literal["better", "worse", "the same", "only the first", "only the second", "no number"]
Key = tuple[str, str, str, str]
# what differs first
ORDER: tuple[Change, ...] = ("worse", "better", "no number", "the same")


@dataclass(frozen=True)
class Value:
    """A median and its interval: of one device its own, of several that of their median."""

    median: float
    low: float
    high: float
    num_devices: int


@dataclass(frozen=True)
class Line:
    """One quantity in both runs; `ratio` is the second over the first."""

    benchmark: str
    parameters: str
    model: str
    quantity: str
    unit: str
    first: Value | None
    second: Value | None
    change: Change

    @property
    def ratio(self) -> float | None:
        if self.first is None or self.second is None or not self.first.median:
            return None
        ratio = self.second.median / self.first.median
        return ratio if math.isfinite(ratio) else None

    @property
    def overlap(self) -> bool | None:
        """Whether the intervals have a value in common; null where there are not two of them."""
        return _overlap(self.first, self.second) if self.first and self.second else None


def set_beside(first: RunView, second: RunView) -> list[Line]:
    """What either run has, in the order of benchmarks; a number that does not count is not there."""
    ours, theirs = _groups(first), _groups(second)
    keys = sorted({*ours, *theirs}, key=lambda key: tuple(natural(part) for part in key))
    return [_line(key, ours.get(key, []), theirs.get(key, [])) for key in keys]


class Cells(NamedTuple):
    """A line as it is printed: what it is of, a value and its interval for each run, and the change."""

    line: Line
    first: tuple[str, str]
    second: tuple[str, str]
    ratio: str
    overlap: str


class Beside(NamedTuple):
    """What both runs have, what differs first, and how many quantities only one of them has."""

    lines: list[Cells]
    only: Counter[str]


def beside(first: RunView, second: RunView) -> Beside:
    lines = set_beside(first, second)
    both = sorted(
        (each for each in lines if each.change in ORDER), key=lambda each: ORDER.index(each.change)
    )
    only = Counter(str(each.change) for each in lines if each.change not in ORDER)
    return Beside([_cells(each) for each in both], only)


def _cells(each: Line) -> Cells:
    return Cells(
        each,
        _printed(each.first, each.unit),
        _printed(each.second, each.unit),
        "–"
        if each.ratio is None
        else f"{each.ratio:.3f}"
        if each.ratio < 1e6
        else f"{each.ratio:.3g}",
        {True: "overlap", False: "apart", None: "–"}[each.overlap],
    )


def _printed(value: Value | None, unit: str) -> tuple[str, str]:
    if value is None:
        return "–", ""
    return amount(value.median, unit), interval_text(value.low, value.high)


def _groups(view: RunView) -> dict[Key, list[Reading]]:
    """By subject; the trials of a search are of one run alone and are left out."""
    groups: dict[Key, list[Reading]] = {}
    for each in view.judged:
        # links have no model of their own, and each is compared with itself
        model = each.device if each.is_link else each.model
        shown = shown_parameters(parse_object(each.parameters))
        groups.setdefault((each.benchmark, shown, model, each.quantity), []).append(each)
    return groups


def _line(key: Key, ours: Sequence[Reading], theirs: Sequence[Reading]) -> Line:
    known = (*ours, *theirs)[0]
    first, second = _value(ours), _value(theirs)
    change = _change(first, second, bool(ours), bool(theirs), known.better)
    benchmark, parameters, model, quantity = key
    return Line(benchmark, parameters, model, quantity, known.unit, first, second, change)


def _value(readings: Sequence[Reading]) -> Value | None:
    valid = [each for each in readings if each.is_valid]
    medians = [each.median for each in valid if each.median is not None]
    if not medians:
        return None
    if len(medians) > 1:
        found = median_interval(medians)
        return Value(found.median, found.low, found.high, len(medians))
    low, high = (medians[0] if end is None else end for end in (valid[0].low, valid[0].high))
    return Value(medians[0], low, high, 1)


def _change(
    first: Value | None, second: Value | None, in_first: bool, in_second: bool, better: Better
) -> Change:
    if not in_second:
        return "only the first"
    if not in_first:
        return "only the second"
    if first is None or second is None:
        return "no number"
    if _overlap(first, second):
        return "the same"
    return "better" if (second.median > first.median) == (better == "higher") else "worse"


def _overlap(first: Value, second: Value) -> bool:
    return first.low <= second.high and second.low <= first.high
