"""The findings in the order of the AAIC paper, each with its threshold for being worth a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hakaru.findings._base import Rows, Told, finding, told
from hakaru.schema import ENDED, FAILED, LOST

MOST = 0.5  # a majority
MANY = 0.1
SOME = 0.05
TWICE = 2.0
UNEVEN = 1.5
SOON_S = 600.0


@finding("single-pe", "parallelism")
def single_pe(rows: Rows) -> Told | None:
    share, hours = _shares(rows, "parallelism", ("single-pe",))
    if share is None or share < MOST:
        return None
    return told("single-pe", {"share": share, "share_hours": hours})


@finding("multi-node", "parallelism")
def multi_node(rows: Rows) -> Told | None:
    """Few jobs that take much of the machine."""
    share, hours = _shares(rows, "parallelism", ("multi-node",))
    if not share or hours is None or hours < SOME or hours < TWICE * share:
        return None
    return told("multi-node", {"share": share, "share_hours": hours})


@finding("over-request", "request-accuracy")
def over_request(rows: Rows) -> Told | None:
    row = _first(rows)
    median = row.get("median")
    if not median or median > 1 / TWICE:
        return None
    values = {"times": 1 / median, "median": median, "mean": row["mean"]}
    return told("over-request", values, median="share", mean="share")


@finding("at-max", "request-accuracy")
def at_max(rows: Rows) -> Told | None:
    """Where no limit is known, the longest request that the queue has seen stands in for it."""
    row = _first(rows)
    share = row.get("share_at_max")
    if share is None or share < MANY:
        return None
    known = row["share_with_known_limit"]
    if 0 < known < 1:
        return told("at-max-partly", {"share": share, "share_unknown": 1 - known})
    return told("at-max" if known else "at-max-seen", {"share": share})


@finding("run-time", "walltime")
def run_time(rows: Rows) -> Told | None:
    """A mean far above the median: few long jobs among many short ones."""
    row = _where(rows, "class", "all")
    if not row or not row["median_h"] or row["mean_h"] < TWICE * row["median_h"]:
        return None
    values = {
        "median": row["median_h"] * 3600,
        "mean": row["mean_h"] * 3600,
        "share_long": row["share_long"],
    }
    return told("run-time", values, median="duration", mean="duration")


@finding("scaling", "size-vs-walltime")
def scaling(rows: Rows) -> Told | None:
    """Only where the interval does not hold 0, on samples that are large enough."""
    row = _where(rows, "coefficient", "spearman")
    if row.get("reading") not in ("weak scaling", "strong scaling"):
        return None
    values = {name: row[name] for name in ("mean", "low", "high")}
    key = row["reading"].replace(" ", "-")
    return told(key, values, **dict.fromkeys(values, "correlation"))


@finding("busiest-hour", "arrivals-by-hour")
def busiest_hour(rows: Rows) -> Told | None:
    peak, quiet = _ends(rows)
    if peak is None or not peak["mean"]:
        return None
    means = [row["mean"] for row in rows if row["mean"] is not None]
    times = peak["mean"] * len(means) / sum(means)
    values = {"hour": peak["hour"], "next_hour": peak["hour"] + 1, "quiet_hour": quiet["hour"]}
    return told("busiest-hour", values | {"times": times}) if times >= UNEVEN else None


@finding("busiest-day", "arrivals-by-weekday")
def busiest_day(rows: Rows) -> Told | None:
    peak, quiet = _ends(rows)
    if len(rows) < 7 or peak is None or not all(row["mean"] for row in rows):
        return None
    times = peak["mean"] / quiet["mean"]
    values = {"weekday": peak["weekday"], "quiet_weekday": quiet["weekday"], "times": times}
    return told("busiest-day", values) if times >= UNEVEN else None


@finding("bursts", "interarrivals")
def bursts(rows: Rows) -> Told | None:
    row = _where(rows, "submissions", "all")
    median, mean = row.get("median_s"), row.get("mean_s")
    if median is None or mean is None or mean < 10 * median or (row["num_gaps"] or 0) < 100:
        return None
    key = "bursts" if median else "bursts-same-second"
    return told(key, {"median": median, "mean": mean}, median="duration", mean="duration")


@finding("waits", "waits")
def waits(rows: Rows) -> Told | None:
    row = _where(rows, "part", "submit to start")
    if row.get("p90_s") is None:
        return None
    if row["p90_s"] < SOON_S:
        return told("at-once", {"p90": row["p90_s"]}, p90="within")
    if row["p99_s"] is None:
        return None
    values = {"median": row["median_s"], "p90": row["p90_s"]}
    formats = {"median": "within", "p90": "duration", "p99": "duration", "max": "duration"}
    if row["num_jobs"] < 100 or row["p99_s"] == row["max_s"]:  # a hundredth is no job of its own
        return told("waits-longest", values | {"max": row["max_s"]}, **formats)
    return told("waits", values | {"p99": row["p99_s"]}, **formats)


@finding("abandoned", "abandoned-waits")
def abandoned(rows: Rows) -> Told | None:
    share = _where(rows, "fate", "abandoned").get("share")
    return told("abandoned", {"share": share}) if share is not None and share >= SOME else None


@finding("failed", "states")
def failed(rows: Rows) -> Told | None:
    share, hours = _shares(_ended(rows), "state", FAILED)
    if share is None or share < SOME:
        return None
    return told("failed", {"share": share, "share_hours": hours})


@finding("timeout", "states")
def timeout(rows: Rows) -> Told | None:
    share, hours = _shares(_ended(rows), "state", ("timeout",))
    if not share or hours is None or hours < SOME or hours < TWICE * share:
        return None
    return told("timeout", {"share": share, "share_hours": hours})


@finding("not-completed", "states")
def not_completed(rows: Rows) -> Told | None:
    _, hours = _shares(_ended(rows), "state", LOST)
    if hours is None or hours < MANY:
        return None
    return told("not-completed", {"share_hours": hours})


@finding("few-users", "concentration", weight="gpu-hours")
def few_users(rows: Rows) -> Told | None:
    row = _where(rows, "holder", "user")
    if (row.get("num_holders") or 0) < 20 or (row["share_top_tenth"] or 0) < MOST:
        return None
    values = {
        "num_users": row["num_holders"],
        "share_hours": row["share_top_tenth"],
        "share_top1": row["share_top1"],
    }
    return told("few-users", values)


@finding("utilisation", "utilisation")
def utilisation(rows: Rows) -> Told | None:
    share = _where(rows, "quarter", "all").get("utilisation")
    if share is None:
        return None
    return told("overfull" if share > 1 else "utilisation", {"share": share})


def _ended(rows: Rows) -> Rows:
    """The states of jobs that are known to be over."""
    return [row for row in rows if row["state"] in ENDED]


def _first(rows: Rows) -> Mapping[str, Any]:
    return rows[0] if rows else {}


def _where(rows: Rows, column: str, value: str) -> Mapping[str, Any]:
    return next((row for row in rows if row[column] == value), {})


def _shares(rows: Rows, column: str, values: tuple[str, ...]) -> tuple[float | None, float | None]:
    """The share of the jobs, and of their hours where those are known."""
    chosen = [row for row in rows if row[column] in values]
    jobs, hours = (sum(row[name] or 0 for row in rows) for name in ("num_jobs", "pe_hours"))
    mine = [sum(row[name] or 0 for row in chosen) for name in ("num_jobs", "pe_hours")]
    return (mine[0] / jobs if jobs else None), (mine[1] / hours if hours else None)


def _ends(rows: Rows) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """The row with the largest mean, and the one with the least."""
    known = [row for row in rows if row["mean"] is not None]
    if not known:
        return None, {}
    return max(known, key=lambda row: row["mean"]), min(known, key=lambda row: row["mean"])
