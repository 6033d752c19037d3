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
        "legend": parts.legend(theme, [each["name"] for each in series]),
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
    names = [f"{each.by}: {each.group}" for each in groups]
    option = {
        "grid": parts.grid(left=210, top=12),
        "tooltip": {"trigger": "item"},
        "xAxis": parts.value_axis(theme, "Change of the mean wait (h), 95 % interval"),
        "yAxis": parts.category_axis(theme, "", names, inverse=True),
        "series": [
            {
                "type": "boxplot",
                "name": run.name,
                "boxWidth": [4, 12],
                "data": [_box(each.changes["mean_wait_s"], theme) for each in groups],
            }
        ],
    }
    notes = [
        "A box is the interval and the line in it the change; grey where it includes zero. Left of "
        "zero jobs wait less."
    ]
    question = "By how much does each group's mean wait change?"
    height = 90 + ROW_PX * max(len(names), 1)
    return _figure(
        "boxplot", f"Who gains, who loses: {run.name}", question, option, theme, notes, height
    )


def _box(change: Change, theme: Theme) -> dict[str, Any]:
    ends = (
        change.low or 0.0,
        change.low or 0.0,
        change.change,
        change.high or 0.0,
        change.high or 0.0,
    )
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
    unit = "GPUs" if outcome.unit == "gpu" else "CPUs"
    option = {
        "useUTC": True,
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series]),
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
