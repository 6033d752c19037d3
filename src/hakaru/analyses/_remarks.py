"""What must be said beside a table: jobs that the other unit would count, and a machine's size that is
unknown or that the log exceeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses._unit import other_unit

if TYPE_CHECKING:
    from hakaru.analyses._run import Result
    from hakaru.texts import Language

Rows = list[dict[str, Any]]
ROUNDING = 1 + 1e-9


def remarks(result: Result, words: Language) -> list[str]:
    """Sentences on jobs that the unit leaves out, and on the machine's size beside a table of its use."""
    left = unit_remarks(result, words)
    if "utilisation" not in result.table.column_names:
        return left
    return left + [
        line for name, rows in _of_clusters(result) for line in _of_one(result, name, rows, words)
    ]


def unit_remarks(result: Result, words: Language) -> list[str]:
    """How to see the jobs that are left out because their size counts in the other unit."""
    return [
        _other_unit(name, num_jobs, replace(words, unit=result.units[name]))
        for name, num_jobs in result.uncounted.items()
    ]


def _other_unit(name: str, num_jobs: int, words: Language) -> str:
    other = other_unit(words.unit)
    return words.say(
        "remark",
        "other_unit",
        num_jobs=words.number(num_jobs),
        cluster=name,
        other=other,
        others=words.texts["unit"][f"{other}_many"],
    )


def _of_clusters(result: Result) -> Iterator[tuple[str, Rows]]:
    by_cluster = result.selection.by == "cluster"
    for name in result.selection.clusters:
        rows = [row for row in result.rows if not by_cluster or row["cluster"] == name]
        if rows:
            yield name, rows


def _of_one(result: Result, name: str, rows: Rows, words: Language) -> list[str]:
    known = [row for row in rows if row["utilisation"] is not None]
    if not known:
        return _unknown(name, words)
    lines = []
    if len(known) < len(rows):
        lines.append(words.say("remark", "size_partly", cluster=name))
    if result.selection.by in (
        None,
        "cluster",
    ):  # of another group nobody knows how much is its own
        lines += (
            _over_time(name, known, words)
            if "since_at" in rows[0]
            else _over_quarters(name, known, words)
        )
    return lines


def _unknown(name: str, words: Language) -> list[str]:
    """With the lines that would tell it."""
    table = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
    per_node = "cpus_per_node" if words.unit == "cpu" else "gpus_per_node"
    told = words.say("remark", "size_unknown", cluster=name, table=f"[clusters.{table}]")
    return [told, "nodes = 32", f"{per_node} = 8"]


def _over_time(name: str, rows: Rows, words: Language) -> list[str]:
    over = [r for r in rows if r["num_pes_busy"] > r["num_pes_installed"] * ROUNDING]
    if not over:
        return []
    most = max(over, key=lambda row: row["num_pes_busy"])
    values = {
        "share": words.share(_hours(over) / _hours(rows)),
        "most": words.number(most["num_pes_busy"]),
        "size": words.number(most["num_pes_installed"]),
    }
    return [words.say("remark", "over_time", cluster=name, **values)]


def _over_quarters(name: str, rows: Rows, words: Language) -> list[str]:
    over = [r["quarter"] for r in rows if r["utilisation"] > ROUNDING and r["quarter"] != "all"]
    return (
        [words.say("remark", "over_quarters", cluster=name, quarters=words.listed(over))]
        if over
        else []
    )


def _hours(rows: Rows) -> float:
    return float(sum((row["until_at"] - row["since_at"]).total_seconds() for row in rows)) / 3600
