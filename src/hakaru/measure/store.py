"""Runs in the lake: stored whole with one commit, read back as records."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import connect, select_files
from hakaru.errors import HakaruError
from hakaru.measure.record import JUDGED, PLAIN, Run, from_rows, to_rows, verdict_of
from hakaru.measure.verdict import Verdict
from hakaru.registry import hint, listed
from hakaru.schema import RUNS
from hakaru.settings import Engine, check_cluster_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from hakaru.lake import Lake

LATEST = "latest"
SELFTEST = "selftest"
GATE = "check "  # how the label of a gate's run begins; the baseline's name follows
LIKE_AN_ID = re.compile(r"\d{8}-\d{6}")


def save(lake: Lake, run: Run) -> None:
    """Store a run; stored again, its rows replace themselves."""
    check_cluster_name(run.cluster)
    with closing(connect(Engine())) as con:
        lake.put_rows(con, RUNS, to_rows(run))


def load_runs(
    lake: Lake, cluster: str | None = None, ids: Sequence[str] = (), benchmark: str | None = None
) -> list[Run]:
    """Runs of the lake, the oldest first: all, or those of a cluster, some ids, one benchmark."""
    wanted: dict[str, Any] = {"cluster": cluster, "benchmark": benchmark}
    conditions = [f"{name} = ?" for name, value in wanted.items() if value is not None]
    values = [value for value in wanted.values() if value is not None]
    if ids:
        conditions.append("run_id IN (SELECT unnest(?))")
        values.append(list(ids))
    where = " AND ".join(conditions) or "true"
    with closing(connect(Engine())) as con:
        table: pa.Table = con.execute(
            f"SELECT * FROM ({select_files(RUNS, lake.files(RUNS))}) WHERE {where} "
            "ORDER BY started_at, host, device, quantity",
            values,
        ).to_arrow_table()
        return from_rows(table.to_pylist())


def list_runs(lake: Lake, cluster: str | None = None) -> list[dict[str, Any]]:
    """A row a run, the newest first: when, what, how many measurements of which verdict."""
    where, values = ("cluster = ?", [cluster]) if cluster else ("true", [])
    rows_of = (
        f"FROM ({select_files(RUNS, lake.files(RUNS))}) WHERE {where} "
        "AND NOT contains(coalesce(parameters, ''), '\"trial\": ')"  # steps of a search
    )
    with closing(connect(Engine())) as con:
        table: pa.Table = con.execute(
            f"""
            SELECT cluster, run_id, any_value(label) AS label, any_value(source) AS source,
                   min(started_at) AS started_at, max(ended_at) AS ended_at,
                   list_sort(list_distinct(list(benchmark))) AS benchmarks,
                   count(DISTINCT host || '/' || device) AS num_devices, count(*) AS num_measurements
            {rows_of}
            GROUP BY cluster, run_id ORDER BY min(started_at) DESC, run_id DESC
            """,
            values,
        ).to_arrow_table()
        plain: pa.Table = con.execute(
            f"SELECT cluster, run_id, verdict, count(*) AS num {rows_of} AND {PLAIN} "
            "GROUP BY cluster, run_id, verdict",
            values,
        ).to_arrow_table()
        odd: pa.Table = con.execute(
            f"SELECT cluster, run_id, {', '.join(JUDGED)} {rows_of} AND NOT {PLAIN}", values
        ).to_arrow_table()
    counts = count_verdicts(plain.to_pylist(), odd.to_pylist())
    return [_with_verdicts(row, counts) for row in table.to_pylist()]


def count_verdicts(
    plain: Iterable[Mapping[str, Any]], odd: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, str], Counter[Verdict]]:
    """How many measurements of each verdict a run has: those counted, and those to look at one by one."""
    counts: dict[tuple[str, str], Counter[Verdict]] = {}
    for row in plain:
        own = counts.setdefault((row["cluster"], row["run_id"]), Counter())
        own[Verdict(row["verdict"])] += row["num"]
    for row in odd:
        own = counts.setdefault((row["cluster"], row["run_id"]), Counter())
        own[verdict_of(row)[0]] += 1
    return counts


def _with_verdicts(
    row: dict[str, Any], counts: Mapping[tuple[str, str], Counter[Verdict]]
) -> dict[str, Any]:
    own = counts[row["cluster"], row["run_id"]]
    return row | {"num_good": own[Verdict.GOOD], "verdicts": list(own)}


def find_run(lake: Lake, name: str = LATEST, cluster: str | None = None) -> Run:
    """A run by its id, the beginning of it, or its label; `latest` leaves self-tests and gates out."""
    known = list_runs(lake, cluster)
    if not known:
        raise HakaruError(_none(lake.workspace, cluster))
    matches = _matches(known, name)
    if len(matches) != 1:
        raise HakaruError(_not_one(known, matches, name))
    (run,) = load_runs(lake, matches[0]["cluster"], [matches[0]["run_id"]])
    return run


def resume_command(id: str, workspace: Path) -> str:
    return f"hakaru bench run --resume {shlex.quote(id)} -w {shlex.quote(str(workspace))}"


def is_aside(benchmarks: Sequence[str], label: str | None) -> bool:
    """Whether a run is a self-test or a gate's, which say nothing of the cluster as a whole."""
    return list(benchmarks) == [SELFTEST] or (label or "").startswith(GATE)


