"""How verdicts look, and the finish that these figures share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import HEIGHT, Figure
from hakaru.figures.theme import DARK, GREEN, GREY, LIGHT, MAGENTA, ORANGE, VIOLET, Theme
from hakaru.measure.verdict import Verdict
from hakaru.texts import language

WORDS = language("en")
# a colour and a shape each, so that the colour is not needed
COLOURS = {
    Verdict.GOOD: GREEN,
    Verdict.SLOW: ORANGE,
    Verdict.FAILED: MAGENTA,
    Verdict.CONTAMINATED: VIOLET,
    Verdict.NOT_MEASURED: GREY,
}
SYMBOLS = {
    Verdict.GOOD: "rect",
    Verdict.SLOW: "triangle",
    Verdict.FAILED: "diamond",
    Verdict.CONTAMINATED: "circle",
    Verdict.NOT_MEASURED: "emptyCircle",
}
NARROW_PX = 480
LEGEND_PX, LEGEND_PX_NARROW = 480, 310  # what a legend may take of a line
ENTRY_PX, LETTER_PX, LINE_PX = 30, 6.7, 22
FEW_POWERS = 3
SMALL_ICONS = {"itemWidth": 12, "itemHeight": 11}  # of a legend whose names have marks


def theme_of(dark: bool) -> Theme:
    return DARK if dark else LIGHT


def figure(
    kind: str,
    title: str,
    question: str,
    option: dict[str, Any],
    theme: Theme,
    notes: Sequence[str] = (),
    height: int = HEIGHT,
) -> Figure:
    finished = parts.finished(option, theme, title, WORDS)
    return Figure(kind, title, question, finished, tuple(notes), height, tuple(notes))


def nothing(kind: str, title: str, question: str, theme: Theme, text: str) -> Figure:
    drawn = parts.empty(theme, text)
    return figure(kind, title, question, drawn.option, theme, (), drawn.height)


def line(
    name: str, colour: str, dash: str, points: Sequence[tuple[float, float]], width: float = 1.5
) -> dict[str, Any]:
    """A line without marks, between points that are drawn above it or computed."""
    return {
        "type": "line", "name": name, "color": colour, "symbol": "none", "silent": True,
        "lineStyle": {"width": width, "type": dash}, "tooltip": {"show": False},
        "data": [[digits(x), digits(y)] for x, y in points],
    }  # fmt: skip


def hollow(theme: Theme, colour: str) -> dict[str, Any]:
    """A mark that is only an outline; ECharts' own empty symbols are white inside, also in the dark."""
    return {"color": theme.background, "borderColor": colour, "borderWidth": 2, "opacity": 1}


def narrow(num_names: int) -> list[dict[str, Any]]:
    """On a phone the legend has two names a line, and the plot begins below it."""
    top = 16 + 24 * -(-num_names // 2)
    return [{"query": {"maxWidth": NARROW_PX}, "option": {"grid": {"top": max(44, top)}}}]


def legend_above(theme: Theme, names: Sequence[str], **grid: Any) -> dict[str, Any]:
    """A legend that is always whole, and the plot below as many lines as it takes, also on a phone."""
    return {
        "grid": parts.grid(**grid | {"top": _room(names, LEGEND_PX)}),
        "legend": parts.legend(theme, names, show=True, type="plain", **SMALL_ICONS),
        "media": [{
            "query": {"maxWidth": NARROW_PX},
            "option": {"grid": {"top": _room(names, LEGEND_PX_NARROW)}},
        }],
    }  # fmt: skip


def _room(names: Sequence[str], width: int) -> int:
    lines, used = 1, 0
    for name in names:
        own = ENTRY_PX + round(LETTER_PX * len(name))
        lines, used = (lines + 1, own) if used and used + own > width else (lines, used + own)
    return 24 + LINE_PX * lines


def powers(low: float, high: float) -> dict[str, Any]:
    """An axis of powers with ticks at 1, 2 and 5, as a span of few powers would have hardly any."""
    low, high = digits(low), digits(high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = [digits(digit * 10.0**power) for power in range(first, last + 1) for digit in (1, 2, 5)]
    if last - first > FEW_POWERS:
        every = every[::3]
    return at_values([each for each in every if low / 1.5 <= each <= high * 1.5], low, high)


def at_values(values: Sequence[float], low: float, high: float) -> dict[str, Any]:
    """An axis of powers from a little below `low` to a little above `high`, with these ticks alone."""
    ticks = {"customValues": list(values)}
    return {"min": digits(low / 1.5), "max": digits(high * 1.5), "axisLabel": ticks, "axisTick": ticks,
            "splitLine": {"show": False}}  # fmt: skip


def digits(value: float) -> float:
    """As many as a chart shows."""
    return float(f"{value:.5g}")


def bars(
    name: str,
    colour: str,
    ends: Sequence[tuple[float, float, float]],
    width: float = 1.5,
    opacity: float = 0.7,
) -> dict[str, Any]:
    """Upright strokes from low to high: a line that is broken after each, as JSON holds no drawing."""
    broken = [
        point for x, low, high in ends for point in ([x, digits(low)], [x, digits(high)], [x, None])
    ]
    return {
        "type": "line", "name": name, "color": colour, "data": broken, "showSymbol": False,
        "silent": True, "lineStyle": {"width": width, "opacity": opacity}, "tooltip": {"show": False},
    }  # fmt: skip
