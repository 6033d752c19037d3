"""Lakes of other versions, other readers, and the small tables: clusters, facts, ingests."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.errors import LakeError
from hakaru.lake import Lake, Upsert
from hakaru.schema import CLUSTERS, JOBS, TABLES
from tests.conftest import job, put_jobs, utc
from tests.lake._rows import rows


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


def _lake_without(lake: Lake, *columns: str) -> None:
    """As an older version would have written it: fewer columns in the files and in the log."""
    from deltalake import write_deltalake

    table = pa.Table.from_pylist([job(1, exit_code=7)], schema=JOBS.arrow())
    write_deltalake(str(lake.root / "jobs"), table.drop_columns(list(columns)))


def test_a_lake_of_an_older_version_is_read_and_learns_the_new_columns(
    lake: Lake, con: Any
) -> None:
    from deltalake import DeltaTable

    _lake_without(lake, "exit_code", "gpu_ids")
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


def test_the_size_of_a_later_file_is_the_machine_s_however_it_is_said(lake: Lake, con: Any) -> None:
    sizes = {"a.swf": '{"nodes": 151, "cpus": 2004}', "b.swf": '{"nodes": 160, "cpus_per_node": 8}'}
    said = {"cluster": "c", "source": "swf", "said_at": utc("2018-01-01T00:00:00")}
    lake.put_rows(con, CLUSTERS, [said | {"file": f, "facts": facts} for f, facts in sizes.items()])
    assert lake.facts() == {"c": {"nodes": 160, "cpus_per_node": 8}}


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


def test_what_was_said_without_a_file_is_one_row(lake: Lake, con: Any) -> None:
    """An unknown file is the same as an unknown file, or every ingest would add a row."""
    said = {"cluster": "c", "source": "swf", "facts": '{"nodes": 3}'}
    assert lake.put_rows(con, CLUSTERS, [said]) == Upsert(num_new=1)
    assert lake.put_rows(con, CLUSTERS, [said]) == Upsert(num_unchanged=1)


def test_an_option_has_the_last_word_over_every_header(lake: Lake, con: Any) -> None:
    """Of the headers, that of the later source and file; `option` stands before `swf` in the alphabet."""
    zones = {
        ("option", "--zone"): "Asia/Tokyo",
        ("swf", "b"): "Europe/Paris",
        ("swf", "a"): "Europe/Rome",
        ("aaic", "z"): "UTC",
    }
    for (source, file), zone in zones.items():
        row = {"cluster": "c", "source": source, "file": file, "facts": f'{{"zone": "{zone}"}}'}
        lake.put_rows(con, CLUSTERS, [row | {"said_at": utc("2018-01-01T00:00:00")}])
        assert lake.facts()["c"]["zone"] == "Asia/Tokyo"
    assert lake.spoken("c")["swf", "b"] == '{"zone": "Europe/Paris"}' and lake.spoken("d") == {}


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


# ---- what a reader asks without reading


def test_status_is_what_lies_on_the_disk(lake: Lake, con: Any) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)  # Delta notes whole milliseconds
    lake.put_rows(con, JOBS, [job(1), job(2)])
    lake.put_rows(con, JOBS, [job(n, cluster="d") for n in range(3)])
    status = {table.name: table for table in lake.status()}["jobs"]
    sizes = [Path(file).stat().st_size for file in lake.files(JOBS)]
    assert (status.num_rows, status.num_files, status.num_bytes) == (5, 2, sum(sizes))
    assert status.version == 1 and status.committed_at is not None
    assert before <= status.committed_at <= datetime.now(UTC)


def test_the_span_of_a_table_is_over_all_its_files(lake: Lake, con: Any) -> None:
    """The file written first is neither the earliest nor the latest."""
    assert lake.span(JOBS) is None
    for n, day in enumerate((2, 3, 1)):
        moments = [utc(f"2018-01-0{day}T00:00:00"), utc(f"2018-01-0{day}T12:00:00")]
        rows = [job(10 * n + i, cluster=f"c{n}", submitted_at=at) for i, at in enumerate(moments)]
        lake.put_rows(con, JOBS, rows)
    assert len(lake.files(JOBS)) == 3
    assert lake.span(JOBS) == (utc("2018-01-01T00:00:00"), utc("2018-01-03T12:00:00"))


def test_the_version_changes_with_every_table_and_with_another_lake(
    lake: Lake, con: Any, tmp_path: Path
) -> None:
    seen = [lake.version()]
    for table in TABLES.values():
        row = dict.fromkeys(table.names) | {"cluster": "c"}
        row |= {name: "x" for name in table.key if table.column(name).type == "string"}
        row |= {name: 1 for name in table.key if table.column(name).type == "bigint"}
        row |= {name: utc("2018-01-01T00:00:00") for name in table.key if name == table.time}
        lake.put_rows(con, table, [row])
        assert lake.version() not in seen, table.name
        seen.append(lake.version())
    other = Lake.create(tmp_path / "other")
    other.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(1)])
    before = lake.version()
    shutil.rmtree(lake.root / "jobs")
    shutil.copytree(other.root / "jobs", lake.root / "jobs")
    other.put_rows(con, JOBS, [job(2)])
    shutil.rmtree(lake.root / "jobs")
    shutil.copytree(other.root / "jobs", lake.root / "jobs")  # as many commits, another table
    assert lake.version() != before


def test_rows_count_as_moved_within_two_days_only(lake: Lake, con: Any) -> None:
    """An id that comes again a year earlier or later is another job; in another cluster it is too."""
    other = [job(1, submitted_at=utc(f"{year}-01-01T00:00:00")) for year in (2017, 2019)]
    near = job(3, submitted_at=utc("2018-01-02T09:00:00"))
    lake.put_rows(con, JOBS, [*other, near])  # one file: its rows are told apart, not only its span
    lake.put_rows(con, JOBS, [job(2, cluster="d", submitted_at=utc("2018-01-01T09:00:00"))])
    fresh = pa.Table.from_pylist([job(1), job(2), job(3)], schema=JOBS.arrow())
    con.register("fresh", fresh)
    assert lake.upsert(con, JOBS, "fresh", id_column="job_id") == Upsert(num_new=3, num_moved=1)


KEYS: dict[str, tuple[str, ...]] = {
    "jobs": ("cluster", "job_id", "submitted_at"),
    "samples": ("cluster", "node", "gpu", "sampled_at"),
    "nodes": ("cluster", "node", "since"),
    "runs": ("cluster", "run_id", "started_at"),
    "clusters": ("cluster", "source", "file"),
    "ingests": ("ingest_id",),
    "rejects": ("cluster", "file", "line"),
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_that_differ_in_one_part_of_the_key_are_two(name: str, lake: Lake, con: Any) -> None:
    table, moment = TABLES[name], utc("2018-01-01T00:00:00")
    one: dict[str, Any] = {"string": "a", "bigint": 1, "timestamp": moment}
    two: dict[str, Any] = {"string": "b", "bigint": 2, "timestamp": moment + timedelta(hours=1)}
    base = {column: one[table.column(column).type] for column in KEYS[name]}
    others = [base | {column: two[table.column(column).type]} for column in KEYS[name]]
    rows = [{"cluster": "a"} | row for row in (base, *others)]
    assert lake.put_rows(con, table, rows) == Upsert(num_new=len(KEYS[name]) + 1)
    assert lake.put_rows(con, table, rows) == Upsert(num_unchanged=len(KEYS[name]) + 1)
