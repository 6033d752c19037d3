"""The runs side by side as a table of texts: a row a run, values with their change and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from hakaru.sim.whatif.intervals import TOO_FEW
from hakaru.sim.whatif.outcome import Change, Outcome, Variant
from hakaru.sim.words import duration, share

MARKS = (
    "?: the interval of a change includes zero, or there is none, so nothing is claimed",
    "≈: the change is smaller than the replay's own error, so that it may be nothing",
)


class HasInterval(Protocol):
    """A change here, or in the web's answer."""

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...

    @property
    def has_too_few_weeks(self) -> bool: ...


def heading(outcome: Outcome) -> list[str]:
    return [
        "run",
        "jobs that no longer run",
        *(name for title, *_ in _COLUMNS for name in (title, f"change of {title}")),
    ]


def rows(outcome: Outcome) -> list[list[str]]:
    return [_row(run) for run in outcome.runs]


def _row(run: Variant) -> list[str]:
    cells = [run.name, f"{run.metrics['num_no_longer_run']:,.0f}" if run.changes else ""]
    for _, metric, show in _COLUMNS:
        value = run.metrics[metric]
        cells.append(show(value, False) if math.isfinite(value) else "–")
        cells.append(_change(run.changes.get(metric), show))
    return cells


def _change(change: Change | None, show: Callable[[float, bool], str]) -> str:
    if change is None or not math.isfinite(change.change):
        return ""
    mark = (" ≈" if change.is_within_error else "") if change.is_sure else " ?"
    bounds = interval_text(change, show)
    return show(change.change, True) + (f" ({bounds})" if bounds else "") + mark


def interval_text(change: HasInterval, show: Callable[[float, bool], str]) -> str:
    """Its ends, or that weeks are too few; empty where no interval was asked for."""
    if change.low is None or change.high is None:
        return TOO_FEW if change.has_too_few_weeks else ""
    return f"{show(change.low, True)} to {show(change.high, True)}"


def _slowdown(value: float, signed: bool) -> str:
    return _number(value, signed, 2 if abs(value) < 100 else 0)


def _gini(value: float, signed: bool) -> str:
    return _number(value, signed, 3)


def _percent(value: float, signed: bool) -> str:
    """A change of a share is in points."""
    return _number(value * 100, signed, 1) if signed else share(value)


def _number(value: float, signed: bool, digits: int) -> str:
    """What rounds to zero has no sign."""
    rounded = round(value, digits) or 0.0
    sign = "+" if signed and rounded else ""
    return f"{rounded:{sign},.{digits}f}".replace("-", "−")


_COLUMNS: tuple[tuple[str, str, Callable[[float, bool], str]], ...] = (
    ("mean wait", "mean_wait_s", duration),
    ("p95 wait", "p95_wait_s", duration),
    ("mean slowdown", "mean_bounded_slowdown", _slowdown),
    ("use in these weeks", "utilisation", _percent),
    ("inequality", "gini_wait", _gini),
)
