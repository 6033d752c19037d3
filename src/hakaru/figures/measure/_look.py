"""How verdicts look, and the finish that these figures share."""

from __future__ import annotations

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
        "type": "line", "name": name, "color": colour, "showSymbol": False, "silent": True,
        "lineStyle": {"width": width, "type": dash}, "tooltip": {"show": False},
        "data": [[digits(x), digits(y)] for x, y in points],
    }  # fmt: skip


def narrow(num_names: int) -> list[dict[str, Any]]:
    """On a phone the legend has two names a line, and the plot begins below it."""
    top = 16 + 24 * -(-num_names // 2)
    return [{"query": {"maxWidth": NARROW_PX}, "option": {"grid": {"top": max(44, top)}}}]


def around(low: float, high: float) -> dict[str, Any]:
    """The ends of an axis of powers: a little beyond the points, so that none is cut."""
    bare = {"showMinLabel": False, "showMaxLabel": False}
    return {"min": digits(low / 1.5), "max": digits(high * 1.5), "axisLabel": bare}


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
