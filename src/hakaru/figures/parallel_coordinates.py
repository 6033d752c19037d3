"""Parallel coordinates, as Neuron's Fig. 4: a line a job, across nodes, GPUs, wait, run time and use."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures import _where as where
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import PALETTE, Theme

# an axis: its column in the table, that of the filters, the factor between them, and the least drawn
AXES = (
    ("num_nodes", "num_nodes", 1, 1.0),
    ("num_pes", "num_pes", 1, 1.0),
    ("wait_h", "wait_s", 3600, 0.001),
    ("run_h", "run_s", 3600, 0.001),
    ("utilization", "utilization", 1, None),
    ("memory_use", "memory_use", 1, None),
)
MAX_APPLICATIONS = 12
MAX_PANELS, MAX_LINES = 4, 1500
TOP_PX, PANEL_PX = 40, 400


@kind("parallel-coordinates")
def parallel_coordinates(frame: Frame, theme: Theme) -> Drawn:
    """Coloured by the number of nodes, a panel for each group; what is not known of any job has no axis."""
    groups = frame.groups[:MAX_PANELS]
    axes = [axis for axis in AXES if _is_known(frame, axis[0])]
    applications = _applications(frame)
    series = [
        line
        for at, group in enumerate(groups)
        for line in _strata(
            frame, _thinned(frame.of_group(group), len(groups)), axes, applications, at
        )
    ]
    names = {each["name"]: each["colour_of"] for each in series}
    option = {
        "legend": parts.legend(theme, sorted(names, key=lambda each: names[each]), show=True),
        "title": [
            _title(frame, theme, at, group) for at, group in enumerate(groups) if frame.group
        ],
        "tooltip": {"trigger": "item"},
        "parallel": [_panel(at, bool(applications)) for at in range(len(groups))],
        "parallelAxis": [
            axis | {"parallelIndex": at}
            for at in range(len(groups))
            for axis in _all_axes(frame, theme, axes, applications)
        ],
        "series": series,
    }
    return Drawn(option, TOP_PX + PANEL_PX * len(groups), _notes(frame, groups))


def _panel(at: int, has_names: bool) -> dict[str, Any]:
    top = TOP_PX + PANEL_PX * at + 48
    return {"left": 60, "right": 110 if has_names else 64, "top": top, "height": PANEL_PX - 96}


def _title(frame: Frame, theme: Theme, at: int, group: Any) -> dict[str, Any]:
    style = {"color": theme.text, "fontSize": theme.size, "fontWeight": "bold"}
    return {
        "text": frame.name(group),
        "left": 8,
        "top": TOP_PX + PANEL_PX * at - 8,
        "textStyle": style,
    }


def _thinned(rows: list[dict[str, Any]], num_panels: int) -> list[dict[str, Any]]:
    """Every so many of the sample, stratum by stratum, where several panels share the screen."""
    return rows[:: -(-len(rows) * num_panels // MAX_LINES) or 1]


def _all_axes(
    frame: Frame, theme: Theme, axes: list[Any], applications: list[str]
) -> list[dict[str, Any]]:
    listed = [_axis(frame, theme, at, axis) for at, axis in enumerate(axes)]
    return listed + [_names_axis(frame, theme, len(axes), each) for each in [applications] if each]


def _is_known(frame: Frame, column: str) -> bool:
    return column in frame.columns and any(row[column] is not None for row in frame.rows)


def _applications(frame: Frame) -> list[str]:
    """The applications' names as an axis, where they are known and differ, and fit."""
    column = "application" if "application" in frame.columns else "group_application"
    found = {row.get(column) for row in frame.rows}
    names = sorted(str(each) for each in found if each is not None)
    return names if 1 < len(names) <= MAX_APPLICATIONS else []


def _axis(
    frame: Frame, theme: Theme, at: int, axis: tuple[str, str, int, float | None]
) -> dict[str, Any]:
    """`column` and `factor` let a brush on the axis become a filter of jobs."""
    column, filtered, factor, least = axis
    made = (
        parts.log_axis(theme, frame.label(column))
        if least
        else parts.value_axis(theme, frame.label(column))
    )
    most = max(row[column] for row in frame.rows if row[column] is not None)
    base = 2 if column.startswith("num_") else 10
    bounds = {"min": least, "max": _next_power(max(most, least * base), base)} if least else {}
    return (
        _upright(theme, made)
        | bounds
        | {
            "dim": at,
            "column": filtered,
            "factor": factor,
            **({"logBase": base} if least else {}),
        }
    )


def _names_axis(frame: Frame, theme: Theme, at: int, names: list[str]) -> dict[str, Any]:
    axis = parts.category_axis(theme, frame.label("application"), names)
    return _upright(theme, axis) | {"dim": at, "column": "application"}


def _upright(theme: Theme, axis: dict[str, Any]) -> dict[str, Any]:
    brush = {"width": 18, "borderColor": theme.text, "color": theme.text, "opacity": 0.2}
    label = axis["axisLabel"] | {
        "color": theme.text,
        "backgroundColor": theme.background,
        "padding": 2,
    }
    return axis | {
        "nameLocation": "end",
        "nameGap": 14,
        "areaSelectStyle": brush,
        "axisLabel": label,
        "axisLine": {"lineStyle": {"color": theme.text, "width": 1.5}},
    }


def _strata(
    frame: Frame, rows: list[dict[str, Any]], axes: list[Any], applications: list[str], at: int
) -> list[dict[str, Any]]:
    """A series for each number of nodes, from the smallest jobs to the largest, which lie on top."""
    strata: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        strata.setdefault((row["num_nodes"] - 1).bit_length(), []).append(row)
    return [
        {
            "type": "parallel",
            "parallelIndex": at,
            "name": _nodes(frame, power),
            "colour_of": power,
            "color": PALETTE[power % len(PALETTE)],
            "lineStyle": {
                "width": 1,
                "color": PALETTE[power % len(PALETTE)],
                "opacity": round(min(0.6, max(0.3, 60 / len(strata[power]))), 2),
            },
            "inactiveOpacity": 0.03,
            "activeOpacity": 0.9,
            "data": [_line(row, axes, applications) for row in strata[power]],
        }
        for power in sorted(strata)
    ]


def _line(row: dict[str, Any], axes: list[Any], applications: list[str]) -> dict[str, Any]:
    values: list[Any] = [
        labels.number(max(row[column], least) if least else row[column], column)
        for column, _, _, least in axes
    ]
    if applications:
        application = row.get("application")
        values.append(applications.index(application) if application in applications else None)
    jobs = [where.equals(each, row[each]) for each in ("cluster", "job_id")]
    moment = f"submitted_at = '{row['submitted_at'].isoformat()}'"
    text = where.conjunction([*jobs, moment])
    return {"value": values, "where": text, "name": str(row["job_id"])}


def _nodes(frame: Frame, power: int) -> str:
    if not power:
        return frame.say("one_node")
    span = f"{2 ** (power - 1) + 1}–{2**power}" if power > 1 else "2"
    return frame.say("some_nodes", span=span)


def _next_power(value: float, base: int) -> float:
    power = 1.0
    while power < value:
        power *= base
    return power


def _notes(frame: Frame, groups: tuple[Any, ...]) -> tuple[str, ...]:
    drawn = sum(len(_thinned(frame.of_group(group), len(groups))) for group in groups)
    notes = [frame.say("sample", drawn=f"{drawn:,}"), frame.say("at_the_foot")]
    if len(groups) < len(frame.groups):
        notes.append(frame.say("cut_panels", drawn=len(groups)))
    return tuple(notes)
