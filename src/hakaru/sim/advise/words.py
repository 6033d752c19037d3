"""Metrics, their values and those who lose, as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hakaru.sim.whatif.words import duration

if TYPE_CHECKING:
    from hakaru.sim.advise.losses import Loss

SHARES = ("utilisation", "fragmentation", "idle_while_waiting")
MOST_NAMED = 5


def name_of(metric: str) -> str:
    return metric.removesuffix("_s").replace("_", " ")


def value_text(metric: str, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    if metric.endswith("_s"):
        return duration(value)
    return f"{value:.1%}" if metric in SHARES else f"{value:,.2f}"


def change_text(before: float, after: float) -> str:
    """In percent of what it was; what rounds to zero has no sign."""
    if math.isnan(before) or math.isnan(after):
        return "–"
    if before == after:
        return "0 %"
    if not before:
        return "new"
    text = f"{(after - before) / abs(before):+.1%}".replace("%", " %").replace("-", "−")
    return "0.0 %" if text[1:] == "0.0 %" else text


def losses_text(losses: Sequence[Loss]) -> str:
    """Who waits how much longer on average: the first few, and how many there are beside them."""
    named = [
        f"{loss.kind} {loss.name} ({duration(loss.before_s)} to {duration(loss.after_s)} on average, "
        f"{_growth(loss)})"
        for loss in losses[:MOST_NAMED]
    ]
    more = len(losses) - len(named)
    return ", ".join([*named, *([f"and {more:,} more"] if more else [])])


def _growth(loss: Loss) -> str:
    if loss.before_s < 1:
        return f"{duration(loss.after_s - loss.before_s, True)}"
    return change_text(loss.before_s, loss.after_s)
