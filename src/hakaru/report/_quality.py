"""How good the data is: lines that could not be read, jobs that rules leave out, columns nobody filled."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import connect, select_files
from hakaru.schema import JOBS, REJECTS
from hakaru.settings import Engine

if TYPE_CHECKING:
    from hakaru.analyses import Result, Selection, Session

MAX_REASONS = 20
MAX_INGESTS = 12


@dataclass(frozen=True)
class Reject:
    reason: str
    num_lines: int
    file: str
    line: int


@dataclass(frozen=True)
class Excluded:
    """A rule, how many jobs it leaves out, and in which analyses."""

    rule: str
    num_jobs: int
    analyses: list[str]


@dataclass(frozen=True)
class Quality:
    rejects: list[Reject]
    ingests: list[dict[str, Any]]
    left_out: list[Excluded]
    coverage: dict[str, float]  # share of the selected jobs that have the column, by its name


def quality_of(session: Session, chosen: Selection, results: Sequence[Result]) -> Quality:
    (cluster,) = chosen.clusters
    return Quality(
        rejects=_rejects(session, cluster),
        ingests=_ingests(session, cluster),
        left_out=_left_out(results),
        coverage=_coverage(session, chosen),
    )


def _rejects(session: Session, cluster: str) -> list[Reject]:
    files = session.lake.files(REJECTS)
    with closing(connect(Engine())) as con:
        rows = con.execute(
            "SELECT reason, count(*), min_by(file, (file, line)), min_by(line, (file, line)) "
            f"FROM ({select_files(REJECTS, files)}) WHERE cluster = {quote(cluster)} "
            f"GROUP BY reason ORDER BY count(*) DESC, reason LIMIT {MAX_REASONS}"
        ).fetchall()
    return [Reject(reason, count, PurePath(file).name, line) for reason, count, file, line in rows]


def _ingests(session: Session, cluster: str) -> list[dict[str, Any]]:
    """The last ingests; files by their names alone, as a report leaves the machine that it was made on."""
    rows = [row for row in session.lake.ingests() if row["cluster"] == cluster]
    return [
        row | {"files": [PurePath(name).name for name in row["inputs"] or []]}
        for row in rows[-MAX_INGESTS:]
    ]


def _left_out(results: Sequence[Result]) -> list[Excluded]:
    """Rules with the number that each leaves out, analyses with the same number together."""
    found: dict[tuple[str, int], list[str]] = {}
    for result in results:
        for entry in result.left_out:
            if entry.num_jobs:
                found.setdefault((entry.rule, entry.num_jobs), []).append(result.analysis.id)
    return [Excluded(rule, count, ids) for (rule, count), ids in found.items()]


def _coverage(session: Session, chosen: Selection) -> dict[str, float]:
    counts = ", ".join(f"count(jobs.{name}) AS {name}" for name in JOBS.names)
    plain = replace(chosen, weight="jobs", min_run_s=None, states=())
    (row,) = session.ask(f"SELECT count(*) AS num_all, {counts} FROM jobs", plain).to_pylist()
    total = row.pop("num_all")
    return {name: count / total for name, count in row.items()} if total else {}
