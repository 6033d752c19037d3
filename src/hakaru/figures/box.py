"""Boxes from the least to the most, with median and mean marked, as AAIC's Fig. 7."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import ALL, Frame
from hakaru.figures.theme import GREEN, ORANGE, Theme

FIVE = ("least", "p25", "median", "p75", "most")
WIDTH_PX = 34
MAX_BOXES = 24


@kind("box")
def box(frame: Frame, theme: Theme) -> Drawn:
    """Whiskers reach to the least and the most, the box holds the middle half of the jobs."""
    keys = [each for each in frame.columns if each in (frame.group, "quarter")]
    rows = frame.rows[:MAX_BOXES]
    names = [_name(frame, keys, row) for row in rows]
    colours = frame.colours(theme)
    mean, median = frame.say("mean"), frame.say("median")
    option = {
        "grid": parts.grid(bottom=64 + 16 * max(0, len(keys) - 1)),
        "legend": parts.legend(theme, [mean, median]),
        "tooltip": {"trigger": "item"},
        "xAxis": parts.category_axis(
            theme, _axis_name(frame, keys), names, nameGap=30 + 16 * len(keys)
        ),
        "yAxis": parts.as_y(parts.value_axis(theme, frame.say("request_ratio"), min=0)),
        "series": [
            {
                "type": "boxplot",
                "name": frame.say("request_accuracy"),
                "boxWidth": [8, WIDTH_PX],
                "itemStyle": {"color": "none", "borderWidth": 1.5},
                "data": [_box(frame, theme, row, keys, colours) for row in rows],
            },
            parts.marks(median, "rect", [WIDTH_PX, 4], ORANGE, _column(rows, "median")),
            parts.marks(mean, "triangle", 11, GREEN, _column(rows, "mean")),
        ],
    }
    more = len(frame.rows) > MAX_BOXES
    notes = (frame.cut("boxes", MAX_BOXES, len(frame.rows)),) if more else ()
    return Drawn(option, notes=notes)


def _name(frame: Frame, keys: list[str], row: dict[str, Any]) -> str:
    parts_of_name = [
        frame.name(row[key]) if key == frame.group else frame.key_name(key, row[key])
        for key in reversed(keys)
    ]
    return "\n".join(parts_of_name) or frame.key_name("class", ALL)


def _axis_name(frame: Frame, keys: list[str]) -> str:
    return ", ".join(frame.label(k if k != frame.group else frame.by) for k in keys)


def _box(
    frame: Frame, theme: Theme, row: dict[str, Any], keys: list[str], colours: dict[Any, str]
) -> dict[str, Any]:
    own = [key for key in keys if key != frame.group]
    colour = colours[row[frame.group]] if frame.group else theme.text
    five = [labels.number(row[each]) for each in FIVE]
    look = {"itemStyle": {"borderColor": colour}} | _tooltip(frame, five)
    return frame.item(five, frame.where(row, *own), **look)


def _tooltip(frame: Frame, five: list[Any]) -> dict[str, Any]:
    """The names of a box's values, where they are not ECharts' own English; nothing of the data in it."""
    named = frame.words.texts.get("box")
    if named is None:
        return {}
    values = zip(FIVE, five, strict=True)
    told = " · ".join(f"{named[each]} {'–' if n is None else f'{n:.3g}'}" for each, n in values)
    return {"tooltip": {"formatter": f"{{b}}: {told}"}}


def _column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [labels.number(row[name]) for row in rows]
