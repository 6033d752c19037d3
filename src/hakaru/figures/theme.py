"""One theme for all figures: colours that stay with what they stand for, in light, in dark and in print.

The eight colours are told apart with normal sight and without red, green or blue cones, and stand out from
both backgrounds (tests/figures/test_theme.py computes it). Lines differ in dash and symbol too.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

BLUE, ORANGE, GREEN, VIOLET = "#295cde", "#da7b17", "#077647", "#735a97"
SKY, BROWN, ROSE, LEAF = "#2399ef", "#965600", "#af868e", "#709e54"
PALETTE = (BLUE, ORANGE, GREEN, VIOLET, SKY, BROWN, ROSE, LEAF)
GREY = "#787f9b"
MAGENTA = "#e141cd"

CLASS_COLOURS = {
    "single-pe": BLUE,
    "single-node": ORANGE,
    "multi-node": GREEN,
    "unknown-nodes": GREY,
}
STATE_COLOURS = {
    "pending": GREY,
    "running": SKY,
    "completed": GREEN,
    "failed": ORANGE,
    "timeout": BROWN,
    "cancelled": ROSE,
    "killed": VIOLET,
    "out_of_memory": MAGENTA,
    "node_failed": BLUE,
    "preempted": LEAF,
}
DASHES = ("solid", "dashed", "dotted")
SYMBOLS = ("circle", "rect", "triangle", "diamond")
# from few to many; both ends stand out from either background
RAMP = ("#c9d7f5", "#8fb0ee", "#4f7fe3", "#2a52b8", "#172f74")
DARK_RAMP = ("#1d2a4d", "#2a4aa0", "#4a7be6", "#8fb4f7", "#dce8ff")
# single quotes: ECharts writes the font into an attribute of its SVG as it is
FONT = (
    "Inter, 'Helvetica Neue', 'Segoe UI', 'Noto Sans', 'Noto Sans CJK JP', 'Noto Sans CJK KR', "
    "'Hiragino Sans', 'Yu Gothic', 'Malgun Gothic', Arial, sans-serif"
)


@dataclass(frozen=True)
class Theme:
    """Text and line colours of one background; the series' colours are the same on both."""

    background: str
    text: str
    muted: str
    line: str
    shade: str
    ramp: tuple[str, ...]
    font: str = FONT
    size: int = 13
    small: int = 12

    def colour(self, column: str, value: Any) -> str:
        """The colour of a class, a state or any other name, the same in every figure."""
        if value is None or value == "(unknown)":
            return GREY
        if column in ("parallelism", "class") and value == "all":
            return self.text
        fixed = {"parallelism": CLASS_COLOURS, "class": CLASS_COLOURS, "state": STATE_COLOURS}
        known = fixed.get(column, {})
        return known[value] if value in known else PALETTE[_place(str(value))]

    def colours(self, column: str, values: Sequence[Any]) -> dict[Any, str]:
        """A colour each; where two names fall on one colour, the later by name takes the next free."""
        chosen: dict[Any, str] = {}
        for value in sorted(values, key=lambda each: (each is None, str(each))):
            colour = self.colour(column, value)
            if colour in chosen.values() and colour in PALETTE:
                at = PALETTE.index(colour)
                around = PALETTE[at:] + PALETTE[:at]
                colour = next((each for each in around if each not in chosen.values()), colour)
            chosen[value] = colour
        return {value: chosen[value] for value in values}


LIGHT = Theme(
    background="#ffffff",
    text="#1b1f24",
    muted="#545b66",
    line="#d5d9df",
    shade="rgba(218, 123, 23, 0.13)",
    ramp=RAMP,
)
DARK = Theme(
    background="#14181f",
    text="#eef1f5",
    muted="#aab2be",
    line="#39414d",
    shade="rgba(218, 123, 23, 0.20)",
    ramp=DARK_RAMP,
)


def _place(name: str) -> int:
    return zlib.crc32(f"hue:{name}".encode()) % len(PALETTE)
