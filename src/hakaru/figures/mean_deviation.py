"""Mean and deviation by hour or weekday, working time shaded, as AAIC's Fig. 9."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import ALL, Frame
from hakaru.figures.theme import GREY, SYMBOLS, Theme

WEEKEND = 5


@kind("mean-deviation")
def mean_deviation(frame: Frame, theme: Theme) -> Drawn:
    """Points are means over the days; the bars of an ungrouped figure are one deviation each way."""
    key = frame.columns[1 if frame.group else 0]
    slots = frame.keys(key)
    lines = [_means(frame, theme, group, key, at) for at, group in enumerate(frame.groups)]
    bars = [_deviations(frame, slots, key)] if frame.group is None else []
    shade = _shade(frame, theme, key, slots)
    names = [each["name"] for each in (*lines, *bars, *shade)]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, names),
        "tooltip": {"trigger": "axis"},
        "xAxis": parts.category_axis(
            theme, frame.label(key), [frame.key_name(key, each) for each in slots]
        ),
        "yAxis": [
            parts.as_y(parts.value_axis(theme, _value_name(frame, key), min=0)),
            {"type": "value", "min": 0, "max": 1, "show": False},
        ],
        "series": [*shade, *bars, *lines],
    }
    return Drawn(option, notes=_notes(frame))


def _means(frame: Frame, theme: Theme, group: Any, key: str, at: int) -> dict[str, Any]:
    rows = {row[key]: row for row in frame.of_group(group)}
    return {
        "type": "line",
        "name": frame.say("mean") if frame.group is None else frame.name(group),
        "color": frame.colours(theme)[group],
        "symbol": SYMBOLS[at % len(SYMBOLS)],
        "symbolSize": 8,
        "lineStyle": {"width": 0 if frame.group is None else 1.5},
        "z": 5,
        "data": [_mean(frame, rows.get(slot), key) for slot in frame.keys(key)],
    }


def _mean(frame: Frame, row: dict[str, Any] | None, key: str) -> dict[str, Any]:
    if row is None or row["mean"] is None:
        return {"value": None}
    return frame.item(labels.number(row["mean"]), frame.where(row, key))


def _deviations(frame: Frame, slots: list[Any], key: str) -> dict[str, Any]:
    """Error bars: a box without a body, whose whiskers reach one deviation up and down."""
    rows = {row[key]: row for row in frame.of_group(ALL)}
    return {
        "type": "boxplot",
        "name": frame.say("one_deviation"),
        "color": GREY,
        "boxWidth": [4, 10],
        "itemStyle": {"color": GREY, "borderColor": GREY, "borderWidth": 2},
        "tooltip": {"show": False},
        "data": [_whiskers(rows[slot]) for slot in slots],
    }


def _whiskers(row: dict[str, Any]) -> list[Any] | str:
    if row["mean"] is None or row["sd"] is None:
        return "-"  # how ECharts writes a gap
    mean = labels.number(row["mean"])
    low = labels.number(max(0.0, row["mean"] - row["sd"]))
    return [low, mean, mean, mean, labels.number(row["mean"] + row["sd"])]


def _shade(frame: Frame, theme: Theme, key: str, slots: list[Any]) -> list[dict[str, Any]]:
    """Bars of full height behind the hours (days) of work, where all groups agree on them."""
    working: dict[Any, set[bool]] = {slot: set() for slot in slots}
    for row in frame.rows:
        working[row[key]].add(row.get("is_working", key == "weekday" and row[key] < WEEKEND))
    if any(len(found) > 1 for found in working.values()):
        return []
    return [
        {
            "type": "bar",
            "name": frame.say("working_days" if key == "weekday" else "working_hours"),
            "yAxisIndex": 1,
            "color": theme.shade,
            "barWidth": "100%",
            "silent": True,
            "tooltip": {"show": False},
            "data": [1 if True in working[slot] else None for slot in slots],
        }
    ]


def _value_name(frame: Frame, key: str) -> str:
    said = "submitted_a_day" if key == "weekday" else "submitted_an_hour"
    return frame.say(said, what=frame.label(frame.measure))


def _notes(frame: Frame) -> tuple[str, ...]:
    if frame.group is not None:
        return (frame.say("means_only"),)
    cut = any(r["sd"] is not None and r["sd"] > (r["mean"] or 0) for r in frame.rows)
    return (frame.say("cut_at_0"),) if cut else ()
