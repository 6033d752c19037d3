"""The words on axes and in legends: what a column is called, in which unit, and how a value reads."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

UNIT_WORDS = {"gpu": ("GPU", "GPUs"), "cpu": ("processor", "processors")}
# {one} is GPU or processor, {many} its plural
NAMES = {
    "num_jobs": "Jobs",
    "pe_hours": "{one}-hours",
    "num_users": "Active users",
    "num_accounts": "Active groups (accounts)",
    "num_days": "Days",
    "num_all": "Of all",
    "application": "Application",
    "num_pes": "{many} of a job",
    "num_gpus": "GPUs",
    "num_nodes": "Nodes",
    "num_pes_busy": "Busy {many}",
    "num_pes_installed": "Installed {many}",
    "num_jobs_waiting": "Jobs that wait",
    "num_pes_waiting": "{many} asked for by jobs that wait",
    "num_jobs_running": "Jobs that run",
    "utilisation": "Utilisation",
    "queue": "Queue",
    "state": "Final state",
    "user": "User",
    "account": "Account",
    "quarter": "Quarter",
    "parallelism": "Parallelism",
    "hour": "Hour of day, site's clock",
    "weekday": "Day of the week",
    "run_h": "Run time (hours)",
    "wait_h": "Wait (hours)",
    "requested_h": "Requested time (hours)",
    "utilization": "GPU core use (%)",
    "memory_use": "GPU memory use (%)",
}
CLASSES = {
    "single-pe": "1 {one}",
    "single-node": "several {many}, one node",
    "multi-node": "several nodes",
    "unknown-nodes": "several {many}, nodes unknown",
    "all": "all jobs",
}
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SUFFIXES = {"_s": "seconds", "_h": "hours", "_mib": "MiB", "_w": "W"}


def label(column: str, unit: str = "gpu") -> str:
    """What stands at the axis of a column: its meaning and its unit."""
    if column in NAMES:
        text = _capital(_with_unit(NAMES[column], unit))
        return f"{text} (%)" if is_share(column) and "%" not in text else text
    for suffix, word in SUFFIXES.items():
        if column.endswith(suffix):
            return f"{_spoken(column.removesuffix(suffix))} ({word})"
    return f"{_spoken(column)} (%)" if is_share(column) else _spoken(column)


def name(column: str, value: Any, unit: str = "gpu") -> str:
    """What a key's value is called."""
    if value is None or value == "(unknown)":
        return "unknown"
    if column in ("parallelism", "class") and value in CLASSES:
        return _with_unit(CLASSES[value], unit)
    if column == "quarter" and value == "all":
        return "whole period"
    if column == "weekday":
        return WEEKDAYS[int(value)]
    if column == "state":
        return str(value).replace("_", " ")
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


def text(column: str, value: Any) -> str:
    """A value as a person reads it in a table or on a bar."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return _number_text(column, value)
    return str(value)


def _number_text(column: str, value: float) -> str:
    if is_share(column):
        return f"{value * 100:.1f} %" if abs(value) >= 0.01 else f"{value * 100:.2g} %"
    if value and abs(value) < 0.001:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def _with_unit(text: str, unit: str) -> str:
    one, many = UNIT_WORDS[unit]
    return text.format(one=one, many=many)


def _spoken(column: str) -> str:
    return _capital(column.removeprefix("num_").replace("_", " "))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
