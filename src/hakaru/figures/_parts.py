"""The parts that the kinds share: axes, legend, tooltip, the empty state, and the finish of an option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hakaru.figures._base import Drawn
from hakaru.figures.theme import Theme
from hakaru.texts import Language

Option = dict[str, Any]


def category_axis(theme: Theme, name: str, data: Sequence[str], **more: Any) -> Option:
    return _axis(theme, "category", name, more) | {
        "data": list(data),
        "splitLine": {"show": False},
    }


def value_axis(theme: Theme, name: str, **more: Any) -> Option:
    return _axis(theme, "value", name, more)


def percent_axis(theme: Theme, name: str, **more: Any) -> Option:
    """From 0 to 100, in percent."""
    return _axis(theme, "value", name, {"min": 0, "max": 100} | more)


def log_axis(theme: Theme, name: str, **more: Any) -> Option:
    return _axis(theme, "log", name, {"logBase": 10} | more)


def time_axis(theme: Theme, name: str, words: Language, **more: Any) -> Option:
    """ECharts' own steps are English: months have their short names."""
    steps = words.texts.get("time_axis")
    own = {"axisLabel": {"formatter": dict(steps)}} if steps else {}
    return _axis(theme, "time", name, own | more) | {"splitLine": {"show": False}}


def as_y(axis: Option) -> Option:
    """An axis at the left: its name stands upright beside it."""
    return axis | {"nameRotate": 90, "nameGap": 56}


def legend(theme: Theme, names: Sequence[str], **more: Any) -> Option:
    """Above the plot; it scrolls where it is too long, and is left out where one name says nothing."""
    return {
        "show": len(names) > 1,
        "type": "scroll",
        "top": 0,
        "data": list(names),
        "textStyle": {"color": theme.text, "fontSize": theme.small},
        "pageTextStyle": {"color": theme.text},
        "pageIconColor": theme.text,
        "pageIconInactiveColor": theme.line,
    } | more


def marks(name: str, symbol: str, size: Any, colour: str, data: Sequence[Any]) -> Option:
    """A statistic of each row as a mark above what else is drawn."""
    return {
        "type": "scatter",
        "name": name,
        "symbol": symbol,
        "symbolSize": size,
        "color": colour,
        "itemStyle": {"opacity": 1},
        "z": 5,
        "data": list(data),
    }


def grid(**more: Any) -> Option:
    return {"left": 84, "right": 28, "top": 44, "bottom": 64} | more


def empty(theme: Theme, text: str) -> Drawn:
    title = {
        "text": text,
        "left": "center",
        "top": "middle",
        "textStyle": {"color": theme.muted, "fontSize": theme.size, "fontWeight": "normal"},
    }
    return Drawn({"title": title, "series": []}, height=160)


def finished(option: Option, theme: Theme, title: str, words: Language) -> Option:
    """What every option has: font, background, tooltip in the theme's colours, words for a screen reader."""
    tooltip = {
        "backgroundColor": theme.background,
        "borderColor": theme.line,
        "textStyle": {"color": theme.text, "fontSize": theme.small},
        "confine": True,
    }
    return {
        "backgroundColor": theme.background,
        "textStyle": {"fontFamily": theme.font, "fontSize": theme.size, "color": theme.text},
        "animation": False,
        "aria": {
            "enabled": True,
            "label": {"general": {"withTitle": title, "withoutTitle": title}} | _read_aloud(words),
        },
    } | (option | {"tooltip": tooltip | option.get("tooltip", {})})


def _read_aloud(words: Language) -> Option:
    """What a screen reader says of series and data, where it is not ECharts' own English."""
    said = words.texts.get("aria")
    if said is None:
        return {}
    series = {"withName": said["series"], "withoutName": "", "separator": {"middle": "", "end": ""}}
    return {
        "series": {
            "single": {"prefix": said["end"]} | series,
            "multiple": {"prefix": said["num_series"]} | series,
        },
        "data": {
            "allData": said["all_data"],
            "partialData": said["first_data"],
            "withName": said["item"],
            "withoutName": "{value}",
            "separator": {"middle": said["between"], "end": said["end"]},
        },
    }


def _axis(theme: Theme, type: str, name: str, more: dict[str, Any]) -> Option:
    words = {"color": theme.muted, "fontSize": theme.small}
    axis: Option = {
        "type": type,
        "name": name,
        "nameLocation": "middle",
        "nameGap": 34,
        "nameTextStyle": {"color": theme.text, "fontSize": theme.size},
        "axisLabel": words | {"hideOverlap": True},
        "axisLine": {"show": True, "lineStyle": {"color": theme.muted}},
        "axisTick": {"lineStyle": {"color": theme.muted}},
        "splitLine": {"lineStyle": {"color": theme.line}},
    }
    if "axisLabel" in more:
        more = more | {"axisLabel": axis["axisLabel"] | more["axisLabel"]}
    return axis | more
