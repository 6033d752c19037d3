"""Small files are joined, and what nobody reads any more is removed."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hakaru.lake import Lake, Upsert
from hakaru.schema import INGESTS, JOBS
from tests.conftest import job, utc
from tests.lake._rows import rows, state_of_table


def test_many_small_files_are_joined_as_they_come(lake: Lake, con: Any) -> None:
    for i in range(40):
        lake.put_rows(con, INGESTS, [{"ingest_id": str(i), "cluster": "c"}])
    assert len(lake.files(INGESTS)) <= 17
    found = lake.read(con, INGESTS)["ingest_id"].to_pylist()
    assert sorted(found) == sorted(str(i) for i in range(40))


def test_sixteen_small_files_are_joined_by_the_next_write(lake: Lake, con: Any) -> None:
    for i in range(16):
        lake.put_rows(con, INGESTS, [{"ingest_id": str(i), "cluster": "c"}])
    assert len(lake.files(INGESTS)) == 16
    lake.put_rows(con, INGESTS, [{"ingest_id": "16", "cluster": "c"}])
    assert len(lake.files(INGESTS)) == 1
    assert lake.read(con, INGESTS).num_rows == 17


# ---- compaction


def test_compaction_joins_files_a_cluster_in_order_of_time(lake: Lake, con: Any) -> None:
    times = [utc("2018-01-01T00:00:00") + timedelta(days=d) for d in (3, 1, 2, 0)]
    for i, moment in enumerate(times):
        both = [job(i, cluster=name, submitted_at=moment) for name in ("a", "b")]
        lake.put_rows(con, JOBS, both)
    before = state_of_table(lake, con)
    lake.compact()
    (a,), (b,) = lake.files(JOBS, ["a"]), lake.files(JOBS, ["b"])
    assert a != b
    assert pq.ParquetFile(a).read()["submitted_at"].to_pylist() == sorted(times)
    assert set(pq.ParquetFile(b).read()["cluster"].to_pylist()) == {"b"}
    assert state_of_table(lake, con) == before
    assert lake.put_rows(con, JOBS, [job(1, cluster="a", submitted_at=times[1])]) == Upsert(
        num_unchanged=1
    )
    assert lake.put_rows(con, JOBS, [job(9, cluster="a")]) == Upsert(num_new=1)
    assert lake.files(JOBS, ["b"]) == [b]


def test_a_large_file_of_several_clusters_is_parted_too(
    lake: Lake, con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put_rows(con, JOBS, [job(1, cluster="a"), job(1, cluster="b")])
    monkeypatch.setattr("hakaru.lake._merge.FILE_BYTES", 0)  # then no file is small
    lake.compact()
    assert len(lake.files(JOBS)) == 2
    assert set(lake.files(JOBS, ["a"])).isdisjoint(lake.files(JOBS, ["b"]))


def test_a_compacted_lake_is_left_alone(lake: Lake, con: Any) -> None:
    for i in range(3):
        lake.put_rows(con, JOBS, [job(i)])
    lake.compact()
    files = lake.files(JOBS)
    lake.compact()
    assert lake.files(JOBS) == files and len(files) == 1


def test_old_files_stay_for_the_readers_that_hold_them(lake: Lake, con: Any) -> None:
    for i in range(3):
        lake.put_rows(con, JOBS, [job(i)])
    held = lake.files(JOBS)
    lake.compact()
    assert all(Path(file).exists() for file in held) and lake.files(JOBS) != held
    lake.compact(retain_hours=0)
    assert not any(Path(file).exists() for file in held)
    assert len(rows(lake, con)) == 3


def test_what_a_killed_writer_left_is_harmless_and_removed(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    orphan = lake.root / "jobs" / "part-dead.parquet"
    shutil.copy(lake.files(JOBS)[0], orphan)
    dead = lake.root / "_staging" / "dead"
    dead.mkdir()
    (dead / "spill").write_bytes(b"x" * 1000)
    (dead / "lock").touch()
    assert len(rows(lake, con)) == 1
    lake.put_rows(con, JOBS, [job(2)])
    assert not dead.exists() and orphan.exists()
    lake.compact(retain_hours=0)
    assert not orphan.exists() and len(rows(lake, con)) == 2


def test_a_staging_folder_in_use_is_not_removed(lake: Lake, con: Any) -> None:
    with lake.staging() as mine:
        lake.put_rows(con, JOBS, [job(1)])
        lake.compact(retain_hours=0)
        with lake.staging() as other:
            assert mine.exists() and other.exists() and mine != other
    assert not mine.exists() and not other.exists()
