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
    ("wait_h", "wait_s", 3600, 1 / 3600),
    ("run_h", "run_s", 3600, 1 / 3600),
    ("utilization", "utilization", 1, None),
    ("memory_use", "memory_use", 1, None),
)
ONE_SECOND = "waits and runs under a second are drawn at one second"
MAX_APPLICATIONS = 12


@kind("parallel-coordinates")
def parallel_coordinates(frame: Frame, theme: Theme) -> Drawn:
    """Coloured by the number of nodes; what is not known of any job has no axis."""
    axes = [axis for axis in AXES if _is_known(frame, axis[0])]
    applications = _applications(frame)
    series = _strata(frame, theme, axes, applications)
    option = {
        "legend": parts.legend(theme, [each["name"] for each in series], show=True),
        "tooltip": {"trigger": "item"},
        "parallel": {"left": 60, "right": 90 if applications else 60, "top": 72, "bottom": 36},
        "parallelAxis": [_axis(frame, theme, at, axis) for at, axis in enumerate(axes)]
        + [_names_axis(frame, theme, len(axes), each) for each in [applications] if each],
        "series": series,
    }
    return Drawn(option, 460, _notes(frame))


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
    return axis | {"nameLocation": "end", "nameGap": 14, "areaSelectStyle": brush}


def _strata(
    frame: Frame, theme: Theme, axes: list[Any], applications: list[str]
) -> list[dict[str, Any]]:
    """A series for each number of nodes, from the smallest jobs to the largest, which lie on top."""
    strata: dict[int, list[dict[str, Any]]] = {}
    for row in frame.rows:
        strata.setdefault((row["num_nodes"] - 1).bit_length(), []).append(row)
    opacity = min(0.6, max(0.15, 150 / len(frame.rows)))
    return [
        {
            "type": "parallel",
            "name": _nodes(power),
            "color": PALETTE[power % len(PALETTE)],
            "smooth": False,
            "lineStyle": {
                "width": 1,
                "color": PALETTE[power % len(PALETTE)],
                "opacity": round(opacity if power == 0 else 0.6, 2),
            },
            "inactiveOpacity": 0.03,
            "activeOpacity": 0.9,
            "data": [_line(frame, row, axes, applications) for row in strata[power]],
        }
        for power in sorted(strata)
    ]


def _line(
    frame: Frame, row: dict[str, Any], axes: list[Any], applications: list[str]
) -> dict[str, Any]:
    values: list[Any] = [
        labels.number(max(row[column], least) if least else row[column], column)
        for column, _, _, least in axes
    ]
    if applications:
        application = row.get("application")
        values.append(applications.index(application) if application in applications else None)
    jobs = [where.equals(each, row[each]) for each in ("cluster", "job_id")]
    moment = f"submitted_at = '{row['submitted_at'].isoformat()}'"
    return frame.item(values, where.conjunction([*jobs, moment]), name=str(row["job_id"]))


def _nodes(power: int) -> str:
    if power < 2:
        return f"{2**power} node{'s' if power else ''}"
    return f"{2 ** (power - 1) + 1}–{2**power} nodes"


def _next_power(value: float, base: int) -> float:
    power = 1.0
    while power < value:
        power *= base
    return power


def _notes(frame: Frame) -> tuple[str, ...]:
    sizes = {(row[frame.group] if frame.group else "", row["num_like_it"]) for row in frame.rows}
    text = f"a sample of {len(frame.rows):,} jobs, stratified by number of nodes"
    return (f"{text} ({len(sizes)} strata)", ONE_SECOND)
