"""Bars: a count or a share for each queue, state, quarter, class or size, side by side where grouped."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import PALETTE, Theme

MAX_BARS = 40
LYING_FROM = 13  # more names than stand beside one another: the bars lie
COLOURED = ("parallelism", "state")  # keys whose values have colours of their own


@kind("bars")
def bars(frame: Frame, theme: Theme) -> Drawn:
    """A bar for each key; several measures or several groups stand side by side."""
    if "utilisation" in frame.columns and all(row["utilisation"] is None for row in frame.rows):
        return parts.empty(theme, frame.words.say("remark", "no_size"))
    key = _key_column(frame)
    all_keys = frame.keys(key)
    keys = all_keys[:MAX_BARS]
    series = _series(frame, theme, key, keys)
    names = [frame.key_name(key, each) for each in keys]
    lying = len(keys) >= LYING_FROM and not _is_ordered(key)
    category = parts.category_axis(theme, frame.label(key), names)
    value = parts.value_axis(theme, _value_name(frame))
    notes = (
        () if len(keys) == len(all_keys) else (frame.cut("values", len(keys), len(all_keys), key),)
    )
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series]),
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": value if lying else category,
        "yAxis": _lying(category) if lying else parts.as_y(value),
        "series": series,
    }
    if lying:
        return Drawn(option | {"grid": parts.grid(left=150)}, 120 + 26 * len(keys), notes)
    return Drawn(option, notes=notes)


def _key_column(frame: Frame) -> str:
    return frame.columns[1 if frame.group else 0]


def _measures(frame: Frame) -> list[str]:
    """Utilisation or people where the table is of those, else what was counted."""
    for several in (["utilisation"], ["num_users", "num_accounts"]):
        if set(several) <= set(frame.columns):
            return several if frame.group is None else several[:1]
    return [frame.known_measure]


def _series(frame: Frame, theme: Theme, key: str, keys: list[Any]) -> list[dict[str, Any]]:
    measures = _measures(frame)
    colours = frame.colours(theme)
    listed = []
    for group in frame.groups:
        rows = {row[key]: row for row in frame.of_group(group)}
        for measure in measures:
            name = frame.label(measure) if len(measures) > 1 else frame.name(group)
            colour = PALETTE[measures.index(measure)] if len(measures) > 1 else colours[group]
            items = [_item(frame, theme, rows.get(each), key, measure) for each in keys]
            listed.append(_one(theme, name, colour, items, len(keys) * len(frame.groups)))
    return listed


def _one(theme: Theme, name: str, colour: str, items: list[Any], num_bars: int) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": name,
        "color": colour,
        "barMaxWidth": 64,
        "data": items,
        "label": {
            "show": num_bars <= 12,
            "position": "top",
            "color": theme.text,
            "fontSize": theme.small,
        },
        "labelLayout": {"hideOverlap": True},
    }


def _item(
    frame: Frame, theme: Theme, row: dict[str, Any] | None, key: str, measure: str
) -> dict[str, Any]:
    if row is None:
        return {"value": None}
    item = frame.item(labels.number(row[measure], measure), frame.where(row, key))
    item["label"] = {"formatter": _on_bar(frame, row, measure)}
    if key in COLOURED and frame.group is None:
        item["itemStyle"] = {"color": theme.colour(key, row[key])}
    return item


def _on_bar(frame: Frame, row: dict[str, Any], measure: str) -> str:
    count = labels.text(measure, row[measure], frame.words)
    if "share" not in row or measure == "share":
        return count
    return f"{count}\n{labels.text('share', row['share'], frame.words)}"


def _value_name(frame: Frame) -> str:
    measures = _measures(frame)
    return frame.label(measures[0]) if len(measures) == 1 else frame.say("number")


def _is_ordered(key: str) -> bool:
    return key == "quarter" or key.startswith("num_")


def _lying(category: dict[str, Any]) -> dict[str, Any]:
    return category | {"inverse": True, "nameLocation": "start", "nameGap": 12}
