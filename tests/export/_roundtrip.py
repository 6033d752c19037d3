"""Exports read back: the same analyses on two lakes, and a small lake in which every column has a value."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakaru.analyses import Selection, load_all, open_session
from hakaru.engine.duckdb import connect
from hakaru.export import Export, Site
from hakaru.export import export as write_export
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine, parse
from hakaru.sources import ingest
from tests._cli import hakaru
from tests.conftest import job, put_jobs, utc

Rows = list[dict[str, Any]]

FACTS = {
    "zone": "America/New_York",
    "unit": "gpu",
    "gpus_per_node": 4,
    "working_hours": [8, 17],
    "nodes": [{"count": 2}, {"since": "2018-03-05T00:00:00-05:00", "count": 3}],
    "queues": {"normal": {"max_walltime_h": 2}, "long": {"max_walltime_h": 48, "max_gpus": 4}},
}
# what must not leave the house; none of it is part of a word of the formats
SECRETS = ("anneliese", "bo-tanaka", "chem-lab", "phys-lab", "secret-name", "gpunode", "GPU-8f3a")
SECRETS = (*SECRETS, "vip-qos", "cuda-module")


def export(lake: Lake, output: Path, format: str, *arguments: object) -> dict[str, Any]:
    """Export through the command line; gives the manifest."""
    result = hakaru("export", "-w", lake.workspace, "-o", output, "--format", format, *arguments)
    assert result.exit_code == 0, result.output
    path = Path(result.output.rsplit("manifest ", 1)[1].strip())
    manifest: dict[str, Any] = json.loads(path.read_text())
    return manifest


def read_back(manifest: Mapping[str, Any], folder: Path, workspace: Path) -> Lake:
    lake = Lake.create(workspace)
    files = [folder / file["name"] for file in manifest["files"]]
    summary = ingest(lake, files, manifest["clusters"][0])
    assert summary.num_rejected == 0, summary.first_rejects
    assert summary.upsert.num_new == manifest["num_jobs_written"]
    return lake


def run_all(
    lake: Lake, facts: Mapping[str, Any] | None = None, selection: Selection | None = None
) -> dict[str, Rows]:
    """Every registered analysis; `facts` stand in for `hakaru.toml` where files hold no settings."""
    (cluster,) = lake.clusters()
    settings = parse({}, {cluster: facts}, "facts") if facts else None
    with open_session(lake, settings=settings) as session:
        return {
            analysis.id: session.run(analysis, selection).rows
            for analysis in load_all()
            if analysis.weighted or not selection or selection.weight == "jobs"
        }


def differing(left: Mapping[str, Rows], right: Mapping[str, Rows]) -> set[str]:
    assert left.keys() == right.keys()
    return {id for id in left if not same(left[id], right[id])}


def same(left: Rows, right: Rows) -> bool:
    if len(left) != len(right):
        return False
    return all(
        a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)
        for a, b in zip(left, right, strict=True)
    )


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == pytest.approx(right, rel=1e-9, abs=1e-9)
    return bool(left == right)


def all_bytes(folder: Path) -> bytes:
    """Everything an export holds, unpacked: names, manifest, lines, Parquet's pages and footer."""
    found = []
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        found += [path.name.encode(), raw]
        if path.suffix == ".gz":
            found.append(gzip.decompress(raw))
        if path.suffix == ".parquet":
            plain = io.BytesIO()
            pq.write_table(pq.read_table(path), plain, compression="none", use_dictionary=False)
            found.append(plain.getvalue())
    return b"\n".join(found)


def small_lake(workspace: Path) -> Lake:
    """Nine jobs around a change of clocks (11 March 2018) that differ in all that formats may lose."""
    ann = {"user": "anneliese", "account": "chem-lab", "name": "secret-name 1", "qos": "vip-qos"}
    bo = {"user": "bo-tanaka", "account": "phys-lab", "modules": ["cuda-module/9"]}
    rows = [
        job(1, **ann, **_ran("2018-03-01T14:00:00", 60, 3000), application="pytorch"),
        job(2, **bo, **_ran("2018-03-01T14:00:05", 5, 200), state="failed", exit_code=3),
        job(3, **bo, **_ran("2018-03-10T23:30:00", 0, 9000), queue="long", num_gpus=4),
        job(4, **ann, **_ran("2018-03-11T08:30:00", 30, 7200), state="timeout", array_id="77"),
        job(
            5, **ann, **_ran("2018-03-11T08:30:01", 90, 700), num_gpus=8, num_nodes=2, array_id="77"
        ),
        job(6, **bo, **_ran("2018-03-12T01:00:00", 1, 65), state="killed", gpu_model="P100"),
        job(7, **bo, **_ran("2018-04-02T15:00:00", 7, 86), num_cpus=16, memory_mib=2048.0),
        job(8, **ann, **_ran("2018-04-02T15:00:00", 12, 4000), queue="long", requested_s=172800.0),
        job(9, **bo, **_ran("2018-04-03T01:00:00", 3, 100), state="cancelled"),
    ]
    rows[0] |= {"eligible_at": utc("2018-03-01T14:00:20"), "num_gpus": 2}
    rows[0] |= {"nodes": ["gpunode01"], "gpu_ids": ["gpunode01:0", "gpunode01:3"]}
    rows[4] |= {"nodes": ["gpunode01", "gpunode02"], "gpu_ids": ["GPU-8f3a-0001"]}
    return put_jobs(Lake.create(workspace), rows, json.dumps(FACTS))


def _ran(submitted: str, wait_s: int, run_s: int) -> dict[str, Any]:
    from datetime import timedelta

    start = utc(submitted) + timedelta(seconds=wait_s)
    return {
        "submitted_at": utc(submitted),
        "started_at": start,
        "ended_at": start + timedelta(seconds=run_s),
        "wait_s": float(wait_s),
        "run_s": float(run_s),
    }


def write_rows(
    rows: Rows,
    format: str,
    output: Path,
    facts: Mapping[str, Any] | None = None,
    *,
    unit: str = "gpu",
    synthetic: bool = False,
    missing: float | None = None,
    **options: Any,
) -> Export:
    """Export rows without a lake: of a cluster `c` whose settings are `facts`."""
    settings = parse({}, {"c": facts or {}}, "facts").cluster("c")
    site = Site("c", unit, settings, synthetic, missing)
    con = connect(Engine())
    con.register("selected", pa.Table.from_pylist(rows, schema=JOBS.arrow()))
    try:
        return write_export(con, "selected", site, format, output, **options)
    finally:
        con.close()
