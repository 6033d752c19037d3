"""The lake: what an upsert keeps, in any order of arrival; what readers see; compaction; clear errors."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakaru.engine.duckdb import connect
from hakaru.errors import LakeError
from hakaru.lake import Lake, Upsert
from hakaru.lake._log import Log
from hakaru.schema import CLUSTERS, INGESTS, JOBS, NODES, REJECTS, RUNS, SAMPLES, TABLES
from hakaru.settings import Engine
from tests.conftest import job, put_jobs, utc


@pytest.fixture
def con() -> Iterator[Any]:
    con = connect(Engine())
    yield con
    con.close()


def rows(lake: Lake, con: Any) -> dict[str, dict[str, Any]]:
    return {row["job_id"]: row for row in lake.read(con, JOBS).to_pylist()}


def state_of_table(lake: Lake, con: Any) -> list[tuple[Any, ...]]:
    found = [tuple(map(repr, row.values())) for row in lake.read(con, JOBS).to_pylist()]
    return sorted(found)


# ---- what an upsert keeps


def test_new_updated_unchanged_and_repeated_are_counted(lake: Lake, con: Any) -> None:
    assert lake.put_rows(con, JOBS, [job(1), job(2), job(2)]) == Upsert(num_new=2, num_repeated=1)
    running = job(3, state="running", ended_at=None, run_s=None)
    assert lake.put_rows(con, JOBS, [running]) == Upsert(num_new=1)
    done = lake.put_rows(con, JOBS, [job(1), job(3), job(4)])
    assert done == Upsert(num_new=1, num_updated=1, num_unchanged=1)
    assert {id: row["state"] for id, row in rows(lake, con).items()} == dict.fromkeys(
        "1234", "completed"
    )


def test_no_rows_change_nothing_and_make_no_table(lake: Lake, con: Any) -> None:
    assert lake.put_rows(con, JOBS, []) == Upsert()
    assert lake.files(JOBS) == []
    assert lake.read(con, JOBS).num_rows == 0


def test_an_older_report_of_a_job_does_not_replace_a_newer_one(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    pending = job(1, state="pending", started_at=None, ended_at=None, wait_s=None, run_s=None)
    assert lake.put_rows(con, JOBS, [pending]) == Upsert(num_unchanged=1)
    assert rows(lake, con)["1"]["state"] == "completed"


def test_an_unchanged_upsert_makes_no_commit(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1), job(2)])
    before = lake.status()[0]
    lake.put_rows(con, JOBS, [job(2), job(1)])
    assert lake.status()[0] == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": None}, {"name": ""}),
        ({"name": "x", "qos": None}, {"name": None, "qos": "x"}),
        ({"name": "", "qos": None}, {"name": None, "qos": ""}),
        ({"nodes": ["a", None]}, {"nodes": ["a", "b"]}),
        ({"nodes": ["a,b"]}, {"nodes": ["a", "b"]}),
        ({"nodes": []}, {"nodes": [None]}),
        ({"nodes": [None, "z"]}, {"nodes": ["a", "a"]}),
        ({"ended_at": utc("2018-01-01T01:00:10.000001")}, {"ended_at": utc("2018-01-01T01:00:10")}),
        ({"ended_at": utc("9999-01-01T00:00:00")}, {"ended_at": utc("2018-01-01T01:00:10")}),
        ({"run_s": 9.0}, {"run_s": 10.0}),
        ({"run_s": float("nan")}, {"run_s": 1.0}),
        ({"state": None}, {"state": "completed"}),
    ],
)
def test_which_of_two_rows_stays_does_not_depend_on_their_order(
    tmp_path: Path, con: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    a, b = job(1, **one), job(1, **other)
    kept = []
    for i, batches in enumerate(([[a], [b]], [[b], [a]], [[a, b]], [[b, a]])):
        lake = Lake.create(tmp_path / str(i))
        for batch in batches:
            lake.put_rows(con, JOBS, batch)
        kept.append(state_of_table(lake, con))
    assert len(kept[0]) == 1
    assert kept[0] == kept[1] == kept[2] == kept[3]


TIMES = st.sampled_from([utc("2018-01-01T00:00:00") + timedelta(hours=h) for h in (0, 1, 500)])
JOB = st.fixed_dictionaries(
    {
        "cluster": st.sampled_from(["c", "d"]),
        "job_id": st.sampled_from(["1", "2", "3"]),
        "submitted_at": TIMES,
        "state": st.sampled_from(["pending", "running", "completed", "failed", None]),
        "name": st.sampled_from([None, "", "a", "ab", "é"]),
        "qos": st.sampled_from([None, "", "a"]),
        "run_s": st.sampled_from([None, 0.0, 1.0, 9.0, 10.0]),
        "ended_at": st.one_of(st.none(), TIMES),
        "nodes": st.sampled_from([None, [], [None], ["a"], ["a", "b"], ["a,b"], [None, "b"]]),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), jobs=st.lists(JOB, min_size=1, max_size=12))
def test_any_order_and_any_cut_into_batches_gives_the_same_table(
    data: st.DataObject, jobs: list[dict[str, Any]]
) -> None:
    con = connect(Engine(threads=1))
    with tempfile.TemporaryDirectory() as folder:
        whole = Lake.create(Path(folder) / "whole")
        whole.put_rows(con, JOBS, jobs)
        parts = Lake.create(Path(folder) / "parts")
        left = data.draw(st.permutations(jobs + jobs[: len(jobs) // 2]))
        while left:
            size = data.draw(st.integers(1, len(left)))
            parts.put_rows(con, JOBS, left[:size])
            left = left[size:]
            if data.draw(st.integers(0, 5)) == 0:
                parts.compact()
        assert state_of_table(parts, con) == state_of_table(whole, con)
    con.close()


def test_times_keep_their_microseconds(lake: Lake, con: Any) -> None:
    times = [utc("2018-01-01T00:00:00.000001"), utc("2018-01-01T00:00:00.000999")]
    for moment in times:
        assert lake.put_rows(con, JOBS, [job(1, submitted_at=moment)]) == Upsert(num_new=1)
    again = lake.put_rows(con, JOBS, [job(1, submitted_at=times[1])])
    assert again == Upsert(num_unchanged=1)
    assert sorted(lake.read(con, JOBS)["submitted_at"].to_pylist()) == times


# ---- what is read and written


def test_an_upsert_touches_only_the_files_of_its_cluster_and_time(lake: Lake, con: Any) -> None:
    for year in (2017, 2018, 2019):
        lake.put_rows(con, JOBS, [job(1, submitted_at=datetime(year, 1, 1, tzinfo=UTC))])
    lake.put_rows(con, JOBS, [job(1, cluster="other")])
    before = set(lake.files(JOBS))
    change = job(1, submitted_at=utc("2018-01-01T00:00:00"), exit_code=1)
    assert lake.put_rows(con, JOBS, [change]) == Upsert(num_updated=1)
    after = set(lake.files(JOBS))
    assert len(before - after) == 1 and len(after - before) == 1 and len(before) == 4


def test_files_are_chosen_by_cluster(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1, cluster="a")])
    lake.put_rows(con, JOBS, [job(1, cluster="b")])
    (a,), (b,) = lake.files(JOBS, ["a"]), lake.files(JOBS, ["b"])
    assert a != b
    assert lake.files(JOBS, ["zz"]) == []
    assert set(lake.files(JOBS)) == set(lake.files(JOBS, ["a", "b"])) == {a, b}


def test_many_small_files_are_joined_as_they_come(lake: Lake, con: Any) -> None:
    for i in range(40):
        lake.put_rows(con, INGESTS, [{"ingest_id": str(i), "cluster": "c"}])
    assert len(lake.files(INGESTS)) <= 17
    found = lake.read(con, INGESTS)["ingest_id"].to_pylist()
    assert sorted(found) == sorted(str(i) for i in range(40))


def test_columns_in_another_order_are_told_by_name(lake: Lake, con: Any) -> None:
    table = pa.Table.from_pylist([job(1, name="n", qos="q")], schema=JOBS.arrow())
    con.register("turned", table.select(JOBS.names[::-1]))
    lake.upsert(con, JOBS, "turned")
    lake.put_rows(con, JOBS, [job(2)])
    assert (rows(lake, con)["1"]["name"], rows(lake, con)["1"]["qos"]) == ("n", "q")


def test_another_reader_of_delta_sees_the_same_table(lake: Lake, con: Any) -> None:
    from deltalake import DeltaTable

    lake.put_rows(con, JOBS, [job(1), job(2)])
    lake.put_rows(con, JOBS, [job(2, exit_code=3), job(3)])
    lake.compact()
    lake.put_rows(con, JOBS, [job(4)])
    delta = DeltaTable(str(lake.root / "jobs"))
    query = "SELECT count(*), count(exit_code) FROM t"
    con.register("t", delta.to_pyarrow_dataset())
    assert con.execute(query).fetchall() == [(4, 1)]
    assert delta.schema().to_arrow() is not None


# ---- older and newer lakes


def _lake_without(lake: Lake, con: Any, *columns: str) -> None:
    """As an older version would have written it: fewer columns in the files and in the log."""
    from deltalake import write_deltalake

    table = pa.Table.from_pylist([job(1, exit_code=7)], schema=JOBS.arrow())
    write_deltalake(str(lake.root / "jobs"), table.drop_columns(list(columns)))


def test_a_lake_of_an_older_version_is_read_and_learns_the_new_columns(
    lake: Lake, con: Any
) -> None:
    from deltalake import DeltaTable

    _lake_without(lake, con, "exit_code", "gpu_ids")
    assert rows(lake, con)["1"]["exit_code"] is None
    done = lake.put_rows(con, JOBS, [job(1, exit_code=7), job(2, gpu_ids=["n:0"])])
    assert done == Upsert(num_new=1, num_updated=1)
    assert rows(lake, con)["1"]["exit_code"] == 7
    assert rows(lake, con)["2"]["gpu_ids"] == ["n:0"]
    names = [field.name for field in DeltaTable(str(lake.root / "jobs")).schema().fields]
    assert set(names) == set(JOBS.names)
    lake.compact()
    assert len(rows(lake, con)) == 2


def test_a_lake_of_a_newer_version_is_not_written(lake: Lake, con: Any) -> None:
    from deltalake import write_deltalake

    table = pa.Table.from_pylist([job(1)], schema=JOBS.arrow())
    more = table.append_column("colour", pa.array(["red"]))
    write_deltalake(str(lake.root / "jobs"), more)
    assert len(rows(lake, con)) == 1
    with pytest.raises(LakeError, match=r"does not know \(colour\).*upgrade"):
        lake.put_rows(con, JOBS, [job(2)])


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


# ---- small tables


def test_facts_clusters_and_ingests(lake: Lake) -> None:
    put_jobs(lake, [job(1, cluster="a"), job(1, cluster="b")], facts='{"zone": "Asia/Tokyo"}')
    assert lake.clusters() == ["a", "b"]
    assert lake.facts() == {"a": {"zone": "Asia/Tokyo"}, "b": {"zone": "Asia/Tokyo"}}
    assert [row["cluster"] for row in lake.ingests()] == ["a", "b"]
    assert lake.synthetic_clusters() == set()
    status = {table.name: table for table in lake.status()}
    assert (status["jobs"].num_rows, status["samples"].num_rows) == (2, 0)
    assert status["jobs"].committed_at is not None and status["samples"].version == -1


def test_jobs_without_a_line_in_the_ingest_log_make_a_cluster_known(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1, cluster="alone")])
    lake.put_rows(con, JOBS, [job(1, cluster="a"), job(1, cluster="b"), job(1, cluster="mid")])
    assert lake.clusters() == ["a", "alone", "b", "mid"]


def test_facts_of_an_older_version_give_way_to_those_of_a_file(lake: Lake, con: Any) -> None:
    from deltalake import write_deltalake

    old = {"cluster": "c", "source": "swf", "facts": '{"zone": "UTC", "nodes": 3}'}
    write_deltalake(str(lake.root / "clusters"), pa.Table.from_pylist([old]))
    assert lake.facts() == {"c": {"zone": "UTC", "nodes": 3}}
    row = {"cluster": "c", "source": "swf", "file": "f", "said_at": utc("2018-01-01T00:00:00")}
    said = row | {"facts": '{"zone": "Asia/Tokyo"}'}
    assert lake.put_rows(con, CLUSTERS, [said]) == Upsert(num_new=1)
    assert lake.facts() == {"c": {"zone": "Asia/Tokyo", "nodes": 3}}
    lake.compact()
    assert lake.facts() == {"c": {"zone": "Asia/Tokyo", "nodes": 3}}


def test_a_file_that_says_something_else_later_is_believed_in_any_order(
    tmp_path: Path, con: Any
) -> None:
    row = {"cluster": "c", "source": "swf", "file": "f"}
    first = row | {"said_at": utc("2018-01-01T00:00:00"), "facts": '{"zone": "UTC"}'}
    later = row | {"said_at": utc("2018-01-02T00:00:00"), "facts": '{"zone": "Asia/Tokyo"}'}
    for i, order in enumerate(([first, later], [later, first])):
        lake = Lake.create(tmp_path / str(i))
        for said in order:
            lake.put_rows(con, CLUSTERS, [said])
        assert lake.facts() == {"c": {"zone": "Asia/Tokyo"}}


# ---- a cluster is forgotten


def _of_two(lake: Lake, con: Any) -> None:
    """Rows of `a` and `b` in every table; the jobs in files of one and in a file of both."""
    moment = utc("2018-01-01T00:00:00")
    for name in ("a", "b"):
        put_jobs(lake, [job(n, cluster=name) for n in range(3)], facts='{"nodes": 1}')
        lake.put_rows(
            con, SAMPLES, [{"cluster": name, "node": "n", "gpu": 0, "sampled_at": moment}]
        )
        lake.put_rows(con, NODES, [{"cluster": name, "node": "n", "since": moment}])
        lake.put_rows(con, RUNS, [{"cluster": name, "run_id": "1", "started_at": moment}])
    lake.put_rows(con, JOBS, [job(9, cluster=name) for name in ("a", "b")])
    lake.put_rows(con, REJECTS, [{"cluster": c, "file": "f", "line": 1} for c in ("a", "b")])


FORGOTTEN = {
    "jobs": 4,
    "samples": 1,
    "nodes": 1,
    "runs": 1,
    "rejects": 1,
    "clusters": 1,
    "ingests": 1,
}


def test_a_forgotten_cluster_leaves_every_table_and_the_others_stay(lake: Lake, con: Any) -> None:
    _of_two(lake, con)
    held = lake.files(JOBS)
    assert lake.rows_of("a") == FORGOTTEN
    assert lake.forget("a") == FORGOTTEN
    assert lake.clusters() == ["b"] and lake.facts() == {"b": {"nodes": 1}}
    assert lake.rows_of("b") == FORGOTTEN
    for table in TABLES.values():
        assert set(lake.read(con, table)["cluster"].to_pylist()) == {"b"}
    assert all(Path(file).exists() for file in held)
    lake.compact(retain_hours=0)
    assert lake.rows_of("b") == FORGOTTEN
    assert lake.put_rows(con, JOBS, [job(1, cluster="a")]) == Upsert(num_new=1)


def test_the_last_cluster_can_be_forgotten_and_come_again(lake: Lake, con: Any) -> None:
    put_jobs(lake, [job(1), job(2)])
    lake.forget("c")
    assert lake.clusters() == [] and lake.files(JOBS) == []
    assert lake.read(con, JOBS).num_rows == 0
    put_jobs(lake, [job(1)])
    assert lake.clusters() == ["c"] and list(rows(lake, con)) == ["1"]


def test_a_cluster_that_is_not_there_cannot_be_forgotten(lake: Lake, con: Any) -> None:
    with pytest.raises(LakeError, match=r"nothing of a cluster 'x'; its clusters: none"):
        lake.forget("x")
    put_jobs(lake, [job(1, cluster="a"), job(1, cluster="y")])
    for ask in (lake.forget, lake.rows_of):
        with pytest.raises(LakeError, match=r"nothing of a cluster 'x'; its clusters: a, y"):
            ask("x")


@pytest.mark.parametrize("num_done", range(1, 7))
def test_a_killed_removal_is_ended_by_a_rerun(
    lake: Lake, con: Any, monkeypatch: pytest.MonkeyPatch, num_done: int
) -> None:
    _of_two(lake, con)
    commit = Log.commit
    commits: list[str] = []

    def dying(self: Log, *arguments: Any, **options: Any) -> None:
        if len(commits) == num_done:
            raise KeyboardInterrupt
        commits.append(self.table.name)
        commit(self, *arguments, **options)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Log, "commit", dying)
        lake.forget("a")
    assert lake.clusters() == ["a", "b"]
    assert lake.forget("a") == FORGOTTEN | dict.fromkeys(commits, 0)
    assert lake.clusters() == ["b"] and lake.rows_of("b") == FORGOTTEN


def test_rejects_with_one_place_are_one_row(lake: Lake, con: Any) -> None:
    row = {"cluster": "c", "file": "f", "line": 3, "source": "s", "reason": "bad", "text": "x"}
    lake.put_rows(con, REJECTS, [row])
    assert lake.put_rows(con, REJECTS, [row]) == Upsert(num_unchanged=1)
    assert lake.put_rows(con, REJECTS, [row | {"line": 4}]) == Upsert(num_new=1)


# ---- paths and errors


@pytest.mark.parametrize("name", ["with space", "it's", "計る-é", "a[1]*?", "50%", 'q"x', "#1;"])
def test_a_workspace_may_have_an_awkward_name(tmp_path: Path, con: Any, name: str) -> None:
    lake = Lake.create(tmp_path / name)
    lake.put_rows(con, JOBS, [job(1), job(2)])
    lake.put_rows(con, JOBS, [job(2, exit_code=1), job(3)])
    lake.put_rows(con, JOBS, [job(9, cluster="d")])
    lake.compact(retain_hours=0)
    assert set(rows(Lake.open(tmp_path / name), con)) == {"1", "2", "3", "9"}


def test_a_relative_workspace(tmp_path: Path, con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Lake.create(Path("here")).put_rows(con, JOBS, [job(1)])
    assert len(rows(Lake.open(tmp_path / "here"), con)) == 1


@pytest.mark.parametrize("name", ["a%20b", "back\\slash"])
def test_a_path_that_delta_cannot_hold_is_refused(tmp_path: Path, con: Any, name: str) -> None:
    with pytest.raises(LakeError, match="Choose another folder with --workspace"):
        Lake.create(tmp_path / name).put_rows(con, JOBS, [job(1)])


def test_a_folder_that_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"not a Hakaru workspace.*hakaru ingest"):
        Lake.open(tmp_path)


def test_a_workspace_cannot_be_made_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="cannot be written: Not a directory"):
        Lake.create(tmp_path / "file" / "workspace")


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder that this process may read and not write, even where the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    if os.geteuid() == 0:
        ctypes.CDLL(None).setfsuid(0)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_workspace_can_be_read_and_says_that_it_cannot_be_written(
    plain_user: Path, con: Any
) -> None:
    lake = Lake.create(plain_user)
    put_jobs(lake, [job(1)])
    for path in [plain_user, *plain_user.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        ctypes.CDLL(None).setfsuid(65534)
    assert lake.clusters() == ["c"]
    with pytest.raises(LakeError, match=r"cannot be written: Permission denied\n.*permissions"):
        lake.put_rows(con, JOBS, [job(2)])


def test_a_full_disk_leaves_the_lake_as_it_was(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    script = f"""
import resource, sys
from pathlib import Path
from hakaru.engine.duckdb import connect
from hakaru.errors import LakeError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
con = connect(Engine())
nulls = ", ".join(f'NULL AS "{{n}}"' for n in JOBS.names if n not in JOBS.key)
con.execute("CREATE TABLE many AS SELECT 'c' AS cluster, uuid()::VARCHAR AS job_id, "
            f"TIMESTAMPTZ '2018-01-01 00:00:00+00' AS submitted_at, {{nulls}} FROM range(200000)")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    Lake.open(Path({str(lake.workspace)!r})).upsert(con, JOBS, "many")
