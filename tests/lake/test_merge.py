"""What an upsert keeps, in any order of arrival, and the files that it touches."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake, Upsert
from hakaru.schema import JOBS, REJECTS
from hakaru.settings import Engine
from tests.conftest import job, utc
from tests.lake._rows import rows, state_of_table


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


def test_columns_in_another_order_are_told_by_name(lake: Lake, con: Any) -> None:
    table = pa.Table.from_pylist([job(1, name="n", qos="q")], schema=JOBS.arrow())
    con.register("turned", table.select(JOBS.names[::-1]))
    lake.upsert(con, JOBS, "turned")
    lake.put_rows(con, JOBS, [job(2)])
    assert (rows(lake, con)["1"]["name"], rows(lake, con)["1"]["qos"]) == ("n", "q")


def test_rejects_with_one_place_are_one_row(lake: Lake, con: Any) -> None:
    row = {"cluster": "c", "file": "f", "line": 3, "source": "s", "reason": "bad", "text": "x"}
    lake.put_rows(con, REJECTS, [row])
    assert lake.put_rows(con, REJECTS, [row]) == Upsert(num_unchanged=1)
    assert lake.put_rows(con, REJECTS, [row | {"line": 4}]) == Upsert(num_new=1)
