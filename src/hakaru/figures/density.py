"""A scatter with density: cells that the engine counted, on two logarithmic axes."""

from __future__ import annotations

import math
from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures import _where as where
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import SYMBOLS, Theme

EDGE = "_from_h"
PLOT_PX = (800, 330)


@kind("density")
def density(frame: Frame, theme: Theme) -> Drawn:
    """A square a cell, darker for more jobs; where grouped, the group's colour, larger for more."""
    x, y = (each.removesuffix(EDGE) for each in frame.columns if each.endswith(EDGE))
    series = [_cells(frame, theme, group, (x, y), at) for at, group in enumerate(frame.groups)]
    series[0]["markLine"] = _diagonal(frame, theme, (x, y))
    names = [frame.name(group) for group in frame.groups]
    option = {
        "grid": parts.grid(right=28, top=64),
        "legend": parts.legend(theme, names),
        "tooltip": {"trigger": "item"},
        "xAxis": parts.log_axis(theme, frame.label(f"{x}_h"), **_bounds(frame, x)),
        "yAxis": parts.as_y(parts.log_axis(theme, frame.label(f"{y}_h"), **_bounds(frame, y))),
        "series": series,
    }
    if frame.group is None:
        option["visualMap"] = _scale(frame, theme)
    return Drawn(option, 460)


def _cells(
    frame: Frame, theme: Theme, group: Any, axes: tuple[str, str], at: int
) -> dict[str, Any]:
    series = {
        "type": "scatter",
        "name": frame.name(group),
        "symbol": "rect" if frame.group is None else SYMBOLS[at % len(SYMBOLS)],
        "symbolSize": _cell_px(frame, axes),
        "encode": {"x": 0, "y": 1, "tooltip": [0, 1, 2]},
        "dimensions": [
            *(frame.label(f"{each}_h") for each in axes),
            frame.label(frame.known_measure),
        ],
        "data": [_cell(frame, row, axes) for row in frame.of_group(group)],
    }
    if frame.group is None:
        return series
    return series | {"color": frame.colours(theme)[group], "itemStyle": {"opacity": 0.6}}


def _cell_px(frame: Frame, axes: tuple[str, str]) -> list[int]:
    """As large as a cell on a page of ordinary width, less a gap."""
    row = frame.rows[0]
    sides = []
    for axis, px in zip(axes, PLOT_PX, strict=True):
        bounds = _bounds(frame, axis)
        cell = math.log(row[f"{axis}_to_h"] / row[f"{axis}_from_h"])
        cells = math.log(bounds["max"] / bounds["min"]) / cell
        sides.append(min(16, max(3, int(px / cells) - 1)))
    return sides


def _cell(frame: Frame, row: dict[str, Any], axes: tuple[str, str]) -> dict[str, Any]:
    """At the middle of the cell, which is that of its logarithms."""
    edges = [(row[f"{axis}_from_h"], row[f"{axis}_to_h"]) for axis in axes]
    middle = [labels.number(math.sqrt(low * high)) for low, high in edges]
    # what is under a second is counted with the first second
    within = [
        where.between(f"{axis}_s", low * 3600 if low * 3600 >= 1 else None, high * 3600)
        for axis, (low, high) in zip(axes, edges, strict=True)
    ]
    count = labels.number(row[frame.known_measure])
    item = frame.item([*middle, count], frame.where(row, more=within))
    return item if frame.group is None else item | {"symbolSize": _size(frame, row)}


def _size(frame: Frame, row: dict[str, Any]) -> int:
    """The area goes with the count, down to a size that can still be seen."""
    most = max(each[frame.known_measure] or 0 for each in frame.rows) or 1
    return max(4, round(26 * math.sqrt((row[frame.known_measure] or 0) / most)))


def _diagonal(frame: Frame, theme: Theme, axes: tuple[str, str]) -> dict[str, Any]:
    """Where both are the same."""
    lows, highs = zip(
        *((b["min"], b["max"]) for b in (_bounds(frame, each) for each in axes)), strict=True
    )
    low, high = max(lows), min(highs)
    if low >= high:
        return {}
    label = {"formatter": frame.say("all_used"), "color": theme.muted, "position": "insideEndTop"}
    return {
        "silent": True,
        "symbol": "none",
        "lineStyle": {"color": theme.muted, "type": "dashed"},
        "label": label,
        "data": [[{"coord": [low, low]}, {"coord": [high, high]}]],
    }


def _bounds(frame: Frame, axis: str) -> dict[str, float]:
    """Whole decades around the cells."""
    low = min(row[f"{axis}_from_h"] for row in frame.rows)
    high = max(row[f"{axis}_to_h"] for row in frame.rows)
    ends = {"min": 10.0 ** math.floor(math.log10(low)), "max": 10.0 ** math.ceil(math.log10(high))}
    return {end: float(f"{value:.6g}") for end, value in ends.items()}


def _scale(frame: Frame, theme: Theme) -> dict[str, Any]:
    """A colour for each power of ten."""
    most = max((row[frame.known_measure] or 0 for row in frame.rows), default=0)
    powers = range(math.floor(math.log10(max(most, 1))) + 1)
    colours = _spread(theme.ramp, len(powers))
    pieces = [
        {"gte": 10**p if p else 0, "lt": 10 ** (p + 1), "label": _span(frame, p), "color": colour}
        for p, colour in zip(powers, colours, strict=True)
    ]
    return {
        "type": "piecewise",
        "dimension": 2,
        "pieces": pieces,
        "showLabel": True,
        "orient": "horizontal",
        "left": "center",
        "top": 0,
        "text": [frame.label(frame.known_measure), ""],
        "textStyle": {"color": theme.text, "fontSize": theme.small},
    }


def _span(frame: Frame, power: int) -> str:
    """Whole jobs, from the first of a decade to its last; hours have fractions, below one and between."""
    if frame.known_measure == "share":
        return ""
    if frame.measure == "num_jobs":
        return f"{10**power:,}–{10 ** (power + 1) - 1:,}"
    return f"{10**power:,}–{10 ** (power + 1):,}" if power else "< 10"


def _spread(ramp: tuple[str, ...], num: int) -> list[str]:
    last = len(ramp) - 1
    return [ramp[round(at * last / max(1, num - 1))] for at in range(num)]
