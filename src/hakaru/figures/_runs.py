"""Figures of simulated runs side by side: waits, what changes for whom, and busy PEs over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.figures import _parts as parts
from hakaru.figures._base import HEIGHT, Figure
from hakaru.figures.theme import DARK, DASHES, GREEN, GREY, LIGHT, ORANGE, PALETTE, Theme
from hakaru.texts import language

if TYPE_CHECKING:
    from hakaru.sim.whatif import Change, Outcome, Variant

HOUR_S = 3600
ROW_PX = 22
LEGEND_PX = 24
NARROW_PX = 480
MOST_TIMES = 4  # the largest change, beyond which an interval is cut


def figures_of_runs(outcome: Outcome, dark: bool = False) -> list[Figure]:
    """Waits, what each variant changes for whom, and busy PEs."""
    theme = DARK if dark else LIGHT
    changes = [_changes(run, theme) for run in outcome.variants]
    return [_waits(outcome, theme), *changes, _busy(outcome, theme)]


def _waits(outcome: Outcome, theme: Theme) -> Figure:
    series = [
        _line(run.name, at, [[max(x, 1.0), 100 * share] for x, share in run.waits])
        for at, run in enumerate(outcome.runs)
    ]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series], type="plain"),
        "media": _narrow(len(series)),
        "tooltip": {"trigger": "axis"},
        "xAxis": parts.log_axis(theme, "Wait (s)"),
        "yAxis": parts.as_y(parts.percent_axis(theme, "Jobs that wait no longer (%)")),
        "series": series,
    }
    note = "Waits below one second are drawn at one second."
    return _figure("cdf", "Waits", "How long do jobs wait in each run?", option, theme, [note])


def _changes(run: Variant, theme: Theme) -> Figure:
    """A box a group: the interval, and in it the change itself."""
    groups = [each for each in run.groups if each.changes["mean_wait_s"].low is not None]
    names = [
        each.group if each.by == "user group" else f"{each.by}: {each.group}" for each in groups
    ]
    edge = _edge([each.changes["mean_wait_s"] for each in groups])
    is_cut = any(_is_cut(each.changes["mean_wait_s"], edge) for each in groups)
    labels = {"width": 190, "overflow": "truncate"}
    narrow = {
        "grid": {"left": 124, "right": 20},
        "yAxis": {"axisLabel": {"width": 112}},
        "xAxis": {"splitNumber": 3},
    }
    option = {
        "grid": parts.grid(left=210, top=12),
        "media": [{"query": {"maxWidth": NARROW_PX}, "option": narrow}],
        "tooltip": {"trigger": "item"},
        "xAxis": parts.value_axis(theme, "Change of the mean wait (h), 95 % interval"),
        "yAxis": _labelled(parts.category_axis(theme, "", names, inverse=True), labels),
        "series": [
            {
                "type": "boxplot",
                "name": run.name,
                "boxWidth": [4, 12],
                "data": [_box(each.changes["mean_wait_s"], theme, edge) for each in groups],
            }
        ],
    }
    notes = [
        "A box is the interval and the line in it the change; grey where it includes zero. Left of "
        "zero jobs wait less."
    ]
    if is_cut:
        notes.append(
            f"Intervals are cut at {edge / HOUR_S:,.3g} h; the table of groups has their ends."
        )
    question = "By how much does each group's mean wait change?"
    height = 90 + ROW_PX * max(len(names), 1)
    return _figure(
        "boxplot", f"Who gains, who loses: {run.name}", question, option, theme, notes, height
    )


def _edge(changes: list[Change]) -> float:
    """Where intervals are cut: one that is sure of nothing would leave no room for the others."""
    sizes = [abs(each.change) for each in changes]
    sure = [abs(end or 0.0) for each in changes if each.is_sure for end in (each.low, each.high)]
    return max([MOST_TIMES * max(sizes, default=0.0), *sure, HOUR_S / 60])


def _is_cut(change: Change, edge: float) -> bool:
    return max(abs(change.low or 0.0), abs(change.high or 0.0)) > edge


def _labelled(axis: dict[str, Any], label: dict[str, Any]) -> dict[str, Any]:
    return axis | {"axisLabel": axis.get("axisLabel", {}) | label}


def _narrow(num_names: int) -> list[dict[str, Any]]:
    """On a phone the legend has two names a line, and the plot begins below it."""
    lines = -(-num_names // 2)
    return [
        {
            "query": {"maxWidth": NARROW_PX},
            "option": {"grid": {"top": 16 + LEGEND_PX * lines, "left": 64, "right": 16}},
        }
    ]


def _box(change: Change, theme: Theme, edge: float) -> dict[str, Any]:
    low, high = (max(-edge, min(edge, end or 0.0)) for end in (change.low, change.high))
    ends = (low, low, change.change, high, high)
    colour = (GREEN if change.change < 0 else ORANGE) if change.is_sure else GREY
    return {
        "value": [end / HOUR_S for end in ends],
        "itemStyle": {"color": colour, "borderColor": theme.text, "borderWidth": 1},
    }


def _busy(outcome: Outcome, theme: Theme) -> Figure:
    series = [
        _line(run.name, at, [[_ms(moment, outcome.zone), value] for moment, value in run.busy])
        | {"step": "end", "lineStyle": {"width": 1.25}}
        for at, run in enumerate(outcome.runs)
    ]
    unit = "GPUs" if outcome.unit == "gpu" else "processors"
    option = {
        "useUTC": True,
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series], type="plain"),
        "media": _narrow(len(series)),
        "tooltip": {"trigger": "axis"},
        "dataZoom": [{"type": "inside"}],
        "xAxis": parts.time_axis(theme, f"Time ({outcome.zone})", language("en", "gpu")),
        "yAxis": parts.as_y(parts.value_axis(theme, f"Busy {unit} (mean)", min=0)),
        "series": series,
    }
    note = "All jobs, those of months that are not compared too."
    question = "How busy is the machine in each run?"
    return _figure("timeseries", f"Busy {unit} over time", question, option, theme, [note])


def _line(name: str, at: int, data: list[list[float]]) -> dict[str, Any]:
    return {
        "type": "line",
        "name": name,
        "color": PALETTE[at % len(PALETTE)],
        "lineStyle": {"width": 2, "type": DASHES[at % len(DASHES)]},
        "showSymbol": False,
        "data": data,
    }


def _figure(
    kind: str,
    title: str,
    question: str,
    option: dict[str, Any],
    theme: Theme,
    notes: list[str],
    height: int = HEIGHT,
) -> Figure:
    words = language("en", "gpu")
    done = parts.finished(option, theme, title, words)
    return Figure(kind, title, question, done, tuple(notes), height, tuple(notes))


def _ms(moment: int, zone: str) -> int:
    """The site's clock as if it were UTC's, which is how the axis shows it."""
    local = datetime.fromtimestamp(moment, ZoneInfo(zone))
    return int(local.replace(tzinfo=UTC).timestamp() * 1000)
