"""Figures of a comparison: waits by class, their distribution, busy GPUs over time, and nodes over a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from hakaru.figures import _parts as parts
from hakaru.figures.theme import CLASS_COLOURS, DARK, DASHES, GREY, LIGHT, PALETTE, Theme
from hakaru.sim.notation import counted
from hakaru.sim.whatif.words import CLASSES, duration
from hakaru.texts import language
from hakaru.web.models import Drawing
from hakaru.web.what_if.models import Bar, FigureQuery, NodesOfDay, Outcome

WORDS = language("en")
HEIGHT = 380
MEASURES = {
    "mean_wait_s": "Mean wait", "median_wait_s": "Median wait", "p95_wait_s": "95 % wait under",
}  # fmt: skip
UNITS = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "hours"), (120, 60, "minutes"))
LEAST_MIN = 0.1
NODE_PX, LEAST_PX, MOST_PX = 24, 220, 1200
RECORDED = "recorded in the log"
Drawn = tuple[dict[str, Any], int, list[str]]


def waits_by_class(outcome: Outcome, query: FigureQuery, theme: Theme) -> Drawn:
    """A group of bars a class: the baseline beside each variant."""
    found = {
        (run.name, group.group): group.changes[query.measure]
        for run in outcome.variants
        for group in run.groups
        if group.by == "class"
    }
    classes = [name for name in CLASSES if any(each == name for _, each in found)]
    if not classes:
        return _nothing(theme, "No class has enough jobs to be compared.")
    first = [next(c.before for (_, g), c in found.items() if g == name) for name in classes]
    after = [
        [c.after if (c := found.get((run.name, name))) else None for name in classes]
        for run in outcome.variants
    ]
    scale, unit = _unit(max((v or 0.0 for row in (first, *after) for v in row), default=0.0))
    colours = _colours(outcome, theme)
    num_bars = len(classes) * len(outcome.runs)
    series = [
        {
            "type": "bar",
            "name": run.name,
            "color": colours[run.name],
            "barMaxWidth": 48,
            "data": [_labelled(v, scale) for v in row],
            "label": {
                "show": num_bars <= 15,
                "position": "top",
                "color": theme.text,
                "fontSize": 11,
            },
            "labelLayout": {"hideOverlap": True},
        }
        for run, row in zip(outcome.runs, [first, *after], strict=True)
    ]
    names = [class_name(name, outcome.unit) for name in classes]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [run.name for run in outcome.runs]),
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": parts.category_axis(theme, "", names),
        "yAxis": parts.as_y(parts.value_axis(theme, f"{MEASURES[query.measure]} ({unit})", min=0)),
        "series": series,
    }
    return option, HEIGHT, []


def waits(outcome: Outcome, query: FigureQuery, theme: Theme) -> Drawn:
    """The share of jobs that waited no longer, for each run."""
    colours = _colours(outcome, theme)
    series = [
        {
            "type": "line",
            "name": run.name,
            "color": colours[run.name],
            "lineStyle": {"width": 2, "type": DASHES[at % len(DASHES)]},
            "showSymbol": False,
            "step": "end",
            "data": [
                [_digits(max(wait / 60, LEAST_MIN)), _digits(share * 100)]
                for wait, share in run.waits
            ],
        }
        for at, run in enumerate(outcome.runs)
    ]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [run.name for run in outcome.runs]),
        "tooltip": {"trigger": "axis"},
        "xAxis": parts.log_axis(theme, "Wait (minutes)", min=LEAST_MIN),
        "yAxis": parts.as_y(parts.percent_axis(theme, "Jobs that waited no longer (%)")),
        "series": series,
    }
    return option, HEIGHT, [f"Waits below {LEAST_MIN:g} min are drawn there."]


def busy(outcome: Outcome, query: FigureQuery, theme: Theme) -> Drawn:
    """Recorded, baseline and variants; drag or scroll to look closer."""
    colours = _colours(outcome, theme)
    lines = [(RECORDED, GREY, outcome.recorded_busy)]
    lines += [(run.name, colours[run.name], run.busy) for run in outcome.runs]
    many = "GPUs" if outcome.unit == "gpu" else "processors"
    series = [
        {
            "type": "line",
            "name": name,
            "color": colour,
            "step": "end",
            "showSymbol": False,
            "lineStyle": {"width": 1.25},
            "areaStyle": {"opacity": 0.2 if name == RECORDED else 0},
            "data": [[_clock(moment, outcome.zone), _digits(value)] for moment, value in points],
        }
        for name, colour, points in lines
    ]
    option = {
        "useUTC": True,
        "grid": parts.grid(),
        "legend": parts.legend(theme, [name for name, _, _ in lines]),
        "tooltip": {"trigger": "axis"},
        "dataZoom": [{"type": "inside"}],
        "xAxis": parts.time_axis(theme, f"Time ({outcome.zone})", WORDS),
        "yAxis": parts.as_y(parts.value_axis(theme, f"Busy {many}", min=0)),
        "series": series,
    }
    return option, HEIGHT, [_bin_note(outcome)]


def nodes(found: NodesOfDay, theme: Theme, unit: str) -> Drawn:
    """A bar a job on its lanes of each node, in the colour of its class."""
    if found.machine.is_flat:
        text = "This machine is one pool: it has no nodes to show. Give it nodes and their size."
        return _nothing(theme, text)
    if not found.bars:
        return _nothing(theme, "No job ran on this day.")
    num = found.machine.num_nodes
    height = max(LEAST_PX, min(MOST_PX, num * NODE_PX + 110))
    classes = [name for name in CLASS_COLOURS if any(b.parallelism == name for b in found.bars)]
    series: list[dict[str, Any]] = [
        {
            "type": "custom",
            "name": class_name(name, unit),
            "color": CLASS_COLOURS[name],
            "renderItem": "bar",  # charts.js has the function of this name
            "encode": {"x": [0, 1], "y": [2, 3]},
            "data": [_bar(b, found, unit) for b in found.bars if b.parallelism == name],
        }
        for name in classes
    ]
    since, until = min(b.start for b in found.bars), max(b.end for b in found.bars)
    option = {
        "useUTC": True,
        "grid": parts.grid(left=64),
        "legend": parts.legend(theme, [each["name"] for each in series]),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "dataZoom": [{"type": "inside", "filterMode": "none"}],
        "xAxis": parts.time_axis(
            theme, f"{found.day} ({found.zone})", WORDS,
            min=_clock(since, found.zone), max=_clock(until, found.zone),
        ),
        "yAxis": parts.as_y(
            parts.value_axis(theme, "Node", min=0, max=num, interval=_step(num), inverse=True)
        ) | {"nameGap": 38},
        "series": series,
    }  # fmt: skip
    notes = [f"{counted(found.num_jobs)} ran on this day; a lane of a node is one {unit.upper()}."]
    if found.num_left_out:
        notes.append(f"The {found.num_left_out:,} that ran shortest are not drawn.")
    return option, height, notes


def drawing(id: str, title: str, question: str, drawn: Drawn, theme: Theme) -> Drawing:
    option, height, notes = drawn
    finished = parts.finished(option, theme, title, WORDS)
    return Drawing(
        id=id, kind=id, title=title, question=question, option=finished, notes=notes, height=height
    )


def theme_of(dark: bool) -> Theme:
    return DARK if dark else LIGHT


def class_name(name: str, unit: str) -> str:
    text: str = CLASSES.get(name, name).format(unit.upper())
    return text[0].upper() + text[1:] + " jobs"


def _colours(outcome: Outcome, theme: Theme) -> dict[str, str]:
    """The baseline in the colour of text, the variants in the palette's order."""
    names = [run.name for run in outcome.variants]
    chosen = {name: PALETTE[at % len(PALETTE)] for at, name in enumerate(names)}
    return {outcome.baseline.name: theme.text} | chosen


