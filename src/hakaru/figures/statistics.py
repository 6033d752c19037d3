"""Statistics of a few rows on one axis: how far they range, and where mean, median and quantiles lie."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import ALL, Frame
from hakaru.figures.theme import BROWN, GREEN, GREY, ORANGE, ROSE, SKY, VIOLET, Theme

# a statistic: its symbol, its size and its colour, in print as well
MARKS: dict[str, tuple[str, Any, str]] = {
    "mean": ("triangle", 13, GREEN),
    "p25": ("roundRect", 9, SKY),
    "median": ("rect", [5, 20], ORANGE),
    "p75": ("diamond", 12, SKY),
    "p90": ("circle", 10, VIOLET),
    "p95": ("rect", 9, ROSE),
    "p99": ("pin", 14, BROWN),
}
RANGES = (("min", "max"), ("low", "high"), ("p25", "p99"), ("p25", "p90"), ("median", "max"))
UNITS = ("_h", "_s", "")
LEAST = {"_h": 0.001, "_s": 1.0}
ROW_PX, MAX_ROWS, MAX_SILENT = 46, 24, 3


@kind("statistics")
def statistics(frame: Frame, theme: Theme) -> Drawn:
    """A line a row: its range as a bar, a mark for each statistic; times on a logarithmic axis."""
    unit = next(each for each in UNITS if f"mean{each}" in frame.columns)
    told = [row for row in frame.rows if row[f"mean{unit}"] is not None] or frame.rows
    rows = told[:MAX_ROWS]
    names = [_name(frame, row) for row in rows]
    ends = _ends(frame, unit)
    series = [_range(frame, rows, unit, ends)] if ends else []
    series += [
        _marks(frame, rows, each, unit) for each in MARKS if f"{each}{unit}" in frame.columns
    ]
    category = parts.category_axis(theme, "", names, inverse=True)
    option = {
        "grid": parts.grid(left=236, right=40),
        "legend": parts.legend(theme, [each["name"] for each in series], show=True),
        "tooltip": {"trigger": "item"},
        "xAxis": _values(frame, theme, unit),
        "yAxis": category
        | {"axisLabel": category["axisLabel"] | {"width": 220, "overflow": "break"}},
        "series": series,
    }
    return Drawn(option, 130 + ROW_PX * len(rows), _notes(frame, rows, unit))


def _name(frame: Frame, row: dict[str, Any]) -> str:
    """The words of the row, and how many it counts."""
    words = [
        frame.name(row[each]) if each == frame.group else frame.key_name(each, row[each])
        for each in frame.columns
        if each == frame.group or (isinstance(row[each], str) and each != "reading")
    ]
    counted = next((each for each in ("num_jobs", "num_gaps", "num_within") if each in row), None)
    count = f"({row[counted]:,})" if counted and row[counted] is not None else ""
    return " ".join([", ".join(words) or frame.key_name("submissions", ALL), count]).strip()


def _values(frame: Frame, theme: Theme, unit: str) -> dict[str, Any]:
    if unit in LEAST:
        return parts.log_axis(theme, _axis_name(frame, unit))
    return parts.value_axis(theme, _axis_name(frame, unit))


def _axis_name(frame: Frame, unit: str) -> str:
    return frame.say({"_h": "hours", "_s": "seconds"}.get(unit, "coefficient"))


def _ends(frame: Frame, unit: str) -> tuple[str, str] | None:
    known = (pair for pair in RANGES if {f"{each}{unit}" for each in pair} <= set(frame.columns))
    return next(known, None)


def _range(
    frame: Frame, rows: list[dict[str, Any]], unit: str, ends: tuple[str, str]
) -> dict[str, Any]:
    """A box without a body: only its whiskers are seen."""
    return {
        "type": "boxplot",
        "name": frame.say("_to_".join(ends)),
        "color": GREY,
        "boxWidth": [10, 10],
        "itemStyle": {"color": GREY, "borderColor": GREY, "borderWidth": 2},
        "tooltip": {"show": False},
        "silent": True,
        "data": [_span(row, unit, ends) for row in rows],
    }


def _span(row: dict[str, Any], unit: str, ends: tuple[str, str]) -> list[Any] | str:
    low, high = (_drawn(row[f"{each}{unit}"], unit) for each in ends)
    if low is None or high is None:
        return "-"
    return [low, low, low, low, high]


def _marks(frame: Frame, rows: list[dict[str, Any]], statistic: str, unit: str) -> dict[str, Any]:
    symbol, size, colour = MARKS[statistic]
    column = f"{statistic}{unit}"
    data = [
        {
            "value": [_drawn(row[column], unit), at],
            # numbers only: a tooltip's own text is not escaped
            "tooltip": {"formatter": f"{{a}}: {_told(frame, column, row[column], unit)}"},
        }
        for at, row in enumerate(rows)
        if row[column] is not None
    ]
    return parts.marks(frame.say(statistic), symbol, size, colour, data)


def _told(frame: Frame, column: str, value: float, unit: str) -> str:
    text = labels.text(column, value, frame.words)
    return frame.words.in_unit(unit[1:], text) if unit else text


def _drawn(value: float | None, unit: str) -> float | int | None:
    """At least a second on a logarithmic axis."""
    if value is None:
        return None
    return labels.number(max(value, LEAST[unit]) if unit in LEAST else value)


def _notes(frame: Frame, rows: list[dict[str, Any]], unit: str) -> tuple[str, ...]:
    notes = [
        f"{_name(frame, row)}: {frame.key_name('reading', row['reading'])}"
        for row in rows
        if "reading" in row
    ]
    silent = [_name(frame, row) for row in frame.rows if row[f"mean{unit}"] is None]
    if silent:
        few = len(silent) <= MAX_SILENT
        listed = "; ".join(silent) if few else frame.say("num_rows", count=len(silent))
        notes.append(frame.say("nothing_known", listed=listed))
    if len(rows) + len(silent) < len(frame.rows):
        notes.append(frame.cut("rows", len(rows), len(frame.rows)))
    below = LEAST.get(unit)
    shown = [f"{each}{unit}" for each in MARKS if f"{each}{unit}" in frame.columns]
    if below and any(row[each] is not None and row[each] < below for row in rows for each in shown):
        notes.append(frame.say("less_than", least=frame.words.in_unit(unit[1:], f"{below:g}")))
    return tuple(notes)
