"""A cluster is forgotten: in every table, and by a rerun where it was interrupted."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.errors import LakeError
from hakaru.lake import Lake, Upsert
from hakaru.lake._log import Log
from hakaru.schema import JOBS, NODES, REJECTS, RUNS, SAMPLES, TABLES
from tests.conftest import job, put_jobs, utc
from tests.lake._rows import rows


def _of_two(lake: Lake, con: Any) -> None:
    """Rows of `a` and `b` in every table; the jobs in files of one and in a file of both."""
    moment = utc("2018-01-01T00:00:00")
    for name in ("a", "b"):
        put_jobs(lake, [job(n, cluster=name) for n in range(3)], facts='{"nodes": 1}', zone=None)
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


def test_a_cluster_that_is_not_there_cannot_be_forgotten(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"nothing of a cluster 'x'; its clusters: none"):
        lake.forget("x")
    put_jobs(lake, [job(1, cluster="a"), job(1, cluster="y")])
    for ask in (lake.forget, lake.rows_of):
        with pytest.raises(LakeError, match=r"nothing of a cluster 'x'; its clusters: a, y"):
            ask("x")


def test_a_newer_reading_of_a_file_takes_the_place_of_the_last(lake: Lake, con: Any) -> None:
    """Fewer rejects, the same, more, other ones, none; those of other files and clusters stay."""

    def read(cluster: str, file: str, *lines: tuple[int, str]) -> None:
        found = [
            {"cluster": cluster, "file": file, "line": line, "reason": why} for line, why in lines
        ]
        con.register("found", pa.Table.from_pylist(found, schema=REJECTS.arrow()))
        scope = f"(SELECT '{cluster}' AS cluster, '{file}' AS file)"
        lake.replace(con, REJECTS, "found", scope, ("cluster", "file"))

    def held() -> list[tuple[Any, ...]]:
        stored = lake.read(con, REJECTS).to_pylist()
        return sorted(
            (row["line"], row["reason"])
            for row in stored
            if (row["cluster"], row["file"]) == ("a", "f")
        )

    read("a", "g", (2, "no end"))
    read("b", "f", (2, "no end"))
    steps = [
        [(1, "no end"), (2, "no end"), (3, "a date")],
        [(2, "no end")],
        [(2, "no end")],
        [(2, "no end"), (7, "no end")],
        [(2, "a date"), (8, "no end")],
        [],
    ]
    versions = []
    for lines in steps:
        read("a", "f", *lines)
        assert held() == lines
        assert lake.read(con, REJECTS).num_rows == len(lines) + 2
        versions.append(lake.version())
    assert [one == other for one, other in pairwise(versions)] == [False, True, False, False, False]


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
