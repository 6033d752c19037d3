"""Metrics, their changes and those who lose, as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hakaru.sim.words import duration, share

if TYPE_CHECKING:
    from hakaru.sim.advise.losses import Loss

MOST_NAMED = 5


def name_of(metric: str) -> str:
    return metric.removesuffix("_s").replace("_", " ")


def change_text(before: float, after: float) -> str:
    """In percent of what it was."""
    if before:
        return share((after - before) / abs(before), True)
    return "new" if after > 0 else share(after)


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
        return duration(loss.after_s - loss.before_s, True)
    return change_text(loss.before_s, loss.after_s)
