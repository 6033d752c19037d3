"""Small multiples: several grids in one figure, in rows and columns, each with its title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures.theme import Theme

TOP, GAP, LEFT, RIGHT = 56, 84, 84, 28
PANEL = 190


@dataclass(frozen=True)
class Panels:
    """Grids in pixels from the top and in percent from the left, and the height of them all."""

    grids: list[dict[str, Any]]
    height: int


def lay(num: int, columns: int = 1, height: int = PANEL) -> Panels:
    columns = min(columns, num)
    rows = -(-num // columns)
    width = 100 / columns
    grids = [
        {
            "left": f"{width * (at % columns) + 9 / columns:g}%",
            "width": f"{width - 12 / columns:g}%",
            "top": TOP + at // columns * (height + GAP),
            "height": height,
        }
        for at in range(num)
    ]
    return Panels(grids, TOP + rows * (height + GAP))


def titles(theme: Theme, panels: Panels, names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "text": name,
            "left": grid["left"],
            "top": grid["top"] - 24,
            "textStyle": {"color": theme.text, "fontSize": theme.size, "fontWeight": "bold"},
        }
        for grid, name in zip(panels.grids, names, strict=True)
        if name
    ]
