"""The card curve: devices sorted by what they reach (as MN-1's Fig. 3), and what the slowest costs a job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.choice import Subject
from hakaru.figures.measure.view import Reading, RunView
from hakaru.figures.measure.words import behind
from hakaru.figures.theme import Theme
from hakaru.measure.fleet import cost_of_slowest
from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.verdict import ORDER, Verdict

TITLE, QUESTION = "Devices from slow to fast", "How far apart are devices that should be equal?"
MOST_CARDS = 4_096
LEAST_COST = 0.005  # of the median; below, the slowest is as fast as the others


@dataclass(frozen=True)
class Curve:
    """Devices of one model, the slowest first, their median, and what is not drawn."""

    subject: Subject
    readings: list[Reading]
    median: float
    num_left_out: int

    @property
    def slowest(self) -> Reading:
        return self.readings[0]


def curve_of(view: RunView, subject: Subject) -> Curve | None:
    """Only numbers that count: none of a device that failed or was contaminated."""
    all = subject.of(view)
    valid = [each for each in all if each.is_valid]
    if not valid:
        return None
    up = subject.better == "higher"
    ordered = sorted(valid, key=lambda each: _value(each) if up else -_value(each))
    middle = median(_value(each) for each in valid)
    return Curve(subject, ordered, middle, len(all) - len(valid))


def cost_sentence(curve: Curve) -> str | None:
    """What the slowest device costs a synchronous job on all of them; None for a single device."""
    num = len(curve.readings)
    if num < 2:
        return None
    higher = curve.subject.better == "higher"
    rates = [_value(each) if higher else 1 / _value(each) for each in curve.readings
             if _value(each) > 0]  # fmt: skip
    hours = cost_of_slowest(rates)
    lack = 1 - min(rates) / median(rates) if rates else math.nan
    if not math.isfinite(hours) or not lack > LEAST_COST:
        return f"The slowest of {num:,} devices is within {share(LEAST_COST)} of their median."
    if curve.slowest.verdict is not Verdict.SLOW:  # the lowest of many medians is low by chance
        return f"The slowest of {num:,} devices is {share(lack)} under their median, which may be chance."
    what = "GPU" if curve.slowest.device.startswith(("cuda", "gpu")) else "device"
    where = f"{curve.slowest.host} {curve.slowest.device}"
    return (
        f"A synchronous job on all {num:,} devices runs at the speed of {where}, {share(lack)} under "
        f"the median, and loses {amount(round(hours))} {what}-hours a month."
    )


def card_curve(view: RunView, subject: Subject, dark: bool = False) -> Figure:
    theme = look.theme_of(dark)
    curve = curve_of(view, subject)
    if curve is None:
        text = "No device has a valid number of this."
        return look.nothing("cards", TITLE, QUESTION, theme, text)
    places = _thinned(curve.readings)
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, []),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.value_axis(
            theme, "Devices, the slowest first", min=0, max=max(2, len(curve.readings)), minInterval=1
        ),
        "yAxis": parts.as_y(parts.value_axis(theme, subject.axis, scale=True)),
        "series": [*_series(curve, places), _median_line(curve, theme)],
    }  # fmt: skip
    return look.figure("cards", TITLE, _asked(curve), option, theme, _notes(curve, len(places)))


def _thinned(readings: Sequence[Reading]) -> list[int]:
    """The places that are drawn: all that are not good, and of the others as many as there is room for."""
    step = -(-len(readings) // MOST_CARDS)
    return [at for at, each in enumerate(readings)
            if at % step == 0 or each.verdict is not Verdict.GOOD]  # fmt: skip


def _series(curve: Curve, places: Sequence[int]) -> list[dict[str, Any]]:
    found = []
    for verdict in reversed(ORDER):
        items = [_item(at, curve.readings[at]) for at in places
                 if curve.readings[at].verdict is verdict]  # fmt: skip
        if items:
            size = 5 if verdict is Verdict.GOOD else 12
            symbol = "circle" if verdict is Verdict.GOOD else look.SYMBOLS[verdict]
            found.append(parts.marks(verdict, symbol, size, look.COLOURS[verdict], items))
    return found


def _item(at: int, each: Reading) -> dict[str, Any]:
    lines = [f"{each.host} {each.device}", amount(each.median, each.unit), behind(each)]
    name = "\n".join(line for line in lines if line)
    return {"value": [at + 1, look.digits(_value(each))], "name": name}


def _median_line(curve: Curve, theme: Theme) -> dict[str, Any]:
    label = f"median {amount(curve.median, curve.subject.unit)}"
    return {
        "type": "line",
        "name": "median",
        "color": theme.text,
        "showSymbol": False,
        "silent": True,
        "lineStyle": {"width": 1, "type": "dashed"},
        "data": [[1, look.digits(curve.median)],
                 [max(2, len(curve.readings)), look.digits(curve.median)]],
        "endLabel": {"show": True, "formatter": label, "color": theme.text, "fontSize": theme.small,
                     "align": "right", "verticalAlign": "top", "offset": [-4, 6]},
    }  # fmt: skip


def _notes(curve: Curve, num_drawn: int) -> list[str]:
    is_slow = any(each.verdict is Verdict.SLOW for each in curve.readings)
    triangles = " Slow devices are marked by triangles." if is_slow else ""
    notes = [f"The axis does not begin at zero.{triangles}"]
    if cost := cost_sentence(curve):
        notes.insert(0, cost)
    if curve.num_left_out:
        left = counted(curve.num_left_out, "device has", "devices have")
        notes.append(
            f"{left} no valid number and {'is' if curve.num_left_out == 1 else 'are'} not drawn."
        )
    if num_drawn < len(curve.readings):
        notes.append(f"{num_drawn:,} of {len(curve.readings):,} devices are drawn.")
    return notes


def _asked(curve: Curve) -> str:
    many = f"{len(curve.readings):,} × {curve.subject.model}"
    return f"{QUESTION} By {curve.subject.title}, on {many}."


def _value(each: Reading) -> float:
    assert each.median is not None
    return each.median
