from __future__ import annotations

from collections.abc import Callable

import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

SIZES = [(1, 1), (1, 1), (1, 4), (2, 16)]


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    rows = [job(i, num_nodes=nodes, num_gpus=gpus) for i, (nodes, gpus) in enumerate(SIZES)]
    rows.append(job(10, num_gpus=8, run_s=59.0))
    rows.append(job(11, num_gpus=0))
    rows.append(job(12, num_gpus=2, submitted_at=utc("2018-04-02T00:00:00")))
    return lake_of(rows)


def test_classes(small: Lake) -> None:
    result = ask(small, "parallelism")
    assert [(r["parallelism"], r["num_jobs"], r["share"]) for r in result.rows] == [
        ("single-pe", 2, 0.4),
        ("single-node", 2, 0.4),
        ("multi-node", 1, 0.2),
    ]
    assert [entry.num_jobs for entry in result.left_out] == [1, 1]


def test_a_lower_least_run_time_brings_short_jobs_back(small: Lake) -> None:
    result = ask(small, "parallelism", min_run_s=0)
    assert sum(r["num_jobs"] for r in result.rows) == 6


def test_by_gpu_hours(small: Lake) -> None:
    shares = {
        r["parallelism"]: r["share"] for r in ask(small, "parallelism", weight="gpu-hours").rows
    }
    assert shares == pytest.approx(
        {"single-pe": 2 / 24, "single-node": 6 / 24, "multi-node": 16 / 24}
    )


def test_gpus_on_one_node(small: Lake) -> None:
    rows = ask(small, "gpus-single-node").rows
    assert [(r["num_pes"], r["num_jobs"]) for r in rows] == [(2, 1), (4, 1)]


def test_gpus_on_several_nodes(small: Lake) -> None:
    rows = ask(small, "gpus-multi-node").rows
    assert [(r["num_pes"], r["num_jobs"]) for r in rows] == [(16, 1)]


def test_by_quarter(small: Lake) -> None:
    rows = ask(small, "parallelism-by-quarter").rows
    assert [(r["quarter"], r["parallelism"], r["share"]) for r in rows] == [
        ("2018Q1", "single-pe", 0.5),
        ("2018Q1", "single-node", 0.25),
        ("2018Q1", "multi-node", 0.25),
        ("2018Q2", "single-node", 1.0),
    ]


def test_processors_where_there_are_no_gpus(lake_of: Callable[..., Lake]) -> None:
    """A machine of 8 processors a node, whose log does not say how many nodes a job had."""
    sizes = (1, 8, 9)
    rows = [job(n, num_gpus=None, num_nodes=None, num_cpus=n) for n in sizes]
    lake = lake_of(rows, '{"cpus_per_node": 8}')
    classes = [r["parallelism"] for r in ask(lake, "parallelism").rows]
    assert classes == ["single-pe", "single-node", "multi-node"]


def test_unknown_nodes_are_not_called_one_node(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(1, num_gpus=None, num_nodes=None, num_cpus=16)])
    assert [r["parallelism"] for r in ask(lake, "parallelism").rows] == ["unknown-nodes"]


@pytest.mark.parametrize(
    "id", ["parallelism", "gpus-single-node", "gpus-multi-node", "parallelism-by-quarter"]
)
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


def test_the_published_log(aaic_lake: Lake) -> None:
    result = ask(aaic_lake, "parallelism")
    assert result.num_used == 360_756
    assert [round(100 * r["share"], 1) for r in result.rows] == [96.2, 3.3, 0.5]
    by_quarter = ask(aaic_lake, "parallelism-by-quarter").rows
    assert min(r["share"] for r in by_quarter if r["parallelism"] == "single-pe") > 0.85
