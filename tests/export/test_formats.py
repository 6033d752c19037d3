"""The lines of each format, worked by hand, and the jobs that a format cannot hold."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.schema import INGESTS, JOBS
from hakaru.sources import ingest
from tests.conftest import job, put, utc
from tests.export._roundtrip import export, hakaru, read_back, run_all, small_lake

START = 1514764800  # 2018-01-01T00:00:00Z


def lines_of(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def test_aaic_lines(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """GPUs are per node, users and groups numbered by first appearance, jobs by submission."""
    later = {"submitted_at": utc("2018-01-01T00:00:02"), "wait_s": 8.0}
    lake = lake_of(
        [
            job("b", user="zoe", num_gpus=16, num_nodes=2, queue="long", state="killed"),
            job("a", **later, run_s=3599.0, queue="short", state="timeout", account="other"),
            job("c", **later, user="zoe", queue="middle", state="failed"),
        ]
    )
    manifest = export(lake, tmp_path, "aaic")
    assert lines_of(tmp_path / "c.csv.gz") == [
        "id, user, group, queue, nodes, gpus, walltime_req, termcode, "
        "time_submit, time_start, time_end, waittime, walltime",
        f"0, 0, 0, 3, 2, 8, 7200, 4, {START}, {START + 10}, {START + 3610}, 10, 3600",
        f"1, 1, 1, 1, 1, 1, 7200, 2, {START + 2}, {START + 10}, {START + 3610}, 8, 3599",
        f"2, 0, 0, 2, 1, 1, 7200, 1, {START + 2}, {START + 10}, {START + 3610}, 8, 3600",
    ]
    assert manifest["columns"]["replaced"] == {
        "job_id": "numbered from 0 in each file, by time of submission",
        "user": "numbered from 0 in each file, by first appearance",
        "account": "numbered from 0 in each file, by first appearance",
    }


def test_aaic_leaves_out_what_it_cannot_hold(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    lake = lake_of(
        [
            job(1),
            job(2, queue="gpu"),
            job(3, queue=None),
            job(4, state="preempted"),
            job(5, state=None),
            job(6, num_gpus=0),
            job(7, num_gpus=None),
            job(8, num_gpus=3, num_nodes=2),
            job(9, started_at=None, ended_at=None, wait_s=None, run_s=None, state="cancelled"),
            job(10, requested_s=None),
            job(11, user=None),
            job(12, account=None),
            job(13, num_nodes=None),
            job(14, run_s=3600.5),
        ]
    )
    manifest = export(lake, tmp_path / "mine.csv", "aaic")
    assert (manifest["num_jobs_selected"], manifest["num_jobs_written"]) == (14, 2)
    assert manifest["left_out"] == {
        "no GPU, or an unknown number": 2,
        "the queue is not one of normal, short, middle, long": 2,
        "no account": 1,
        "no node, or an unknown number": 1,
        "no requested walltime": 1,
        "no start": 1,
        "no user": 1,
        "the GPUs do not divide evenly by the nodes": 1,
        "the state (unknown) has no termcode": 1,
        "the state preempted has no termcode": 1,
    }
    assert manifest["changed"] == {"times or durations were rounded to whole seconds": 1}
    assert len((tmp_path / "mine.csv").read_text().splitlines()) == 3


def test_ids_that_hold_within_a_log_go_to_one_file_a_log(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    """User 5 of log a is not user 5 of log b, and both files keep the number."""
    lake = lake_of(
        [
            job("a/7", user="a/5", account="a/0"),
            job("b/7", user="b/5", account="b/3", state="failed"),
        ]
    )
    manifest = export(lake, tmp_path / "out", "aaic")
    assert manifest["columns"]["replaced"] == {}
    assert [line[:12] for line in lines_of(tmp_path / "out" / "aaicwl-b.csv.gz")[1:]] == [
        "7, 5, 3, 0, "
    ]
    again = read_back(manifest, tmp_path / "out", tmp_path / "again")
    users = load_all().get("users-by-quarter")
    for one in (lake, again):
        with open_session(one) as session:
            rows = session.run(users, quarter="log").rows
        assert [(row["quarter"], row["num_users"]) for row in rows] == [("a", 1), ("b", 1)]
    refused = hakaru("export", "-w", lake.workspace, "-o", tmp_path / "x.csv", "--format", "aaic")
    assert refused.exit_code == 1
    assert "name a folder instead of x.csv" in refused.output


def test_a_requeued_job_is_two_lines(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    again = {"submitted_at": utc("2018-01-01T00:00:05"), "wait_s": 5.0}
    lake = lake_of([job(3), job(3, **again)])
    for format in ("aaic", "swf", "parquet"):
        manifest = export(lake, tmp_path / format, format)
        assert manifest["num_jobs_written"] == 2
        read_back(manifest, tmp_path / format, tmp_path / f"{format}-again")


def test_swf_lines(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """Every kind of job: ended, never started, pending, running, of unknown size and user."""
    never = {"started_at": None, "wait_s": None, "run_s": None}
    gone = {**never, "ended_at": utc("2018-01-01T00:00:40")}
    lake = lake_of(
        [
            job("1_1", user="zoe", num_gpus=4, memory_mib=8.0, queue="big queue"),
            job("1_2", submitted_at=utc("2018-01-01T00:00:01"), wait_s=9.0, state="timeout"),
            job("1_3", submitted_at=utc("2018-01-01T00:00:02"), **gone, state="cancelled"),
            job("1_4", submitted_at=utc("2018-01-01T00:00:03"), **gone, state="failed"),
            job("1_5", submitted_at=utc("2018-01-01T00:00:04"), **never, ended_at=None, state="pending"),
            job("1_6", submitted_at=utc("2018-01-01T00:00:05"), wait_s=5.0, run_s=None, ended_at=None,
                state="running", queue="7", requested_s=None),
            job("1_7", submitted_at=utc("2018-01-01T00:00:06"), wait_s=4.0, run_s=50.0, num_gpus=0,
                user=None, account=None, queue=None, state="preempted", application="pytorch"),
        ],
        facts='{"unit": "gpu", "gpus_per_node": 4, "nodes": 2, "zone": "Asia/Tokyo"}',
    )  # fmt: skip
    manifest = export(lake, tmp_path, "swf")
    written = lines_of(tmp_path / "c.swf.gz")
    assert [line for line in written if not line.startswith(";")] == [
        "1 0 10 3600 4 -1 -1 4 7200 2048 1 1 1 -1 1 -1 -1 -1",
        "2 1 9 3600 1 -1 -1 1 7200 -1 0 2 1 -1 2 -1 -1 -1",
        "3 2 38 0 0 -1 -1 1 7200 -1 5 2 1 -1 2 -1 -1 -1",
        "4 3 -1 -1 -1 -1 -1 1 7200 -1 0 2 1 -1 2 -1 -1 -1",
        "5 4 -1 -1 -1 -1 -1 1 7200 -1 -1 2 1 -1 2 -1 -1 -1",
        "6 5 5 -1 1 -1 -1 1 -1 -1 -1 2 1 -1 7 -1 -1 -1",
        "7 6 4 50 0 -1 -1 0 7200 -1 5 -1 -1 1 -1 -1 -1 -1",
    ]
    header = {line for line in written if line.startswith(";")}
    assert {
        "; Version: 2.2",
        "; MaxJobs: 7",
        f"; UnixStartTime: {START}",
        "; TimeZoneString: Asia/Tokyo",
        "; StartTime: Mon Jan 01 09:00:00 JST 2018",
        "; MaxNodes: 2",
        "; MaxProcs: 8",
        "; Queue: 1 - big queue",
        "; Queue: 2 normal",
        "; Note: a processor (fields 5 and 8) is a GPU",
    } <= header
    assert not any("synthetic" in line for line in header)
    assert manifest["changed"] == {
        "state pending becomes unknown": 1,
        "state preempted becomes cancelled": 1,
        "state running becomes unknown": 1,
        "state timeout becomes failed": 1,
        "the end becomes start + recorded run time": 1,
        "the end is lost, as they never started and were not cancelled": 1,
        "0 processors read as unknown": 1,
    }
    again = read_back(manifest, tmp_path, tmp_path / "again")
    queues = {row["queue"] for row in run_all(again)["queues"]}
    assert queues == {"big queue", "normal", "7", None}


def test_swf_names_the_largest_size_of_a_machine_that_grew(tmp_path: Path) -> None:
    """Two nodes of four GPUs, three from March on."""
    lake = small_lake(tmp_path / "lake")
    export(lake, tmp_path / "out", "swf")
    header = lines_of(tmp_path / "out" / "c.swf.gz")
    assert "; MaxNodes: 3" in header and "; MaxProcs: 12" in header


def test_parquet_holds_the_settings_that_hakaru_toml_changed(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    (lake.workspace / "hakaru.toml").write_text("[clusters.c]\nnodes = 9\n")
    manifest = export(lake, tmp_path / "out", "parquet")
    stored = pq.read_metadata(tmp_path / "out" / "c.parquet")
    assert stored.num_rows == 9
    assert pq.read_schema(tmp_path / "out" / "c.parquet").names == JOBS.names
    facts = json.loads(stored.metadata[b"hakaru.facts"])
    assert facts == manifest["settings"]
    assert facts["nodes"] == [{"count": 9}]
    assert facts["queues"]["long"] == {"max_walltime_h": 48.0, "max_gpus": 4}
    assert stored.metadata[b"hakaru.synthetic"] == b"false"


@pytest.mark.parametrize(
    ("format", "file"), [("swf", "c.swf.gz"), ("parquet", "c.parquet"), ("aaic", None)]
)
def test_synthetic_jobs_stay_marked(format: str, file: str | None, tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    (row,) = lake.ingests()
    real = export(lake, tmp_path / "real", format)
    assert not real["synthetic"] and not real["synthetic_in_files"]
    put(lake, INGESTS.name, [row | {"ingest_id": "later", "synthetic": True}])
    manifest = export(lake, tmp_path / "out", format)
    assert manifest["synthetic"]
    again = Lake.create(tmp_path / "again")
    ingest(again, [tmp_path / "out" / entry["name"] for entry in manifest["files"]], "c")
    if file is None:  # AAIC's format has no place for it but the file's name
        assert not manifest["synthetic_in_files"]
        assert [entry["name"] for entry in manifest["files"]] == ["synthetic-c.csv.gz"]
    else:
        assert manifest["synthetic_in_files"] and again.synthetic_clusters() == {"c"}


@pytest.mark.parametrize("ids", ["kept", "numbered"])
@pytest.mark.parametrize("format", ["aaic", "swf"])
def test_slices_give_the_same_lines(
    format: str,
    ids: str,
    lake_of: Callable[..., Lake],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty jobs, five of them in one second, written at once and in slices of about three."""
    starts = [utc(f"2018-01-01T00:00:{max(n, 5):02}") for n in range(1, 21)]
    rows = [
        job(n if ids == "kept" else f"{n:02}_1", submitted_at=start, user=f"user{n % 3}")
        for n, start in enumerate(starts, 1)
    ]
    lake = lake_of([row | {"started_at": utc("2018-01-01T00:01:00")} for row in rows])
    export(lake, tmp_path / "whole", format)
    monkeypatch.setattr("hakaru.export._lines.SLICE_ROWS", 3)
    manifest = export(lake, tmp_path / "sliced", format)
    name = manifest["files"][0]["name"]
    packed = (tmp_path / "sliced" / name).read_bytes()
    assert packed.count(b"\x1f\x8b\x08") > 4  # gzip's members: the header, and the slices
    assert lines_of(tmp_path / "sliced" / name) == lines_of(tmp_path / "whole" / name)
    read_back(manifest, tmp_path / "sliced", tmp_path / "again")


