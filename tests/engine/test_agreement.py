"""Every registered analysis gives the same table on DuckDB and on Spark, from one query text.

The parameters come from the registry, so an analysis added later is compared too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from hakaru.analyses import Analysis, Result, Selection, Session, load_all, open_session
from hakaru.engine import Engine
from hakaru.lake import Lake
from hakaru.schema import CLUSTERS, INGESTS, STATES
from tests.conftest import job, put, put_jobs, utc

NUM_JOBS = 3000
SITES: dict[str, dict[str, Any]] = {
    "gpu": {
        "zone": "Asia/Tokyo",
        "gpus_per_node": 8,
        "nodes": [{"since": "2018-02-01", "count": 4}, {"since": "2018-05-01", "count": 5}],
        "queues": {"normal": {"max_walltime_h": 2}, "long": {"max_walltime_h": 24}},
    },
    "cpu": {"zone": "Europe/Berlin", "cpus_per_node": 16},
}
ALL = tuple(load_all())
OTHER_CHOICES = [
    (analysis, {param.name: choice})
    for analysis in ALL
    for param in analysis.params
    for choice in param.choices
    if choice != param.default
]

Compare = Callable[..., Result]


def named(value: object) -> str | None:
    if isinstance(value, Analysis):
        return value.id
    return "-".join(f"{k}-{v}" for k, v in value.items()) if isinstance(value, dict) else None


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_one_cluster(compare: Compare, analysis: Analysis) -> None:
    result = compare(analysis, Selection(clusters=("gpu",)))
    assert result.rows, "the analysis says nothing of a log that has everything"


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_side_by_side_filtered_and_weighted(compare: Compare, analysis: Analysis) -> None:
    selection = Selection(
        clusters=("cpu", "gpu") if analysis.groups else ("cpu",),
        by="cluster" if analysis.groups else None,
        where="num_nodes <= 3 AND (queue <> 'long' OR queue IS NULL)",
        since="2018-01-20",
        until="2018-06-10",
        states=("any",),
        min_run_s=0,
        weight="gpu-hours" if analysis.weighted else "jobs",
    )
    compare(analysis, selection)


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_three_jobs_of_one_day_that_used_nothing(compare: Compare, analysis: Analysis) -> None:
    """Divisions by zero and deviations of one value are where the engines differ."""
    weight = "gpu-hours" if analysis.weighted else "jobs"
    result = compare(
        analysis, Selection(clusters=("tiny",), states=("any",), min_run_s=0, weight=weight)
    )
    assert not any(value != value for row in result.rows for value in row.values()), "NaN"


@pytest.mark.parametrize(("analysis", "params"), OTHER_CHOICES, ids=named)
def test_other_choices(compare: Compare, analysis: Analysis, params: dict[str, Any]) -> None:
    compare(analysis, Selection(clusters=("gpu",)), **params)


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_a_cluster_without_jobs(compare: Compare, analysis: Analysis) -> None:
    result = compare(analysis, Selection(clusters=("bare",)))
    assert (result.num_selected, result.num_used) == (0, 0)


@pytest.mark.parametrize("where", ["hour BETWEEN 9 AND 17 AND weekday < 5", "weekday = 6"])
def test_hours_and_days_of_two_sites_clocks(compare: Compare, where: str) -> None:
    """Tokyo has no summer time and Berlin has; the engines agree on who submitted when."""
    selection = Selection(clusters=("cpu", "gpu"), by="cluster", where=where)
    result = compare(load_all().get("arrivals-by-week"), selection)
    told = {(row["weekday"], row["hour"]) for row in result.rows if row["num_jobs"]}
    days = {6} if "6" in where else set(range(5))
    assert {day for day, _ in told} == days
    assert {hour for _, hour in told} <= (set(range(24)) if "6" in where else set(range(9, 18)))


def test_a_lake_without_files(spark: Engine, lake: Lake) -> None:
    put_jobs(lake, [])
    with open_session(lake) as duck:
        assert_same(duck.run(ALL[0]), on(spark, duck).run(ALL[0]))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    tiny = [job(i, cluster="tiny", run_s=0.0) for i in range(3)]
    lake = put_jobs(
        Lake.create(tmp_path_factory.mktemp("agreement")), [*random_jobs(seed=2018), *tiny]
    )
    for name, facts in SITES.items():
        put(lake, CLUSTERS.name, [{"cluster": name, "source": "z", "facts": json.dumps(facts)}])
    bare = {"ingest_id": "bare", "cluster": "bare", "source": "test", "synthetic": False}
    put(lake, INGESTS.name, [bare | {"started_at": utc("2018-01-01T00:00:00")}])
    with open_session(lake) as session:
        yield session


@pytest.fixture
def compare(both: Session, spark: Engine) -> Compare:
    def run(analysis: Analysis, selection: Selection, **params: Any) -> Result:
        expected = both.run(analysis, selection, **params)
        assert_same(expected, on(spark, both).run(analysis, selection, **params))
        return expected

    return run


def on(engine: Engine, session: Session) -> Session:
    """The same lake and settings on another engine, which is not closed with it."""
    return replace(session, engine=engine)


def assert_same(duckdb: Result, spark: Result) -> None:
    assert spark.left_out == duckdb.left_out
    assert spark.num_selected == duckdb.num_selected
    beside = ("units", "uncounted", "seen", "caveats")
    assert all(getattr(spark, name) == getattr(duckdb, name) for name in beside)
    assert spark.over.keys() == duckdb.over.keys()
    for name, over in duckdb.over.items():
        pairs = zip(vars(over).values(), vars(spark.over[name]).values(), strict=True)
        assert all(same(ours, theirs) for ours, theirs in pairs), (over, spark.over[name])
    assert spark.table.schema.names == duckdb.table.schema.names
    assert spark.table.schema.types == duckdb.table.schema.types
    assert spark.table.num_rows == duckdb.table.num_rows
    for i, (ours, theirs) in enumerate(zip(duckdb.rows, spark.rows, strict=True)):
        for name, value in ours.items():
            where = f"{duckdb.analysis.id}, row {i}, {name}: {value!r} and {theirs[name]!r}"
            assert same(value, theirs[name]), where


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return type(a) is type(b) and bool(a == b)


def random_jobs(seed: int) -> list[dict[str, Any]]:
    """Two clusters, one of them without GPUs; ties, and nulls wherever a log may have them."""
    rng = np.random.default_rng(seed)
    first = utc("2018-01-10T00:00:00")
    return [_random_job(rng, i, first) for i in range(NUM_JOBS)]


def _random_job(rng: np.random.Generator, i: int, first: Any) -> dict[str, Any]:
    def maybe(value: Any, p: float = 0.05) -> Any:
        return None if rng.random() < p else value

    cluster = "gpu" if i % 3 else "cpu"
    num_nodes = int(rng.choice([1, 1, 1, 2, 4]))
    num_gpus = (
        num_nodes * int(rng.choice([0, 1, 1, 2, 4, 8])) if cluster == "gpu" else maybe(0, 0.5)
    )
    # whole minutes make ties, and fractions of a second are legal
    submitted = first + timedelta(
        minutes=int(rng.integers(0, 200_000)) // 40 * 40, seconds=float(rng.choice([0, 0, 7, 7.25]))
    )
    row: dict[str, Any] = {
        "cluster": cluster,
        "job_id": f"{i}",
        "user": maybe(f"u{rng.integers(0, 25)}"),
        "account": maybe(f"lab{rng.integers(0, 6)}"),
        "queue": maybe(str(rng.choice(["normal", "short", "long"]))),
        "qos": maybe("high", 0.5),
        "name": maybe("train é|", 0.5),
        "application": maybe("pytorch", 0.5),
        "gpu_model": maybe("P100"),
        "num_nodes": maybe(num_nodes),
        "num_gpus": maybe(num_gpus) if num_gpus is not None else None,
        "num_cpus": maybe(num_nodes * int(rng.choice([1, 8, 16]))),
        "memory_mib": maybe(1024.0),
        "requested_s": maybe(float(rng.choice([1800, 7200, 86400, 86400]))),
        "submitted_at": submitted,
    }
    return row | _fate(rng, submitted, maybe)


def _fate(rng: np.random.Generator, submitted: Any, maybe: Callable[..., Any]) -> dict[str, Any]:
    kind = rng.choice(
        ["ended", "running", "pending", "abandoned", "unknown"], p=[0.86, *[0.035] * 4]
    )
    if kind == "pending":
        return {"state": "pending"}
    if kind == "unknown":
        return {"state": maybe("completed", 0.5), "run_s": maybe(99.5, 0.5)}
    wait = timedelta(seconds=int(rng.exponential(3000)) * int(rng.integers(0, 2)))
    if kind == "abandoned":
        return {"state": str(rng.choice(["cancelled", "failed"])), "ended_at": submitted + wait}
    started = submitted + wait
    eligible = maybe(submitted + wait * float(rng.choice([0, 0.25, 1.5])), 0.3)
    times = {"eligible_at": eligible, "started_at": started, "wait_s": wait.total_seconds()}
    if kind == "running":
        return times | {"state": "running"}
    run = timedelta(seconds=int(rng.lognormal(7, 2)))
    state = str(rng.choice(STATES[2:], p=[0.65, *[0.05] * 7]))
    ended = {"ended_at": started + run, "run_s": maybe(run.total_seconds(), 0.02)}
    return times | ended | {"state": maybe(state, 0.02), "exit_code": maybe(0)}
