"""Jobs and names at the edge of what a format holds: what is kept, numbered, left out, and counted."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hakaru.lake import Lake
from tests.conftest import job, utc
from tests.export._roundtrip import export, read_back


def cells_of(path: Path, separator: str | None = None) -> list[list[str]]:
    """The cells of the lines that are jobs."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return [line.split(separator) for line in lines if line[0].isdigit()]


# ---- AAIC


def test_aaic_leaves_out_jobs_without_an_end_a_wait_or_a_date(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    epoch = {"submitted_at": utc("1970-01-01T00:00:00"), "wait_s": 10.0}
    lake = lake_of(
        [
            job(1),
            job(2, ended_at=None),
            job(3, wait_s=None),
            job(4, run_s=None),
            job(5, **epoch),
            job(6, submitted_at=utc("1970-01-01T00:00:01")),
            job(7, requested_s=0.3),
        ]
    )
    manifest = export(lake, tmp_path, "aaic")
    assert manifest["left_out"] == {
        "no wait or run time": 2,
        "no end": 1,
        "submitted before 1970": 1,
    }
    requested = {cells[0]: cells[6] for cells in cells_of(tmp_path / "c.csv.gz", ", ")}
    assert requested == {"1": "7200", "6": "7200", "7": "1"}  # 0 would be rejected when read


def test_aaic_numbers_a_requeued_job_anew(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """An id of AAIC's stands for one job of its file."""
    again = {"submitted_at": utc("2018-01-01T00:00:05"), "wait_s": 5.0}
    manifest = export(lake_of([job(3), job(3, **again)]), tmp_path, "aaic")
    assert [cells[0] for cells in cells_of(tmp_path / "c.csv.gz", ", ")] == ["0", "1"]
    assert "job_id" in manifest["columns"]["replaced"]


def test_aaic_numbers_names_anew_in_each_log(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    rows = [
        job("a/1", user="a/zoe", account="a/x"),
        job(
            "a/2", user="a/ann", account="a/x", submitted_at=utc("2018-01-01T00:00:01"), wait_s=9.0
        ),
        job("b/1", user="b/bob", account="b/y"),
    ]
    export(lake_of(rows), tmp_path, "aaic")
    assert [c[1] for c in cells_of(tmp_path / "aaicwl-a.csv.gz", ", ")] == ["0", "1"]
    assert [c[1] for c in cells_of(tmp_path / "aaicwl-b.csv.gz", ", ")] == ["0"]


@pytest.mark.parametrize("log", ["a b", ".hidden", "x" * 101])
def test_aaic_names_no_file_by_a_log_that_cannot_name_one(
    log: str, lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    manifest = export(lake_of([job("ok/1"), job(f"{log}/1")]), tmp_path, "aaic")
    assert [(file["name"], file["num_jobs"]) for file in manifest["files"]] == [("c.csv.gz", 2)]


def test_aaic_writes_as_many_logs_as_it_may(
    lake_of: Callable[..., Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.export.aaic.MOST_LOGS", 2)
    lake = lake_of([job("a/1"), job("b/1")])
    assert len(export(lake, tmp_path / "two", "aaic")["files"]) == 2
    monkeypatch.setattr("hakaru.export.aaic.MOST_LOGS", 1)
    (file,) = export(lake, tmp_path / "one", "aaic")["files"]
    assert (file["name"], file["num_jobs"]) == ("c.csv.gz", 2)


def test_numbers_with_leading_zeros_are_names(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """007 and 7 are two users; as numbers they would be one."""
    later = {"submitted_at": utc("2018-01-01T00:00:01"), "wait_s": 9.0}
    manifest = export(lake_of([job(1, user="007"), job(2, user="7", **later)]), tmp_path, "aaic")
    assert [cells[1] for cells in cells_of(tmp_path / "c.csv.gz", ", ")] == ["0", "1"]
    assert "user" in manifest["columns"]["replaced"]


# ---- SWF


def test_swf_numbers_ids_that_do_not_rise(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    later = {"submitted_at": utc("2018-01-01T00:00:01"), "wait_s": 9.0}
    lake = lake_of([job(9), job(3, **later), job(12), job(12, **later)])
    for name, chosen in (("falling", "job_id IN ('9', '3')"), ("twice", "job_id = '12'")):
        manifest = export(lake, tmp_path / name, "swf", "--where", chosen)
        assert [cells[0] for cells in cells_of(tmp_path / name / "c.swf.gz")] == ["1", "2"]
        assert manifest["columns"]["replaced"]["job_id"] == "numbered from 1, by time of submission"


def test_swf_keeps_ids_that_rise(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    later = {"submitted_at": utc("2018-01-01T00:00:01"), "wait_s": 9.0}
    export(lake_of([job(3), job(12, **later)]), tmp_path, "swf")
    assert [cells[0] for cells in cells_of(tmp_path / "c.swf.gz")] == ["3", "12"]


def test_swf_holds_the_first_second_of_1970_and_counts_what_is_before(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    """A log of relative dates begins at second 0."""
    rows = [
        job(1, submitted_at=utc("1969-12-31T23:59:59")),
        job(2, submitted_at=utc("1970-01-01T00:00:00"), wait_s=10.0),
    ]
    manifest = export(lake_of(rows), tmp_path, "swf")
    assert manifest["left_out"] == {"submitted before 1970": 1}
    assert [cells[:2] for cells in cells_of(tmp_path / "c.swf.gz")] == [["2", "0"]]


def test_swf_gives_no_queue_the_number_of_another(
    lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    """Queue 1 keeps its number, so the named ones get 2 and 3."""
    lake = lake_of([job(n, queue=q) for n, q in enumerate(("1", "big", "small"), 1)])
    export(lake, tmp_path, "swf")
    assert [cells[14] for cells in cells_of(tmp_path / "c.swf.gz")] == ["1", "2", "3"]


def test_swf_says_when_the_last_job_ended(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """The job that ends last is not the one that starts last."""
    later = {"submitted_at": utc("2018-01-01T02:00:00"), "started_at": utc("2018-01-01T02:00:10")}
    rows = [
        job(1, ended_at=utc("2018-01-01T05:00:10")),
        job(2, **later, ended_at=later["started_at"]),
    ]
    export(lake_of(rows), tmp_path, "swf")
    header = gzip.decompress((tmp_path / "c.swf.gz").read_bytes()).decode().splitlines()
    assert "; EndTime: Mon Jan 01 05:00:10 UTC 2018" in header
    assert "; StartTime: Mon Jan 01 00:00:00 UTC 2018" in header


def test_swf_counts_what_moves_by_a_second(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    """Job 1 waits as its times say; job 2 a second longer, job 3 less than a second."""
    rows = [job(1), job(2, wait_s=11.0), job(3, wait_s=10.4), job(4, run_s=3601.0)]
    assert export(lake_of(rows), tmp_path, "swf")["changed"] == {
        "times or durations were rounded to whole seconds": 1,
        "the start becomes submit + recorded wait": 1,
        "the end becomes start + recorded run time": 1,
    }


def test_swf_numbers_queues_whose_names_have_no_room(
    lake_of: Callable[..., Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names have some 800 characters, the notes in the header half as many."""
    lake = lake_of([job(1, queue="q" * 400), job(2, queue="r" * 400)])
    assert "queue" not in export(lake, tmp_path / "fits", "swf")["columns"]["replaced"]
    monkeypatch.setattr("hakaru.export.swf.MOST_HEADER", 700)
    manifest = export(lake, tmp_path / "not", "swf")
    told = "numbered; the names do not fit into the header"
    assert manifest["columns"]["replaced"]["queue"] == told
    assert b"; Queue:" not in gzip.decompress((tmp_path / "not" / "c.swf.gz").read_bytes())


# ---- settings


@pytest.mark.parametrize("format", ["swf", "parquet"])
def test_what_is_unknown_of_the_time_stays_unknown(
    format: str, lake_of: Callable[..., Lake], tmp_path: Path
) -> None:
    """A site without a zone must not come back as one in UTC, nor relative dates as real ones."""
    times = {"submitted_at": utc("1970-01-01T00:02:00"), "started_at": utc("1970-01-01T00:02:10")}
    times |= {"ended_at": utc("1970-01-01T01:02:10")}
    known = json.dumps({"relative_dates": True, "users_per_file": True})
    lake = lake_of([job(1, **times)], known, zone=None)
    manifest = export(lake, tmp_path / "out", format)
    assert "zone" not in manifest["settings"]
    facts = read_back(manifest, tmp_path / "out", tmp_path / "again").facts()["c"]
    assert "zone" not in facts and facts["relative_dates"] and facts["users_per_file"]


def test_parquet_names_its_cluster(lake_of: Callable[..., Lake], tmp_path: Path) -> None:
    export(lake_of([job(1)]), tmp_path / "mine.parquet", "parquet")
    assert pq.read_metadata(tmp_path / "mine.parquet").metadata[b"hakaru.cluster"] == b"c"
