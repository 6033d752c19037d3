"""Numbers as people read them: the same value looks the same in the terminal, the report and the figures."""

from __future__ import annotations

import math

from hakaru.texts import language

UNKNOWN = "–"
MANY_DIGITS = 1e15  # from here on a number is written with an exponent


def amount(value: float | None, unit: str = "") -> str:
    """As `4.12 ms`: four digits, and large numbers whole."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    if size >= MANY_DIGITS:
        return f"{value:.4g} {unit}".strip()
    text = f"{value:,.0f}" if size >= 999.95 else f"{value:.4g}" if size >= 1e-3 else f"{value:.2g}"
    return f"{text} {unit}".strip()


def share(value: float) -> str:
    """As `5.8 %`."""
    if not math.isfinite(value * 100):
        return UNKNOWN
    return f"{value * 100:.3g} %" if abs(value) >= MANY_DIGITS else language("en").share(value)


def interval_text(low: float | None, high: float | None) -> str:
    """As `4.1 to 4.3`; empty where an end is unknown."""
    return f"{amount(low)} to {amount(high)}" if low is not None and high is not None else ""


def counted(num: int, one: str, many: str = "") -> str:
    """As `2 ranks`."""
    return f"{num:,} {one if num == 1 else many or one + 's'}"
