"""The manifest beside an export, the settings that go with it, and what stands in the way of one."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from hakaru.errors import HakaruError
from hakaru.export import make_disguise
from tests.conftest import job, utc
from tests.export._roundtrip import write_rows

FACTS: dict[str, Any] = {
    "zone": "Asia/Kolkata",
    "gpus_per_node": 4,
    "cpus_per_node": 48,
    "working_hours": [8, 17],
    "nodes": [{"count": 5}, {"since": "2018-01-08", "count": 3}],
    "gpus": [{"count": 18}, {"since": "2018-01-09T12:00:00", "count": 12}],
    "cpus": 240,
    "queues": {"normal": {"max_walltime_h": 2.5, "max_gpus": 4, "max_nodes": 1}, "long": {}},
    "users_per_file": True,
    "relative_dates": True,
}
SETTINGS = FACTS | {
    "unit": "gpu",
    "nodes": [{"count": 5}, {"since": "2018-01-08T00:00:00+05:30", "count": 3}],
    "gpus": [{"count": 18}, {"since": "2018-01-09T12:00:00+05:30", "count": 12}],
    "cpus": [{"count": 240}],
}


def test_a_whole_manifest(tmp_path: Path) -> None:
    """Of five jobs AAIC's format holds two; a column that no job has is not spoken of."""
    rows = [
        job(1, qos="high", gpu_model="A100", array_id="4", run_s=3600.5),
        job(2, qos="high", user="zoe"),
        job(3, queue="gpu", memory_mib=1.0),
        job(4, queue="gpu"),
        job(5, num_gpus=0),
    ]
    filters = {"since": "2018-01-01"}
    done = write_rows(
        rows, "aaic", tmp_path / "x.csv", FACTS, synthetic=True, missing=0.25, filters=filters
    )
    raw = (tmp_path / "x.csv").read_bytes()
    expected = {
        "made_by": f"hakaru {version('hakaru')}",
        "format": "aaic",
        "clusters": ["c"],
        "synthetic": True,
        "synthetic_in_files": False,
        "filters": {"since": "2018-01-01"},
        "missing": 0.25,
        "num_jobs_selected": 5,
        "num_jobs_written": 2,
        "left_out": {
            "the queue is not one of normal, short, middle, long": 2,
            "no GPU, or an unknown number": 1,
        },
        "changed": {"times or durations were rounded to whole seconds": 1},
        "anonymised": False,
        "times": "as they are",
        "columns": {
            "replaced": {
                "user": "numbered from 0 in each file, by first appearance",
                "account": "numbered from 0 in each file, by first appearance",
            },
            "removed": {},
            "not_in_format": {
                "array_id": "1 jobs have it",
                "qos": "2 jobs have it",
                "gpu_model": "1 jobs have it",
                "memory_mib": "1 jobs have it",
            },
        },
        "settings": SETTINGS,
        "settings_in_files": False,
        "files": [
            {
                "name": "x.csv",
                "num_jobs": 2,
                "num_bytes": len(raw),
                "sha256": hashlib.sha256(raw).hexdigest(),
            }
        ],
    }
    assert done.manifest == expected
    assert done.manifest_path == tmp_path / "x.manifest.json"
    assert json.loads(done.manifest_path.read_text(encoding="utf-8")) == expected
    assert done.files == [tmp_path / "x.csv"]
    assert list(expected["left_out"]) == list(done.manifest["left_out"]), "the most jobs first"


def test_what_is_not_known_of_a_cluster_is_not_in_its_settings(tmp_path: Path) -> None:
    done = write_rows([job(1, user=None)], "parquet", tmp_path / "x.parquet")
    assert done.manifest["num_jobs_selected"] == done.manifest["num_jobs_written"] == 1
    assert not done.manifest["synthetic_in_files"]
    assert done.manifest["settings"] == {"unit": "gpu", "working_hours": [9, 18]}
    assert (done.manifest["missing"], done.manifest["filters"]) == (None, {})
    assert not done.manifest["synthetic"] and done.manifest["settings_in_files"]


