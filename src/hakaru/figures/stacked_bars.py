"""Stacked bars by quarter, as AAIC's Fig. 6d: how many jobs of each class, and each class' share."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _panels as panels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import Theme


@kind("stacked-bars")
def stacked_bars(frame: Frame, theme: Theme) -> Drawn:
    """Counts above shares; where grouped, a panel of shares for each group."""
    along, part = frame.columns[1:3] if frame.group else frame.columns[:2]
    wanted = [(group, "share") for group in frame.groups]
    if frame.group is None:
        wanted = [(wanted[0][0], frame.measure), *wanted]
    laid = panels.lay(len(wanted), columns=1 if frame.group is None else 2)
    quarters = [frame.key_name(along, each) for each in frame.keys(along)]
    titles = [frame.name(group) if frame.group else "" for group, _ in wanted]
    option = {
        "grid": laid.grids,
        "title": panels.titles(theme, laid, titles),
        "legend": parts.legend(theme, [frame.key_name(part, each) for each in _parts(frame, part)]),
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": [
            parts.category_axis(theme, frame.label(along), quarters, gridIndex=at)
            for at in range(len(wanted))
        ],
        "yAxis": [_value_axis(frame, theme, wanted[at][1], at) for at in range(len(wanted))],
        "series": [
            series
            for at, (group, measure) in enumerate(wanted)
            for series in _stack(frame, theme, (along, part), group, measure, at)
        ],
    }
    return Drawn(option, laid.height)


def _parts(frame: Frame, part: str) -> list[Any]:
    return list(dict.fromkeys(row[part] for row in frame.rows))


def _value_axis(frame: Frame, theme: Theme, measure: str, at: int) -> dict[str, Any]:
    if measure != "share":
        return parts.as_y(parts.value_axis(theme, frame.label(measure), gridIndex=at))
    return parts.as_y(parts.percent_axis(theme, _share_of(frame), gridIndex=at))


def _share_of(frame: Frame) -> str:
    if frame.measure == "num_jobs":
        return frame.say("share_of_jobs")
    return frame.say("share_of_hours", hours=frame.label("pe_hours"))


def _stack(
    frame: Frame, theme: Theme, keys: tuple[str, str], group: Any, measure: str, at: int
) -> list[dict[str, Any]]:
    along, part = keys
    rows = {(row[along], row[part]): row for row in frame.of_group(group)}
    colours = theme.colours(part, _parts(frame, part))
    return [
        {
            "type": "bar",
            "name": frame.key_name(part, each),
            "stack": f"panel {at}",
            "xAxisIndex": at,
            "yAxisIndex": at,
            "color": colours[each],
            "barMaxWidth": 64,
            "itemStyle": {"borderColor": theme.background, "borderWidth": 1},
            "data": [_item(frame, rows.get((x, each)), keys, measure) for x in frame.keys(along)],
        }
        for each in _parts(frame, part)
    ]


def _item(
    frame: Frame, row: dict[str, Any] | None, keys: tuple[str, str], measure: str
) -> dict[str, Any]:
    if row is None:
        return {"value": None}
    return frame.item(labels.number(row[measure], measure), frame.where(row, *keys))
