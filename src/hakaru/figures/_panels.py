"""Small multiples: several grids in one figure, in rows and columns, each with its title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures.theme import Theme

TOP, GAP = 56, 84
PANEL = 190


@dataclass(frozen=True)
class Panels:
    """Grids in pixels from the top, and the height of them all; several columns share the width."""

    grids: list[dict[str, Any]]
    height: int


def lay(num: int, columns: int = 1, top: int = TOP) -> Panels:
    columns = min(columns, num)
    grids = [
        {"top": top + at // columns * (PANEL + GAP), "height": PANEL}
        | _across(at % columns, columns)
        for at in range(num)
    ]
    return Panels(grids, top + -(-num // columns) * (PANEL + GAP))


def _across(column: int, columns: int) -> dict[str, Any]:
    if columns == 1:
        return {"left": 84, "right": 28}
    width = 100 / columns
    return {"left": f"{width * column + 9:g}%", "width": f"{width - 11:g}%"}


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
