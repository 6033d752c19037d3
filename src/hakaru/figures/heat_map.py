"""A heat map of the week: hours across, days down, the mean of each as a colour."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _panels as panels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import Theme

DOWN, ACROSS, VALUE = "weekday", "hour", "mean"


@kind("heat-map")
def heat_map(frame: Frame, theme: Theme) -> Drawn:
    """One panel or, where grouped, one for each group, all on one scale of colours."""
    num = len(frame.groups)
    laid = panels.lay(num, columns=1 if num == 1 else 2, top=56 if num == 1 else 88)
    across = [frame.key_name(ACROSS, each) for each in _hours(frame)]
    down = [frame.key_name(DOWN, each) for each in frame.keys(DOWN)]
    titles = [frame.name(group) if frame.group else "" for group in frame.groups]
    option = {
        "grid": laid.grids,
        "title": panels.titles(theme, laid, titles),
        "tooltip": {"trigger": "item"},
        "visualMap": _scale(frame, theme),
        "xAxis": [
            parts.category_axis(theme, frame.label(ACROSS), across, gridIndex=at)
            for at in range(num)
        ],
        "yAxis": [
            parts.category_axis(theme, "", down, gridIndex=at, inverse=True) for at in range(num)
        ],
        "series": [_cells(frame, theme, group, at) for at, group in enumerate(frame.groups)],
    }
    return Drawn(option, laid.height)


def _cells(frame: Frame, theme: Theme, group: Any, at: int) -> dict[str, Any]:
    places = [{key: i for i, key in enumerate(keys)} for keys in (_hours(frame), frame.keys(DOWN))]
    return {
        "type": "heatmap",
        "name": _what(frame),
        "xAxisIndex": at,
        "yAxisIndex": at,
        "itemStyle": {"borderColor": theme.background, "borderWidth": 1},
        "data": [
            frame.item(
                [places[0][row[ACROSS]], places[1][row[DOWN]], labels.number(row[VALUE])],
                frame.where(row, DOWN, ACROSS),
            )
            for row in frame.of_group(group)
            if row[VALUE] is not None
        ],
    }


def _hours(frame: Frame) -> list[Any]:
    """In order, though the first day may lack some: cells of few people are withheld."""
    return sorted(frame.keys(ACROSS))


def _scale(frame: Frame, theme: Theme) -> dict[str, Any]:
    most = max((row[VALUE] or 0 for row in frame.rows), default=0)
    return {
        "type": "continuous",
        "min": 0,
        "max": labels.number(most) or 1,
        "calculable": True,
        "orient": "horizontal",
        "left": "center",
        "top": 0,
        "itemWidth": 12,
        "itemHeight": 180,
        "precision": 1,
        "text": [_what(frame), ""],
        "textStyle": {"color": theme.text, "fontSize": theme.small},
        "inRange": {"color": list(theme.ramp)},
    }


def _what(frame: Frame) -> str:
    return frame.say("mean_an_hour", what=frame.label(frame.measure))
