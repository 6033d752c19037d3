"""Where an export goes: a file or a folder, never over another, whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.lake import Lake
from tests.conftest import job
from tests.export._roundtrip import export, hakaru, small_lake


@pytest.mark.parametrize(
    ("format", "output", "files"),
    [
        ("swf", "deep/folder", ["deep/folder/c.swf.gz", "deep/folder/manifest.json"]),
        ("swf", "v1.2.swf", ["v1.2.manifest.json", "v1.2.swf"]),
        ("aaic", "mine.csv.gz", ["mine.csv.gz", "mine.manifest.json"]),
        ("parquet", "jobs.parquet", ["jobs.manifest.json", "jobs.parquet"]),
    ],
)
def test_files_and_their_manifest(
    format: str, output: str, files: list[str], tmp_path: Path
) -> None:
    lake = small_lake(tmp_path / "lake")
    place = tmp_path / "place"
    manifest = export(lake, place / output, format)
    found = sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())
    assert found == files
    (entry,) = manifest["files"]
    raw = next(place.rglob(entry["name"])).read_bytes()
    assert (entry["num_bytes"], entry["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())


def test_nothing_is_replaced_unless_asked(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    command = ("export", "-w", lake.workspace, "-o", tmp_path / "out", "--format", "swf")
    assert hakaru(*command).exit_code == 0
    before = (tmp_path / "out" / "c.swf.gz").read_bytes()
    refused = hakaru(*command, "--where", "num_gpus = 1")
    assert refused.exit_code == 1
    assert "is there already; choose another place, or add --overwrite" in refused.output
    assert (tmp_path / "out" / "c.swf.gz").read_bytes() == before
    replaced = hakaru(*command, "--where", "num_gpus = 1", "--overwrite")
    assert "wrote 6 of 6 jobs" in replaced.output
    assert (tmp_path / "out" / "c.swf.gz").read_bytes() != before


@pytest.mark.parametrize(
    ("output", "there"), [("out", "out/c.swf.gz"), ("mine.swf", "mine.manifest.json")]
)
def test_neither_a_log_nor_a_manifest_of_another_is_replaced(
    output: str, there: str, tmp_path: Path
) -> None:
    lake = small_lake(tmp_path / "lake")
    (tmp_path / "out").mkdir()
    (tmp_path / there).write_text("of somebody else")
    command = ("export", "-w", lake.workspace, "-o", tmp_path / output, "--format", "swf")
    refused = hakaru(*command)
    assert refused.exit_code == 1 and f"{tmp_path / there} is there already" in refused.output
    assert (tmp_path / there).read_text() == "of somebody else"
    assert [path.name for path in (tmp_path / "out").iterdir()] in ([], ["c.swf.gz"])


def test_the_filters_are_told(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    options = ("--since", "2018-04-01", "--where", "queue = 'long'")
    manifest = export(lake, tmp_path / "out", "parquet", *options)
    assert manifest["num_jobs_written"] == manifest["num_jobs_selected"] == 1
    assert manifest["filters"] == {"where": "queue = 'long'", "since": "2018-04-01"}


def test_an_ending_of_another_format_is_refused(tmp_path: Path) -> None:
    lake = small_lake(tmp_path / "lake")
    result = hakaru("export", "-w", lake.workspace, "-o", tmp_path / "x.parquet", "--format", "swf")
    assert result.exit_code == 1
    assert "name a folder, or a file that ends in .swf.gz or .swf" in result.output


def test_no_job_to_write_leaves_nothing_behind(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    lake = lake_of([job(1, queue="gpu")])
    result = hakaru("export", "-w", lake.workspace, "-o", tmp_path / "out", "--format", "aaic")
    assert result.exit_code == 1
    assert "no job can be written as aaic:\n  1 × the queue is not one of normal" in result.output
    assert list((tmp_path / "out").iterdir()) == []


def test_one_cluster_at_a_time(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    lake = lake_of([job(1), job(2, cluster="d")])
    command = ("export", "-w", lake.workspace, "-o", tmp_path / "out", "--format", "parquet")
    result = hakaru(*command)
    assert result.exit_code == 1
    assert "choose one with --cluster" in result.output
    assert "d: wrote 1 of 1 job" in hakaru(*command, "--cluster", "d").output
