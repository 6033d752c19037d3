"""The words on axes and in legends: what a column is called, in which unit, and how a value reads."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from hakaru.analyses import UNKNOWN
from hakaru.analyses.shapes import OTHERS
from hakaru.texts import VOCABULARIES, Language

SUFFIXES = {"_s": "seconds", "_h": "hours", "_mib": "MiB", "_w": "W"}


def label(column: str, words: Language) -> str:
    """What stands at the axis of a column: its meaning and its unit."""
    text = _capital(words.told("axis", column, _spoken(column)))
    return f"{text} (%)" if is_share(column) and "%" not in text else text


def name(column: str, value: Any, words: Language) -> str:
    """What a key's value is called; a name of the data stays as it is."""
    if value is None or value == UNKNOWN:
        return words.say("word", "unknown")
    if column == "weekday":
        return words.say("day", str(int(value)))
    if column in VOCABULARIES or value == OTHERS or (column, value) == ("quarter", "all"):
        return _word("parallelism" if column == "class" else column, value, words)
    return str(value)


def is_share(column: str) -> bool:
    return column.startswith("share") or column in ("utilisation", "utilization", "memory_use")


def number(value: Any, column: str = "") -> float | int | None:
    """A number for a chart: six digits, shares in percent, nothing where it is unknown."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if is_share(column):
        value = value * 100
    return value if isinstance(value, int) else float(f"{value:.6g}")


def text(column: str, value: Any, words: Language) -> str:
    """A value as a person reads it in a table or on a bar."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return words.say("figure", "yes" if value else "no")
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number_text(column, value, words)
    return str(value)


def _number_text(column: str, value: float, words: Language) -> str:
    if is_share(column):
        digits = ".1f" if abs(value) >= 0.01 else ".2g"
        return words.in_unit("percent", f"{value * 100:{digits}}")
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def _word(column: str, value: str, words: Language) -> str:
    """As figures call it in this column, in any, or as tables do."""
    spoken = words.told("word", value, value.replace("_", " "))
    return words.told("value", f"{column} {value}", words.told("value", value, spoken))


def _spoken(column: str) -> str:
    """A column that no text names: its own name, and the unit that it ends in."""
    for suffix, word in SUFFIXES.items():
        if column.endswith(suffix):
            return f"{_spoken(column.removesuffix(suffix))} ({word})"
    return _capital(column.removeprefix("num_").replace("_", " "))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