def test_swf_tells_the_largest_size_of_a_machine_that_shrank(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    sizes = [{"count": 2}, {"since": "2018-02-01", "count": 5}, {"since": "2018-03-01", "count": 3}]
    lake = lake_of([job(1, num_gpus=4)], json.dumps({"nodes": sizes, "gpus_per_node": 4}))
    export(lake, tmp_path / "out", "swf")
    header = lines_of(tmp_path / "out" / "c.swf.gz")
    assert "; MaxNodes: 5" in header and "; MaxProcs: 20" in header


@pytest.mark.parametrize("unit", ["gpu", "cpu"])
def test_swf_keeps_the_size_of_a_machine_whose_nodes_differ(
    lake_of: Callable[..., Lake], tmp_path: Path, unit: str
) -> None:
    """Six of eight processors are busy for the one hour that the log has, on three nodes."""
    rows = [job(1, num_gpus=6, num_cpus=6, wait_s=0.0, started_at=utc("2018-01-01T00:00:00"))]
    lake = lake_of(rows, json.dumps({"unit": unit, "nodes": 3, f"{unit}s": 8}))
    manifest = export(lake, tmp_path / "out", "swf")
    header = lines_of(tmp_path / "out" / "c.swf.gz")
    assert "; MaxNodes: 3" in header and "; MaxProcs: 8" in header
    back = read_back(manifest, tmp_path / "out", tmp_path / "back")
    (whole,) = [row for row in run_all(back)["utilisation"] if row["quarter"] == "all"]
    assert whole["utilisation"] == pytest.approx(0.75)
