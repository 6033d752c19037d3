"""Numbers of the simulator as a person reads them: durations, shares and metrics, written as in reports."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from hakaru.texts import UNKNOWN, language

SHARES = ("utilisation", "fragmentation", "idle_while_waiting")


def duration(seconds: float | None, signed: bool = False) -> str:
    """In the unit that a person would use."""
    return _written(language("en").duration, seconds, signed)


def share(value: float | None, signed: bool = False) -> str:
    """In percent."""
    return _written(language("en").share, value, signed)


def decimal(value: float | None) -> str:
    """A number with two decimals, as a correlation."""
    return _written(lambda number: language("en").number(number, 2), value)


def value_text(metric: str, value: float | None) -> str:
    """A metric's value; its name says what it is."""
    if metric.endswith("_s"):
        return duration(value)
    if metric in SHARES:
        return share(value)
    if not metric.startswith("num_"):
        return decimal(value)
    return _written(language("en").number, value)


def _written(write: Callable[[float], str], value: float | None, signed: bool = False) -> str:
    """Unknown is a dash, and what reads as zero has no sign."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    text = write(abs(value))
    if not re.search("[1-9]", text):
        return write(0.0)
    return ("−" if value < 0 else "+" if signed else "") + text
