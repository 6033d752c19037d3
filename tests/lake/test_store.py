"""Lakes of other versions, other readers, and the small tables: clusters, facts, ingests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.errors import LakeError
from hakaru.lake import Lake, Upsert
from hakaru.schema import CLUSTERS, JOBS
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