def check_label(label: str | None, of_gate: bool = False) -> str | None:
    """A label that cannot be mistaken for anything else, in one line; only gates have that of a gate."""
    if label is None:
        return None
    if label == LATEST:
        raise HakaruError(
            f"a run cannot be labelled {label!r}: the name is reserved for the newest run"
        )
    if not label.isprintable() or not label.strip() or len(label) > 100:
        raise HakaruError(
            f"a run cannot be labelled {label!r}: use one line of up to 100 characters"
        )
    if label.startswith(GATE) and not of_gate:
        raise HakaruError(
            f"a run cannot be labelled {label!r}: labels that begin with {GATE!r} are those of "
            "hakaru bench check"
        )
    if LIKE_AN_ID.match(label):
        raise HakaruError(f"a run cannot be labelled {label!r}: it looks like the id of a run")
    return label


def _none(workspace: Path, cluster: str | None) -> str:
    """That nothing is stored, and what to do: go on with the newest interrupted run, or measure."""
    from hakaru.measure.job import interrupted  # which needs this module

    jobs = [each.job for each in interrupted(workspace) if each.job and not each.is_elsewhere]
    own = [job for job in jobs if cluster in (None, job.cluster)]
    nothing = f"{workspace} holds no runs{f' of {cluster}' if cluster else ''}"
    if not own:
        where = shlex.quote(str(workspace))
        return f"{nothing}. Measure first: hakaru bench run --quick -w {where}"
    label = f" (label {own[-1].plan.label})" if own[-1].plan.label else ""
    command = resume_command(own[-1].id, workspace)
    return f"{nothing} yet: run {own[-1].id}{label} was interrupted. Go on with it: {command}"


def _matches(known: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """By id, else by its beginning and by label, of which the newest in each cluster."""
    if name == LATEST:
        measured = [each for each in known if not is_aside(each["benchmarks"], each["label"])]
        return (measured or known)[:1]
    by_id = [each for each in known if each["run_id"] == name]
    labelled: dict[str, dict[str, Any]] = {}
    for each in known:
        if each["label"] == name:
            labelled.setdefault(each["cluster"], each)
    begins = [each for each in known if name and each["run_id"].startswith(name)
              and each not in labelled.values()]  # fmt: skip
    return by_id or [*labelled.values(), *begins]


def _not_one(known: list[dict[str, Any]], matches: list[dict[str, Any]], name: str) -> str:
    if not matches:
        return f"there is no run {name!r}; {hint(name, [LATEST, *(each['run_id'] for each in known)], 8)}"
    ids = list(dict.fromkeys(each["run_id"] for each in matches))
    if len(ids) == 1 or all(each["label"] == name for each in matches):
        clusters = ", ".join(sorted(each["cluster"] for each in matches))
        return f"several clusters have a run {name!r}: choose one with --cluster: {clusters}"
    return f"several runs begin with {name!r} or have this label; choose one of {listed(ids, 8)}"
