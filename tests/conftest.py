"""What the tests share: the published logs beside the project, and small lakes of hand-written jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import CLUSTERS, INGESTS, JOBS, TABLES
from hakaru.settings import Engine
from hakaru.sources import ingest

# what the shell says of its terminal and of Hakaru must not change what a test sees
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "HAKARU_WORKSPACE"):
    os.environ.pop(name, None)

SLURM = "slurm"
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each file's tests go to one worker; those that start Slurm, of which one runs at a time, share one."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    starts_slurm = hasattr(getattr(item, "module", None), "running_slurm")
    return SLURM if starts_slurm else item.nodeid.partition("::")[0]


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the published logs are not beside the project (../shared)")
    return SHARED


@pytest.fixture(scope="session")
def aaic_files(shared: Path) -> list[Path]:
    return sorted((shared / "data" / "aaic").glob("*.csv.gz"))


@pytest.fixture(scope="session")
def aaic_lake(aaic_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """AAIC's six files, ingested once for all tests that only read them."""
    lake = Lake.create(tmp_path_factory.mktemp("aaic"))
    ingest(lake, aaic_files, "aaic")
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "workspace")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def job(number: int, **columns: Any) -> dict[str, Any]:
    """A finished one-GPU job of an hour on a cluster called `c`, with what a test changes."""
    row: dict[str, Any] = {
        "cluster": "c",
        "job_id": str(number),
        "user": "ann",
        "account": "lab",
        "queue": "normal",
        "state": "completed",
        "num_nodes": 1,
        "num_gpus": 1,
        "requested_s": 7200.0,
        "submitted_at": utc("2018-01-01T00:00:00"),
        "started_at": utc("2018-01-01T00:00:10"),
        "ended_at": utc("2018-01-01T01:00:10"),
        "wait_s": 10.0,
        "run_s": 3600.0,
    }
    return row | columns


def put(lake: Lake, table: str, rows: list[dict[str, Any]]) -> None:
    con = connect(Engine())
    con.register("rows", pa.Table.from_pylist(rows, schema=TABLES[table].arrow()))
    lake.upsert(con, TABLES[table], "rows")
    con.close()


def put_jobs(
    lake: Lake, rows: list[dict[str, Any]], facts: str = "{}", zone: str | None = "UTC"
) -> Lake:
    """Store hand-written jobs as if they had been ingested, of a site whose zone is known."""
    put(lake, JOBS.name, rows)
    clusters = sorted({row["cluster"] for row in rows} or {"c"})
    now = datetime.now(UTC)
    for name in clusters:
        ingest = {"ingest_id": name, "cluster": name, "source": "test", "synthetic": False}
        put(lake, INGESTS.name, [ingest | {"started_at": now, "ended_at": now}])
        if zone is not None:
            known = json.dumps({"zone": zone})
            put(lake, CLUSTERS.name, [{"cluster": name, "source": "", "facts": known}])
        put(lake, CLUSTERS.name, [{"cluster": name, "source": "test", "facts": facts}])
    return lake


@pytest.fixture
def lake_of(lake: Lake) -> Callable[..., Lake]:
    def make(rows: list[dict[str, Any]], facts: str = "{}", zone: str | None = "UTC") -> Lake:
        return put_jobs(lake, rows, facts, zone)

    return make
