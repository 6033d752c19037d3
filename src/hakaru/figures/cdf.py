"""Cumulative distributions: several curves on one logarithmic axis, as AAIC's Fig. 8 and Neuron's Fig. 5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures import _where as where
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import ALL, Frame
from hakaru.figures.theme import DASHES, Theme

SECONDS = {"_s": 1, "_h": 3600}


@kind("cdf")
def cdf(frame: Frame, theme: Theme) -> Drawn:
    """A curve for each class or, where grouped, for each group; steps are those of the table."""
    x = next(each for each in frame.columns if each.endswith(tuple(SECONDS)))
    curves = list(_curves(frame, theme))
    series: list[dict[str, Any]] = [
        {
            "type": "line",
            "name": f"{name}{_counted(rows)}",
            "color": colour,
            "lineStyle": {"width": 2, "type": DASHES[at % len(DASHES)]},
            "showSymbol": False,
            "symbolSize": 7,
            "data": [_point(frame, row, x) for row in rows],
        }
        for at, (name, colour, rows) in enumerate(curves)
    ]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series], show=True),
        "tooltip": {"trigger": "axis"},
        "xAxis": parts.log_axis(theme, frame.label(x)),
        "yAxis": parts.as_y(parts.percent_axis(theme, _share_of(frame))),
        "series": series,
    }
    return Drawn(option, notes=_notes(frame))


def _counted(rows: list[dict[str, Any]]) -> str:
    """How many jobs a curve counts, where the table tells it."""
    counts = [row["num_jobs"] for row in rows]
    return "" if None in counts else f" ({sum(counts):,})"


def _curves(frame: Frame, theme: Theme) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Name, colour and rows of each curve."""
    key = _key(frame)
    if frame.group is not None:
        colours = frame.colours(theme)
        for group in frame.groups:
            rows = [r for r in frame.of_group(group) if key is None or r[key] == ALL]
            yield frame.name(group), colours[group], rows
    elif key is not None:
        keys = frame.keys(key)
        chosen = theme.colours(key, keys)
        for each in keys:
            yield frame.key_name(key, each), chosen[each], [r for r in frame.rows if r[key] == each]
    else:
        yield frame.name(ALL), frame.colours(theme)[ALL], frame.rows


def _key(frame: Frame) -> str | None:
    """The column that names the curves, where the table has one."""
    first = frame.columns[1 if frame.group else 0]
    return None if first.endswith(tuple(SECONDS)) else first


def _point(frame: Frame, row: dict[str, Any], x: str) -> dict[str, Any]:
    suffix = x[-2:]
    up_to = where.between(x.removesuffix(suffix) + "_s", None, row[x] * SECONDS[suffix])
    key = _key(frame)
    jobs = frame.where(row, *([key] if key else []), more=[up_to])
    return frame.item([labels.number(row[x]), labels.number(row["share"], "share")], jobs)


def _share_of(frame: Frame) -> str:
    if frame.measure == "num_jobs":
        return frame.say("cumulative_jobs")
    return frame.say("cumulative_hours", hours=frame.label("pe_hours"))


def _notes(frame: Frame) -> tuple[str, ...]:
    if frame.group is None or _key(frame) is None:
        return ()
    return (frame.say("together", by=frame.by, label=frame.label(frame.by)),)
