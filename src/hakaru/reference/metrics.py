"""The numbers by which clusters are compared: where each stands in an analysis, and how it is read.

`metrics.toml` lists them; `published.csv` holds the same numbers as others have published them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.schema import ENDED, FAILED

Row = Mapping[str, Any]
LARGEST_UNKNOWN_SHARE = 0.01
SETS = {"ENDED": ENDED, "FAILED": FAILED}  # of states, by the names that `metrics.toml` gives them


@dataclass(frozen=True)
class Metric:
    """One number of a cluster; `metrics.toml` explains the fields."""

    id: str
    label: str
    unit: str
    subject: str
    analysis: str = ""
    setting: str = ""
    by: str | None = None
    min_run_s: float | None = None
    states: Sequence[str] = ()
    row: Mapping[str, Any] = field(default_factory=dict)
    of: Mapping[str, Any] = field(default_factory=dict)
    column: str = ""
    per: str = ""
    scale: float = 1.0
    reduce: str = ""
    weight: str = ""
    key: str = ""
    low: str = ""
    high: str = ""
    unknown: str = ""
    missing: str = ""
    users: bool = False


@dataclass(frozen=True)
class Cell:
    """A metric's value for one cluster, or null and the reason.

    `caveat` is what must be said beside the value, and `counted` how many jobs it rests on, of how many.
    """

    value: float | None
    reason: str = ""
    low: float | None = None
    high: float | None = None
    caveat: str = ""
    counted: tuple[int, int] | None = None


def load_metrics() -> dict[str, Metric]:
    """The metrics by their id, in the order in which they are shown."""
    text = (files("hakaru.reference") / "metrics.toml").read_text(encoding="utf-8")
    metrics = {}
    for group in tomllib.loads(text)["group"]:
        shared = {name: value for name, value in group.items() if name != "metrics"}
        for entry in group["metrics"]:
            metrics[entry["id"]] = Metric(**shared | entry)
    return metrics


def find_metrics(ids: Sequence[str]) -> list[Metric]:
    """The named metrics, all of them where none is named."""
    known = load_metrics()
    for id in ids:
        if id not in known:
            raise HakaruError(f"there is no metric {id!r}; {hint(id, known)}")
    return [metric for id, metric in known.items() if not ids or id in ids]


def wanted_states(metric: Metric) -> tuple[str, ...]:
    """The states of the jobs that a metric counts; none where it counts them all."""
    want = metric.row.get("state")
    return () if want is None else tuple(SETS.get(want, (want,)))


def read(metric: Metric, rows: Sequence[Row]) -> Cell:
    """The metric's value in the rows of its analysis."""
    if not rows:
        return Cell(None, metric.missing or "there are no such jobs")
    if share := _unknown_share(metric, rows):
        return Cell(None, f"{share * 100:.0f} % of the jobs: {metric.missing}")
    chosen = [row for row in rows if _fits(row, metric.row)]
    value = REDUCERS[metric.reduce](metric, chosen, rows)
    if value is None:
        return Cell(None, metric.missing or "there are no such jobs")
    if not metric.low:
        return Cell(value * metric.scale)
    low, high = (_number(chosen[0][column]) for column in (metric.low, metric.high))
    return Cell(value * metric.scale, low=low, high=high)


def _unknown_share(metric: Metric, rows: Sequence[Row]) -> float:
    """The share of jobs of which the log does not say enough, 0 where it is small."""
    if not metric.unknown:
        return 0.0
    unknown = [row for row in rows if _is_unknown(row[metric.unknown])]
    share = _sum("num_jobs", unknown) / (_sum("num_jobs", rows) or 1.0)
    return share if share > LARGEST_UNKNOWN_SHARE else 0.0


def _is_unknown(value: Any) -> bool:
    """Null or a word such as `unknown-nodes`; no GPU at all is a number like any other."""
    return value is None or str(value).startswith("unknown")


def _fits(row: Row, wanted: Mapping[str, Any]) -> bool:
    """Whether a row has the wanted values: one, one of a list, or a number in a range."""
    for name, want in wanted.items():
        if isinstance(want, Mapping):
            number = _number(row[name])
            low, high = want.get("low", float("-inf")), want.get("high", float("inf"))
            if number is None or not low <= number <= high:
                return False
        elif row[name] not in (want if isinstance(want, list) else SETS.get(want, [want])):
            return False
    return True


def _number(value: Any) -> float | None:
    """A number, also where a grouping wrote it as text; null for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _sum(column: str, rows: Sequence[Row]) -> float:
    return sum(_number(row[column]) or 0.0 for row in rows)


def _first(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    number = _number(chosen[0][metric.column]) if chosen else None
    if number is None or not metric.per:
        return number
    divisor = _number(chosen[0][metric.per])
    return number / divisor if divisor else None


def _total(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    return _sum(metric.column, chosen)


def _most(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    numbers = [number for row in chosen if (number := _number(row[metric.column])) is not None]
    return max(numbers, default=None)


def _share(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    whole = _sum(metric.column, [row for row in rows if _fits(row, metric.of)])
    return _sum(metric.column, chosen) / whole if whole else None


def _mean(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    weights = _sum(metric.weight, chosen)
    total = sum(float(row[metric.column]) * float(row[metric.weight]) for row in chosen)
    return total / weights if weights else None


def _median(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    """The middle of counted values; of an even number of jobs, between the middle two."""
    counted = sorted((float(row[metric.column]), int(row[metric.weight])) for row in chosen)
    total = sum(count for _, count in counted)
    if not total:
        return None
    middle = [_at(counted, place) for place in ((total - 1) // 2, total // 2)]
    return sum(middle) / 2


def _at(counted: Sequence[tuple[float, int]], place: int) -> float:
    for value, count in counted:
        if place < count:
            return value
        place -= count
    raise AssertionError("a place beyond the counted values")


def _peak(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    """Where it is largest; unknown as long as one of them is, as a weekday of a short log."""
    if any(row[metric.column] is None for row in chosen):
        return None
    best = max(chosen, key=lambda row: _number(row[metric.column]) or 0.0)
    return _number(best[metric.key])


def _ratio(metric: Metric, chosen: Sequence[Row], rows: Sequence[Row]) -> float | None:
    numbers = [_number(row[metric.column]) or 0.0 for row in chosen]
    return max(numbers) / min(numbers) if min(numbers) else None


REDUCERS: dict[str, Callable[[Metric, Sequence[Row], Sequence[Row]], float | None]] = {
    "": _first,
    "sum": _total,
    "max": _most,
    "share": _share,
    "mean": _mean,
    "median": _median,
    "peak": _peak,
    "ratio": _ratio,
}
