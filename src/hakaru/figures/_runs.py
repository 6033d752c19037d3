"""Figures of simulated runs side by side: waits, what changes for whom, and busy PEs over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.figures import _parts as parts
from hakaru.figures._base import HEIGHT, Figure
from hakaru.figures.theme import DARK, DASHES, LIGHT, PALETTE, Theme
from hakaru.texts import language

if TYPE_CHECKING:
    from hakaru.sim.whatif import GroupChange, Outcome

HOUR_S = 3600
ROW_PX = 22


def figures_of_runs(outcome: Outcome, dark: bool = False) -> list[Figure]:
    """The three figures of a what-if."""
    theme = DARK if dark else LIGHT
    return [_waits(outcome, theme), _changes(outcome, theme), _busy(outcome, theme)]


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


def _changes(outcome: Outcome, theme: Theme) -> Figure:
    """A box a group and a variant: the interval, and in it the change itself."""
    groups = [(each.by, each.group) for each in outcome.variants[0].groups]
    names = [f"{by}: {group}" for by, group in groups]
    series = [
        {
            "type": "boxplot",
            "name": run.name,
            "itemStyle": {"color": PALETTE[(at + 1) % len(PALETTE)], "borderColor": theme.muted},
            "boxWidth": [4, 12],
            "data": _boxes({(each.by, each.group): each for each in run.groups}, groups),
        }
        for at, run in enumerate(outcome.variants)
    ]
    category = parts.category_axis(theme, "", names, inverse=True)
    option = {
        "grid": parts.grid(left=210),
        "legend": parts.legend(theme, [str(each["name"]) for each in series], show=True),
        "tooltip": {"trigger": "item"},
        "xAxis": parts.value_axis(theme, "Change of the mean wait (h), 95 % interval"),
        "yAxis": category,
        "series": series,
    }
    height = 130 + max(len(names) * (ROW_PX + 8 * len(series)), ROW_PX)
    notes = [
        "A box is the interval, the line in it the change; left of zero jobs wait less.",
        "Groups without an interval are not drawn.",
    ]
    return _figure(
        "boxes", "Who gains, who loses", "By how much does each group's mean wait change?",
        option, theme, notes, height,
    )  # fmt: skip


def _boxes(found: dict[tuple[str, str], GroupChange], groups: list[tuple[str, str]]) -> list[Any]:
    return [_box(found.get(group)) for group in groups]


def _box(group: GroupChange | None) -> Any:
    change = group.changes["mean_wait_s"] if group else None
    if change is None or change.low is None or change.high is None:
        return "-"  # how ECharts writes that there is none
    low, middle, high = (each / HOUR_S for each in (change.low, change.change, change.high))
    return [low, low, middle, high, high]


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
