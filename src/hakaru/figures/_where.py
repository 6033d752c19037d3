"""The jobs behind an item of a figure, as text in the language of filters: what a click leads to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hakaru.analyses import CLASSES, COLUMNS, UNKNOWN, rules_of
from hakaru.analyses.shapes import OTHERS

if TYPE_CHECKING:
    from hakaru.analyses import Result

QUARTER = re.compile(r"(\d{4})Q([1-4])")


def conjunction(parts: Iterable[str | None]) -> str | None:
    """All of them at once, or nothing where one of them cannot be said."""
    listed = list(parts)
    if None in listed:
        return None
    return " AND ".join(part for part in listed if part) or None


def of_rules(result: Result) -> list[str | None]:
    """The rules that left jobs out, in the words of filters."""
    return [_translated(rule.sql) for rule in rules_of(result.analysis, result.selection)]


def of_key(result: Result, column: str, value: Any) -> str | None:
    """The jobs for which a key has this value; empty where the key stands for all."""
    if column == "class":
        return "" if value == "all" else equals("parallelism", value)
    if value == OTHERS:
        return None
    if column == "quarter" and result.analysis.period == "present":
        return _running_in(value)
    if column == "quarter" and "quarter" in {param.name for param in result.analysis.params}:
        return _of_quarter(str(result.params.get("quarter", "submitted")), value)
    return equals(column, value) if column in COLUMNS else None


def equals(column: str, value: Any) -> str:
    if value is None or value == UNKNOWN:
        return f"{column} IS NULL"
    return f"{column} = {_quoted(value)}"


def between(column: str, low: float | None, high: float | None) -> str:
    """Above `low`, and up to `high`: the steps of a logarithmic axis, rounded as its labels are."""
    above = f"{column} > {_plain(low)}" if low is not None else ""
    up_to = f"{column} <= {_plain(high)}" if high is not None else ""
    return " AND ".join(part for part in (above, up_to) if part)


def _running_in(quarter: Any) -> str:
    """Jobs that ran in a quarter, whenever they were submitted."""
    found = QUARTER.fullmatch(str(quarter))
    if not found:
        return "started_at IS NOT NULL"
    since, until = _span(int(found[1]), int(found[2]))
    return f"started_at < '{until}' AND (ended_at IS NULL OR ended_at > '{since}')"


def _span(year: int, quarter: int) -> tuple[str, str]:
    """The first day of a quarter and of the next one."""
    since = f"{year}-{quarter * 3 - 2:02}-01"
    return since, f"{year + quarter // 4}-{quarter * 3 % 12 + 1:02}-01"


def _of_quarter(meaning: str, value: Any) -> str | None:
    if meaning == "submitted":
        return equals("quarter", value)
    if meaning == "ended":
        found = QUARTER.fullmatch(str(value))
        if value is None or not found:
            return "ended_at IS NULL"
        since, until = _span(int(found[1]), int(found[2]))
        return f"ended_at >= '{since}' AND ended_at < '{until}'"
    if re.search(r"[%_\\]", str(value)):
        return None  # a name with a wildcard of LIKE in it cannot be asked for
    # an id without a log's name stands for itself
    return f"(job_id = {_quoted(value)} OR job_id LIKE {_quoted(f'{value}/%')})"


def _translated(sql: str) -> str:
    text = sql.replace("jobs_all.", "").replace("weight IS", "pe_hours IS")
    text = re.sub(
        r"class_number = (\d)", lambda m: f"parallelism = '{CLASSES[int(m[1]) - 1]}'", text
    )
    return f"({text})" if " OR " in text else text


def _quoted(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _plain(value: float) -> str:
    """Without an exponent, and without the dust of floating point at the end of a step."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
