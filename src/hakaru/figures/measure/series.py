"""One quantity over the runs, drawn: medians with their intervals, confirmed steps, suspected changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.choice import Subject
from hakaru.figures.measure.words import in_zone
from hakaru.figures.theme import BLUE, ORANGE, VIOLET, Theme
from hakaru.measure.compare import signed_share
from hakaru.measure.numbers import amount, counted
from hakaru.measure.record import Run
from hakaru.measure.series import Change, Series, Value, build_series, value_in

TITLE, QUESTION = "History", "Has it changed over the runs?"


def series_in(runs: Sequence[Run], subject: Subject) -> Series:
    """The series of runs at hand, as `load_series` takes it from the lake."""
    key = (subject.benchmark, subject.parameters, subject.model, subject.quantity)
    found = [
        (run, own)
        for run in runs
        if (own := [each for each in run.measurements if each.subject == key])
    ]
    return build_series([value_in(run, own) for run, own in found], subject.better)


def history(series: Series, subject: Subject, dark: bool = False, zone: str = "UTC") -> Figure:
    theme = look.theme_of(dark)
    if not series.known:
        return look.nothing("history", TITLE, QUESTION, theme, "No run has a valid number of this.")
    ends = [
        (_clock(each.at, zone), each.low, each.high)
        for each in series.known
        if each.low is not None and each.high is not None
    ]
    option = {
        "useUTC": True,
        "grid": parts.grid(),
        "legend": parts.legend(theme, _names(series), type="plain"),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.time_axis(theme, f"Time ({zone})", look.WORDS),
        "yAxis": parts.as_y(parts.value_axis(theme, subject.axis, scale=True)),
        "series": [
            _line(series, subject.unit, zone),
            look.bars("median", BLUE, ends),
            *_marks(series, zone, theme),
        ],
    }
    return look.figure("history", TITLE, _asked(series, subject), option, theme, _notes(series))


def _names(series: Series) -> list[str]:
    kinds = dict.fromkeys(
        "confirmed" if each.is_confirmed else "suspected" for each in series.changes
    )
    return ["median", *kinds]


def _line(series: Series, unit: str, zone: str) -> dict[str, Any]:
    return {
        "type": "line", "name": "median", "color": BLUE, "symbol": "circle", "symbolSize": 7,
        "lineStyle": {"width": 1.5},
        "data": [_item(each, unit, zone) for each in series.known],
    }  # fmt: skip


def _item(each: Value, unit: str, zone: str) -> dict[str, Any]:
    many = f", median of {each.num_devices:,} devices" if each.num_devices > 1 else ""
    name = (
        f"{in_zone(each.at, zone):%Y-%m-%d %H:%M}\n{amount(each.median, unit)}{many}\n"
        f"{amount(each.low)} to {amount(each.high, unit)}\n{each.run}"
    )
    return {"value": _at(each, zone), "name": name}


def _marks(series: Series, zone: str, theme: Theme) -> list[dict[str, Any]]:
    """A confirmed step is a filled mark and a line, one that is only suspected an empty mark."""
    found = []
    for name, is_confirmed, symbol in (
        ("confirmed", True, "triangle"), ("suspected", False, "emptyTriangle"),
    ):  # fmt: skip
        own = [each for each in series.changes if each.is_confirmed is is_confirmed]
        if own:
            colour = ORANGE if is_confirmed else VIOLET
            items = [{"value": _at(each.point, zone), "name": each.text} for each in own]
            marks = parts.marks(name, symbol, 16, colour, items)
            found.append(marks | _upright(own, zone, theme, is_confirmed))
    return found


def _upright(
    changes: Sequence[Change], zone: str, theme: Theme, is_confirmed: bool
) -> dict[str, Any]:
    label = {"color": theme.text, "fontSize": theme.small, "position": "insideEndTop"}
    return {
        "markLine": {
            "symbol": "none",
            "silent": True,
            "lineStyle": {"type": "solid" if is_confirmed else "dotted", "width": 1.5},
            "data": [
                {"xAxis": _clock(each.point.at, zone),
                 "label": label | {"formatter": signed_share(each.size)}}
                for each in changes
            ],
        }
    }  # fmt: skip


def _notes(series: Series) -> list[str]:
    notes = [series.sentence]
    if not series.is_short:
        notes.append(
            "A change is confirmed when four later runs, which did not raise the suspicion, show it too."
        )
    most = max(each.num_devices for each in series.known)
    if most > 1:
        notes.append(f"Medians over {counted(most, 'device')} at most, with their 95 % intervals.")
    return notes


def _asked(series: Series, subject: Subject) -> str:
    on = f" on {series.where}" if series.where else ""
    return f"{QUESTION} {subject.title}{on}."


def _at(each: Value, zone: str) -> list[float]:
    assert each.median is not None
    return [_clock(each.at, zone), look.digits(each.median)]


def _clock(at: datetime, zone: str) -> int:
    """The site's clock as if it were UTC's, which is how the axis shows it."""
    return int(in_zone(at, zone).replace(tzinfo=UTC).timestamp() * 1000)