def test_parquet_holds_what_the_manifest_says(tmp_path: Path) -> None:
    done = write_rows([job(1)], "parquet", tmp_path / "x.parquet", FACTS, synthetic=True)
    stored = pq.read_metadata(tmp_path / "x.parquet")
    assert json.loads(stored.metadata[b"hakaru.facts"]) == SETTINGS == done.manifest["settings"]
    assert stored.metadata[b"hakaru.synthetic"] == b"true" and done.manifest["synthetic_in_files"]
    assert stored.row_group(0).column(0).compression == "ZSTD"


def test_sizes_move_with_the_jobs(tmp_path: Path) -> None:
    """A week on; a size without a date stays without one. The manifest does not say how far."""
    disguise = make_disguise("a salt of some length", "7")
    done = write_rows([job(1)], "parquet", tmp_path / "x.parquet", FACTS, disguise=disguise)
    assert done.manifest["settings"] == SETTINGS | {
        "nodes": [{"count": 5}, {"since": "2018-01-15T00:00:00+05:30", "count": 3}],
        "gpus": [{"count": 18}, {"since": "2018-01-16T12:00:00+05:30", "count": 12}],
    }
    stored = pq.read_metadata(tmp_path / "x.parquet").metadata[b"hakaru.facts"]
    assert json.loads(stored) == done.manifest["settings"], "the file would give the shift away"
    assert done.manifest["columns"]["removed"] == {}, "no job has a name or modules"
    assert done.manifest["times"] == (
        "moved by a whole number of weeks on the site's clock (how many is not told): weekdays, hours, "
        "waits and run times stay, quarters change"
    )
    assert done.manifest["anonymised"] == {
        "pseudonyms": "HMAC-SHA256 under a secret salt, 64 bits",
        "salt": "given and not written anywhere: the same salt gives the same pseudonyms",
    }
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.manifest.json", "x.parquet"]


def test_the_same_jobs_give_the_same_bytes(tmp_path: Path) -> None:
    for format, name in (("aaic", "c.csv.gz"), ("swf", "c.swf.gz")):
        for folder in ("one", "two"):
            write_rows([job(1)], format, tmp_path / format / folder)
        one, two = (tmp_path / format / folder / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


# ---- places


@pytest.mark.parametrize("name", ["x.gz", "x.csv", "x.swf", "x.zip"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    message = (
        f"{name} cannot hold Parquet with Hakaru's own columns: name a folder, or a file that "
    )
    with pytest.raises(HakaruError, match=message + r"ends in \.parquet$"):
        write_rows([job(1)], "parquet", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(HakaruError, match="notes cannot hold Standard Workload Format"):
        write_rows([job(1)], "swf", tmp_path / "notes", overwrite=True)
    with pytest.raises(HakaruError, match=f"cannot write to {tmp_path}/notes/x.swf: "):
        write_rows([job(1)], "swf", tmp_path / "notes" / "x.swf")
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_folder_may_have_the_ending_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "old.swf").mkdir()
    done = write_rows([job(1)], "swf", tmp_path / "old.swf")
    assert done.files == [tmp_path / "old.swf" / "c.swf.gz"]
    assert done.manifest_path == tmp_path / "old.swf" / "manifest.json"


def test_nothing_to_write_tells_why(tmp_path: Path) -> None:
    early = {"submitted_at": utc("1969-12-31T00:00:00")}
    with pytest.raises(HakaruError) as refused:
        write_rows([job(n, **early) for n in range(1200)], "swf", tmp_path / "x.swf")
    assert str(refused.value) == "no job can be written as swf:\n  1,200 × submitted before 1970"
    with pytest.raises(HakaruError, match=r"no job can be written as parquet$"):
        write_rows([], "parquet", tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_told_with_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise duckdb.OutOfMemoryException("could not allocate")

    monkeypatch.setattr("hakaru.export._write._written", fails)
    with pytest.raises(HakaruError) as refused:
        write_rows([job(1)], "swf", tmp_path / "x.swf")
    assert str(refused.value) == (
        "the export needs more memory than it may use: could not allocate\n"
        "Give it more with engine.memory in hakaru.toml, or narrow it with --since/--until."
    )
    assert list(tmp_path.iterdir()) == []
