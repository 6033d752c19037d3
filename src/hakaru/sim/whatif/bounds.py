"""Metrics that end at one: shares and the Gini coefficient, so that no change of theirs reaches beyond."""

from __future__ import annotations

from hakaru.sim.whatif.intervals import Interval

AT_MOST_ONE = ("utilisation", "gini_wait")


def held_to_scale(metric: str, found: Interval, before: float, after: float) -> Interval:
    """An interval of a change, cut off where the metric ends: 0.985 can fall by 0.985 or rise by 0.015."""
    if found is None or metric not in AT_MOST_ONE:
        return found
    least, most = -before, max(1.0, before, after) - before
    low, high = (min(max(bound, least), most) for bound in found)
    return low, high