def _labelled(value: float | None, scale: float) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"value": _digits(value / scale), "label": {"formatter": duration(value)}}


def _bar(bar: Bar, found: NodesOfDay, unit: str) -> dict[str, Any]:
    size, zone = found.machine.node_size, found.zone
    top = bar.node + bar.lane / size
    times = [_clock(moment, zone) for moment in (bar.start, bar.end)]
    hours = " to ".join(
        f"{datetime.fromtimestamp(moment, ZoneInfo(zone)):%H:%M}" for moment in (bar.start, bar.end)
    )
    told = ", ".join(part for part in (bar.user, bar.queue) if part)
    plural = unit.upper() + ("s" if bar.num_pes > 1 else "")
    node = found.machine.names[bar.node] if found.machine.names else bar.node
    name = f"job {bar.job_id or '–'}: {bar.num_pes} {plural}, node {node}\n{told}\n{hours}"
    return {"name": name, "value": [*times, top, top + bar.num_lanes / size]}


def _bin_note(outcome: Outcome) -> str:
    points = outcome.baseline.busy
    hours = (points[1][0] - points[0][0]) / 3600 if len(points) > 1 else 1
    return f"Means of bins of {WORDS.number(hours)} h."


def _step(num_nodes: int) -> int:
    return next(step for step in (1, 2, 4, 8, 16, 50, 100, 500, 5000) if num_nodes / step <= 24)


def _unit(seconds: float) -> tuple[float, str]:
    return next(((scale, name) for least, scale, name in UNITS if seconds >= least), (1, "seconds"))


def _clock(moment: int, zone: str) -> int:
    """The site's clock as ECharts takes it: as if that clock were UTC's."""
    local = datetime.fromtimestamp(moment, ZoneInfo(zone))
    return int(local.replace(tzinfo=UTC).timestamp() * 1000)


def _digits(value: float) -> float:
    return float(f"{value:.5g}")


def _nothing(theme: Theme, text: str) -> Drawn:
    drawn = parts.empty(theme, text)
    return drawn.option, drawn.height, []


OF_OUTCOME: dict[str, tuple[str, str, Callable[[Outcome, FigureQuery, Theme], Drawn]]] = {
    "waits-by-class": ("Waits by class", "Who waits longer, who shorter?", waits_by_class),
    "waits": ("All waits", "How many jobs wait no longer than this?", waits),
    "busy": ("Busy over time", "When is the machine full, and how full?", busy),
}
NODES = ("Nodes over a day", "Which job ran where, and when?")
