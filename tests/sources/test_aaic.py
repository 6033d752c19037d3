"""AAIC's CSV files: what each number becomes, what is refused, and the published log as a whole."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from hakaru.engine.duckdb import connect, one_row, select_files
from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine, load
from hakaru.sources._base import detect
from hakaru.sources.ingest import ingest
from tests.conftest import utc

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "aaicwl-2019Q1.csv"
HEADER = SAMPLE.read_text().splitlines()[0]
GOOD = "9, 1, 1, 0, 1, 1, 3600, 0, 1546300800, 1546300810, 1546304410, 10, 3600"


def test_each_number_becomes_its_column(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    job = _jobs(lake)[4]
    assert {name: value for name, value in job.items() if value is not None} == {
        "cluster": "c",
        "job_id": "2019Q1/5",
        "user": "2019Q1/3",
        "account": "2019Q1/2",
        "queue": "normal",
        "state": "killed",
        "num_nodes": 4,
        "num_gpus": 32,  # 4 nodes of 8
        "gpu_model": "P100",
        "requested_s": 3600.0,
        "submitted_at": utc("2019-01-01T00:36:40"),
        "started_at": utc("2019-01-01T00:45:00"),
        "ended_at": utc("2019-01-01T00:53:20"),
        "wait_s": 500.0,
        "run_s": 490.0,  # as recorded, not end - start, which is 500
    }


def test_queues_and_termination_codes_have_names(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    jobs = _jobs(lake)
    assert [job["queue"] for job in jobs] == ["normal", "short", "middle", "long", "normal"]
    states = ["completed", "failed", "timeout", "cancelled", "killed"]
    assert [job["state"] for job in jobs] == states


def test_the_machine_is_known(lake: Lake) -> None:
    ingest(lake, [SAMPLE], "c")
    cluster = load(lake.workspace, lake.facts()).cluster("c")
    assert (cluster.zone, cluster.unit, cluster.gpus_per_node) == ("Asia/Tokyo", "gpu", 8)
    assert cluster.nodes == ()  # 32 to 38, and nobody says when
    hours = {name: queue.max_walltime_h for name, queue in cluster.queues.items()}
    assert hours == {"normal": 72, "short": 3, "middle": 168, "long": 336}  # Table 1 of the paper
    assert [cluster.queues[name].max_nodes for name in ("normal", "long")] == [38, 1]
    assert cluster.queues["short"].max_gpus == 8  # as the log has it


@pytest.mark.parametrize(
    ("cell", "value", "reason"),
    [
        (0, "", "id is not a whole number in range"),
        (0, "seven", "id is not a whole number in range"),
        (3, "4", "queue 4 is not 0 to 3"),
        (3, "2147483647", "queue 2147483647 is not 0 to 3"),
        (4, "0", "nodes or gpus is negative or zero"),
        (4, "9000000000000000000", "nodes is not a whole number in range"),
        (5, "-1", "nodes or gpus is negative or zero"),
        (6, "0", "the requested walltime is not above 0"),
        (7, "-1", "termcode -1 is not 0 to 4"),
        (8, "0", "time_submit is not a time"),
        (8, "9223372036854775807", "time_submit is not a whole number in range"),
        (9, "1546300799", "it starts before it is submitted"),
        (10, "1546300809", "it ends before it starts"),
        (11, "-1", "the wait is negative"),
        (12, "-1", "the run time is negative"),
        (12, "3600.5", "a number has a fraction"),
        (12, "3600, 1", "expected 13 columns, found 14"),
    ],
)
def test_a_bad_cell_is_rejected_with_its_reason(
    cell: int, value: str, reason: str, lake: Lake, tmp_path: Path
) -> None:
    cells = GOOD.split(", ")
    cells[cell] = value
    path = tmp_path / "aaicwl-bad.csv"
    path.write_text(f"{HEADER}\n{GOOD.replace('9', '8', 1)}\n{', '.join(cells)}\n")
    summary = ingest(lake, [path], "c")
    assert summary.first_rejects == [(str(path.resolve()), 3, reason)]
    assert [job["job_id"] for job in _jobs(lake)] == ["bad/8"]


def test_two_files_of_one_name_are_refused(lake: Lake, tmp_path: Path) -> None:
    other = tmp_path / SAMPLE.name
    other.write_text(SAMPLE.read_text())
    with pytest.raises(SourceError, match="several files are called '2019Q1'"):
        ingest(lake, [SAMPLE, other], "c")


def test_other_columns_are_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text(HEADER.replace("walltime_req", "limit") + "\n" + GOOD + "\n")
    with pytest.raises(SourceError, match="the format is not known"):
        detect(path)


def test_the_published_log(aaic_files: list[Path], lake: Lake) -> None:
    """Counts of the paper (section 3) and of the log's own documentation."""
    summary = ingest(lake, aaic_files, "aaic")
    assert (summary.num_read, summary.num_rejected) == (459_545, 0)
    assert summary.upsert.num_new == 459_545
    con = connect(Engine())
    con.execute(f"CREATE VIEW jobs AS {select_files(JOBS, lake.files(JOBS))}")
    assert one_row(con, "SELECT count(*) FROM jobs WHERE run_s >= 60") == (360_756,)
    assert one_row(con, "SELECT count(*) FROM jobs WHERE run_s >= 60 AND state = 'completed'") == (
        308_555,
    )
    assert one_row(
        con, "SELECT count(*) FROM jobs WHERE run_s <> epoch(ended_at) - epoch(started_at)"
    ) == (5_045,)
    assert one_row(
        con, "SELECT count(*) FROM jobs WHERE num_nodes > 1 AND num_gpus <> 8 * num_nodes"
    ) == (44,)


def test_one_malformed_line_in_the_published_log_is_named(
    aaic_files: list[Path], lake: Lake, tmp_path: Path
) -> None:
    lines = gzip.decompress(aaic_files[3].read_bytes()).splitlines(keepends=True)
    lines[50_000] = lines[50_000].replace(b",", b";", 1)
    path = tmp_path / aaic_files[3].name
    path.write_bytes(gzip.compress(b"".join(lines), compresslevel=1))
    summary = ingest(lake, [*aaic_files[:3], path, *aaic_files[4:]], "aaic")
    assert (summary.num_read, summary.num_rejected) == (459_545, 1)
    reason = "expected 13 columns, found 12"
    assert summary.first_rejects == [(str(path.resolve()), 50_001, reason)]


def _jobs(lake: Lake) -> list[dict[str, Any]]:
    con = connect(Engine())
    rows = lake.read(con, JOBS).to_pylist()
    con.close()
    return sorted(rows, key=lambda row: str(row["job_id"]))