except LakeError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "cannot be written" in told.stdout and "as it was before" in told.stdout, told
    assert list(rows(lake, con)) == ["1"]
    assert lake.put_rows(con, JOBS, [job(2)]) == Upsert(num_new=1)


@pytest.mark.parametrize("content", ["{", '{"add": 3}', "\x00\x00", "not json\n"])
def test_a_damaged_log_is_named(lake: Lake, con: Any, content: str) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{1:020}.json").write_text(content)
    with pytest.raises(LakeError, match=r"_delta_log cannot be read.*\n.*ingest the logs again"):
        lake.files(JOBS)


def test_an_empty_log_entry_is_a_commit_that_never_was(lake: Lake, con: Any) -> None:
    """As a power cut may leave it: the ingest did not end, and the table is as it was before."""
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(1, exit_code=3), job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{1:020}.json").write_text("")
    assert list(rows(lake, con)) == ["1"]
    assert lake.put_rows(con, JOBS, [job(1, exit_code=3), job(2)]) == Upsert(1, 1)


def test_a_log_that_lost_its_first_entry_is_named(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(LakeError, match="_delta_log cannot be read"):
        lake.files(JOBS)


def test_statistics_are_rounded_outwards(lake: Lake, con: Any) -> None:
    first, last = utc("2018-01-01T00:00:00.000999"), utc("2018-01-01T00:00:00.999001")
    lake.put_rows(con, JOBS, [job(1, submitted_at=first), job(2, submitted_at=last)])
    (entry,) = (lake.root / "jobs" / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    (stats,) = [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
    assert stats["numRecords"] == 2
    assert stats["minValues"] == {"cluster": "c", "submitted_at": "2018-01-01T00:00:00.000Z"}
    assert stats["maxValues"] == {"cluster": "c", "submitted_at": "2018-01-01T00:00:01.000Z"}
