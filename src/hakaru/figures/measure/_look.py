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


def digits(value: float) -> float:
    """As many as a chart shows."""
    return float(f"{value:.5g}")


def bars(name: str, colour: str, ends: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    """Upright strokes from low to high: a line that is broken after each, as JSON holds no drawing."""
    broken = [
        point for x, low, high in ends for point in ([x, digits(low)], [x, digits(high)], [x, None])
    ]
    return {
        "type": "line", "name": name, "color": colour, "data": broken, "showSymbol": False,
        "silent": True, "lineStyle": {"width": 1.5, "opacity": 0.7}, "tooltip": {"show": False},
    }  # fmt: skip
