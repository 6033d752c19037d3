"""What must be said beside a table: jobs that the other unit would count, a machine's size that is unknown or
that the log exceeds, and what the log does not say (`_caveats.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses._caveats import caveat_remarks
from hakaru.analyses._unit import other_unit
from hakaru.settings import toml_table

if TYPE_CHECKING:
    from hakaru.analyses._result import Result
    from hakaru.texts import Language

Rows = list[dict[str, Any]]


def remarks(result: Result, words: Language) -> list[str]:
    """Sentences on jobs that the unit leaves out, on the log, and on the machine's size beside its use."""
    left = [
        *_submitted_before(result, words),
        *unit_remarks(result, words),
        *caveat_remarks(result, words),
        *over_remarks(result, words),
    ]
    if "utilisation" not in result.table.column_names:
        return left
    return left + [
        line for name, rows in _of_clusters(result) for line in _of_one(result, name, rows, words)
    ]


def _submitted_before(result: Result, words: Language) -> list[str]:
    """That a table of the machine's use selects more jobs than the others do of the same period."""
    since = result.selection.since
    if since is None or result.analysis.period != "present":
        return []
    return [words.say("remark", "submitted_before", since=since)]


def missing_remarks(missing: Mapping[str, float], words: Language) -> list[str]:
    """Which share of a cluster's log is missing from whatever stands beside it."""
    return [
        words.say("remark", "missing", cluster=name, share=words.share(share))
        for name, share in missing.items()
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
        "other_unit" if num_jobs != 1 else "other_unit_one",
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


def over_remarks(result: Result, words: Language) -> list[str]:
    """Where more is busy than the clusters have."""
    return [
        words.say(
            "remark",
            "over_time",
            cluster=name,
            share=words.share(over.share),
            most=words.number(over.most),
            size=words.number(over.size),
        )
        for name, over in result.over.items()
    ]


def _of_one(result: Result, name: str, rows: Rows, words: Language) -> list[str]:
    known = [row for row in rows if row["utilisation"] is not None]
    if not known:
        return _unknown(result, name, rows, words)
    partly = len(known) < len(rows)
    return [words.say("remark", "size_partly", cluster=name)] if partly else []


def _unknown(result: Result, name: str, rows: Rows, words: Language) -> list[str]:
    """With the lines that would tell it: of the size that the log shows, or an example."""
    per_node = f"{words.unit}s_per_node"
    values = {"cluster": name, "table": toml_table(name)}
    seen = result.seen.get(name)
    if seen is None:
        told = words.say("remark", "size_unknown", **values)
        return [told, "nodes = 32", f"{per_node} = 8"]
    told = words.say(
        "remark",
        "size_seen",
        **values,
        num_pes=words.number(seen.num_pes),
        num_nodes=words.number(seen.num_nodes),
        busy=words.number(_mean_busy(rows), 1),
    )
    if seen.num_nodes * seen.most_on_a_node == seen.num_pes:
        return [told, f"nodes = {seen.num_nodes}", f"{per_node} = {seen.most_on_a_node}"]
    # not all nodes were seen with as many, so that no size of a node is known
    return [told, f"{words.unit}s = {seen.num_pes}  # {words.say('remark', 'size_least')}"]


def _mean_busy(rows: Rows) -> float:
    """PEs in use, as a mean over the whole time of the table, of all groups together."""
    if "busy_pe_hours" in rows[0]:
        whole = [row for row in rows if row["quarter"] == "all"]
        return float(sum(row["busy_pe_hours"] / row["span_h"] for row in whole))
    spans = [(row["until_at"] - row["since_at"]).total_seconds() for row in rows]
    busy = sum(row["num_pes_busy"] * span for row, span in zip(rows, spans, strict=True))
    whole_s = sum({row["since_at"]: span for row, span in zip(rows, spans, strict=True)}.values())
    return float(busy / whole_s)
