"""Levels over time: busy GPUs against the installed ones above, the queue below."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from hakaru.figures import _labels as labels
from hakaru.figures import _panels as panels
from hakaru.figures import _parts as parts
from hakaru.figures import _where as where
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import GREY, Theme

LEVELS = ("num_pes_busy", "num_jobs_waiting")
INSTALLED = "num_pes_installed"
MAX_POINTS = 1000


@kind("timeseries")
def timeseries(frame: Frame, theme: Theme) -> Drawn:
    """Time-weighted means of each bin, as steps, with a gap for a bin that is not there.

    Drag or scroll to look closer.
    """
    laid = panels.lay(len(LEVELS))
    colours = frame.colours(theme)
    series = [
        _steps(frame, group, level, at, colours[group])
        for at, level in enumerate(LEVELS)
        for group in frame.groups
    ]
    installed = _installed(frame)
    names = [frame.name(group) for group in frame.groups] + [each["name"] for each in installed]
    option = {
        "useUTC": True,
        "grid": laid.grids,
        "legend": parts.legend(theme, list(dict.fromkeys(names))),
        "tooltip": {"trigger": "axis"},
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
        "dataZoom": [{"type": "inside", "xAxisIndex": list(range(len(LEVELS)))}],
        "xAxis": [
            parts.time_axis(
                theme, frame.say("time", zone=frame.result.zone), frame.words, gridIndex=at
            )
            for at in range(len(LEVELS))
        ],
        "yAxis": [
            parts.as_y(parts.value_axis(theme, frame.label(level), min=0, gridIndex=at))
            for at, level in enumerate(LEVELS)
        ],
        "series": [*series, *installed],
    }
    return Drawn(option, laid.height, _notes(frame))


def _steps(frame: Frame, group: Any, level: str, at: int, colour: str) -> dict[str, Any]:
    points: list[dict[str, Any]] = []
    for rows in _runs(_merged(frame.of_group(group))):
        end = _ms(frame, rows[-1]["until_at"])
        points += [_point(frame, row, level) for row in rows]
        points += [{"value": [end, labels.number(rows[-1][level])]}, {"value": [end, None]}]
    return {
        "type": "line",
        "name": frame.name(group),
        "xAxisIndex": at,
        "yAxisIndex": at,
        "step": "end",
        "showSymbol": False,
        "color": colour,
        "lineStyle": {"width": 1.25},
        "areaStyle": {"opacity": 0.25 if frame.group is None else 0},
        "data": points[:-1],  # nothing follows the last gap
    }


def _point(frame: Frame, row: dict[str, Any], level: str) -> dict[str, Any]:
    """Only one level of an ungrouped figure carries the bins' filters: they are long, and all the same."""
    jobs = _present(frame, row) if level == LEVELS[0] and frame.group is None else None
    return frame.item([_ms(frame, row["since_at"]), labels.number(row[level])], jobs)


def _present(frame: Frame, row: dict[str, Any]) -> str | None:
    """Jobs that were submitted before the bin's end and had not ended before it began."""
    since, until = (f"{row[each]:%Y-%m-%dT%H:%M:%SZ}" for each in ("since_at", "until_at"))
    here = f"submitted_at < '{until}' AND (ended_at IS NULL OR ended_at > '{since}')"
    return where.conjunction([here, *where.of_rules(frame.result)])


def _runs(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Bins that follow one another; between two runs some are withheld or unknown."""
    runs: list[list[dict[str, Any]]] = []
    for row in rows:
        if not runs or runs[-1][-1]["until_at"] < row["since_at"]:
            runs.append([])
        runs[-1].append(row)
    return runs


def _installed(frame: Frame) -> list[dict[str, Any]]:
    rows = frame.of_group(frame.groups[0])
    if frame.by == "cluster" or all(row[INSTALLED] is None for row in rows):
        return []
    merged = _merged(rows)
    points = [[_ms(frame, r["since_at"]), labels.number(r[INSTALLED])] for r in merged]
    points.append([_ms(frame, merged[-1]["until_at"]), labels.number(merged[-1][INSTALLED])])
    return [
        {
            "type": "line",
            "name": frame.label(INSTALLED),
            "step": "end",
            "showSymbol": False,
            "color": GREY,
            "lineStyle": {"width": 1.5, "type": "dashed"},
            "data": points,
        }
    ]


def _merged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring bins as one where there are too many: leaving some out would lose peaks, and the end."""
    step = _step(len(rows))
    if step == 1:
        return rows
    return [_mean_of(run[at : at + step]) for run in _runs(rows) for at in range(0, len(run), step)]


def _step(num_bins: int) -> int:
    return max(1, -(-num_bins // MAX_POINTS))


def _mean_of(bins: list[dict[str, Any]]) -> dict[str, Any]:
    """Time-weighted means, unknown where a bin's is."""
    spans_s = [(each["until_at"] - each["since_at"]).total_seconds() for each in bins]
    row = {"since_at": bins[0]["since_at"], "until_at": bins[-1]["until_at"]}
    for level in (*LEVELS, INSTALLED):
        values = [each[level] for each in bins]
        areas = (value * span_s for value, span_s in zip(values, spans_s, strict=True))
        row[level] = None if None in values else sum(areas) / sum(spans_s)
    return row


def _notes(frame: Frame) -> tuple[str, ...]:
    most = max(len(frame.of_group(group)) for group in frame.groups)
    if _step(most) == 1:
        return ()
    return (frame.say("cut_bins", step=_step(most), total=f"{most:,}"),)


def _ms(frame: Frame, moment: datetime) -> int:
    """The site's clock as ECharts takes it: as if that clock were UTC's."""
    local = moment.astimezone(ZoneInfo(frame.result.zone))
    return int(local.replace(tzinfo=UTC).timestamp() * 1000)
