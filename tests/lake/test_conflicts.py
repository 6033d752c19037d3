"""Which rows of one key are repeats, which are progress, and which contradict one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Conflicts, Lake, Upsert
from hakaru.schema import JOBS
from tests.conftest import job, utc
from tests.lake._rows import rows

PENDING = {"state": "pending", "started_at": None, "ended_at": None, "wait_s": None, "run_s": None}
RUNNING = {"state": "running", "ended_at": None, "run_s": None}
NOTHING = Conflicts()
FAR = utc("2030-01-01T00:00:00")


def test_two_final_rows_that_differ_are_a_conflict_and_the_same_row_twice_is_not(
    lake: Lake, con: Any
) -> None:
    tasks = [job(7, num_gpus=n, name=f"task{n}") for n in (1, 2, 4)]
    done = lake.put_rows(con, JOBS, [*tasks, job(7, num_gpus=4, name="task4"), job(8), job(8)])
    assert done == Upsert(num_new=2, num_repeated=2, num_conflicts=2)
    assert done.inside == Conflicts(2, ("7",), ("name", "num_gpus"))
    assert done.stored == NOTHING


@pytest.mark.parametrize(
    ("one", "other", "columns"),
    [
        (PENDING, {}, ()),
        (RUNNING, {}, ()),
        (PENDING, RUNNING, ()),
        (PENDING | {"num_gpus": 4, "queue": "short"}, {}, ()),  # a pending job may be changed
        (RUNNING | {"run_s": 5.0}, RUNNING | {"run_s": 9.0}, ()),  # the same job, seen twice
        (RUNNING, RUNNING | {"started_at": FAR}, ("started_at",)),  # two tasks of an array
        (RUNNING | {"nodes": ["a"]}, RUNNING | {"nodes": ["b"]}, ("nodes",)),
        (RUNNING | {"gpu_ids": ["0"]}, {"gpu_ids": ["1"]}, ("gpu_ids",)),
        (RUNNING | {"user": "bob"}, {}, ("user",)),
        (PENDING | {"array_id": "1"}, RUNNING | {"array_id": "2"}, ("array_id",)),
        (PENDING | {"started_at": FAR}, RUNNING, ()),  # when it was expected to start
        (RUNNING | {"num_gpus": 4, "account": "b"}, {}, ()),  # a running job may be changed
        ({"name": None}, {"name": "x"}, ()),
        ({"name": None, "qos": "a"}, {"name": "x", "qos": None}, ()),
        ({"state": None}, {}, ()),
        ({"state": None, "ended_at": None, "run_s": None}, {}, ()),
        ({"ended_at": None}, {}, ()),
        ({"nodes": ["a"]}, {"nodes": ["b"]}, ("nodes",)),
        ({"user": "bob"}, {}, ("user",)),
        ({"run_s": 3599.0}, {}, ("run_s",)),
        ({"ended_at": utc("2018-01-01T01:00:11")}, {}, ("ended_at",)),
        ({"state": "failed", "exit_code": 1}, {"exit_code": 0}, ("exit_code", "state")),
        ({"state": None, "num_gpus": 2}, {"state": None}, ("num_gpus",)),
    ],
)  # fmt: skip
def test_what_contradicts(
    tmp_path: Path,
    con: Any,
    one: dict[str, Any],
    other: dict[str, Any],
    columns: tuple[str, ...],
) -> None:
    a, b = job(1, **one), job(1, **other)
    expected = Conflicts(1, ("1",), columns) if columns else NOTHING
    for i, pair in enumerate(([a, b], [b, a])):
        together = Lake.create(tmp_path / f"together-{i}").put_rows(con, JOBS, pair)
        assert (together.inside, together.stored) == (expected, NOTHING)
        assert together.num_conflicts + together.num_repeated == 1
        lake = Lake.create(tmp_path / f"apart-{i}")
        first, later = (lake.put_rows(con, JOBS, [row]) for row in pair)
        assert (first.num_conflicts, later.inside, later.stored) == (0, NOTHING, expected)
        assert later.num_conflicts + later.num_updated + later.num_unchanged == 1


OTHER: dict[str, tuple[Any, Any]] = {
    "string": ("a", "b"),
    "bigint": (3, 4),
    "double": (3.0, 4.0),
    "timestamp": (FAR, utc("2031-01-01T00:00:00")),
    "list<string>": (["a"], ["b"]),
}


@pytest.mark.parametrize("name", [name for name in JOBS.names if name not in JOBS.key])
def test_every_column_can_contradict(lake: Lake, con: Any, name: str) -> None:
    values = ("failed", "timeout") if name == "state" else OTHER[JOBS.column(name).type]
    one, other = (job(1, **{name: value}) for value in values)
    together = lake.put_rows(con, JOBS, [one, other])
    assert together.inside.columns == (name,)
    one, other = (row | {"job_id": "2"} for row in (one, other))
    lake.put_rows(con, JOBS, [one])
    assert lake.put_rows(con, JOBS, [other]).stored.columns == (name,)


def test_open_rows_of_several_jobs_with_one_id_are_all_counted(lake: Lake, con: Any) -> None:
    tasks = [job(7, **RUNNING | {"started_at": utc(f"2018-01-01T00:0{n}:00")}) for n in range(5)]
    mixed = [job(8, user=u, **RUNNING) for u in ("ann", "bob")] + [
        job(8, user="cat"),
        job(8, user="cat"),
    ]
    done = lake.put_rows(con, JOBS, [*tasks, *mixed])
    assert done == Upsert(num_new=2, num_repeated=1, num_conflicts=6)
    assert done.inside == Conflicts(6, ("7", "8"), ("started_at", "user"))


def test_three_of_many_are_named_and_the_columns_that_differ_most_come_first(
    lake: Lake, con: Any
) -> None:
    lake.put_rows(con, JOBS, [job(n) for n in range(10, 19)])
    changed = [job(n, queue="long", **({"qos": "q"} if n < 12 else {})) for n in range(10, 19)]
    done = lake.put_rows(con, JOBS, [*(row | {"num_gpus": 9} for row in changed[:2]), *changed[2:]])
    assert done == Upsert(num_conflicts=9)
    assert done.stored == Conflicts(9, ("10", "11", "12"), ("queue", "num_gpus"))


def test_a_row_that_contradicts_another_and_the_stored_one_counts_once(
    lake: Lake, con: Any
) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    done = lake.put_rows(con, JOBS, [job(1, num_gpus=2), job(1, num_gpus=3), job(2)])
    assert done == Upsert(num_new=1, num_conflicts=2)
    again = lake.put_rows(con, JOBS, [job(1, num_gpus=2), job(1, num_gpus=3), job(2)])
    assert again == Upsert(num_unchanged=2, num_conflicts=1)


def test_conflicts_are_found_without_a_write(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1), job(2)])
    before = lake.status()
    con.execute("CREATE TABLE fresh AS FROM read_parquet(?)", [lake.files(JOBS)])
    con.execute("UPDATE fresh SET num_gpus = 5 WHERE job_id = '2'")
    assert lake.conflicts(con, JOBS, "fresh") == (NOTHING, Conflicts(1, ("2",), ("num_gpus",)))
    con.execute("INSERT INTO fresh SELECT * REPLACE (6 AS num_gpus) FROM fresh WHERE job_id = '1'")
    inside, stored = lake.conflicts(con, JOBS, "fresh")
    assert (inside.ids, stored.ids) == (("1",), ("1", "2"))
    assert lake.status() == before


def test_the_counts_of_two_writes_add_up() -> None:
    assert Upsert(1, 2, 3, 4, 5, 6).plus(Upsert(10, 20, 30, 40, 50, 60)) == Upsert(
        11, 22, 33, 44, 55, 66
    )


# ---- which of two rows is kept: each pair would end otherwise by any later rule


@pytest.mark.parametrize(
    ("kept", "lost"),
    [
        # the state of a job comes first: ended, then running, then pending
        ({"name": None}, RUNNING | {"name": "zzz", "qos": "q", "ended_at": FAR}),
        (RUNNING, PENDING | {"name": "zzz", "qos": "q", "exit_code": 1, "ended_at": FAR}),
        # then the later end, though the other knows more and has the greater values
        ({"ended_at": utc("2018-01-01T02:00:00")}, {"name": "zzz", "qos": "q", "user": "zoe"}),
        ({"ended_at": utc("2018-01-01T01:00:10")}, {"ended_at": None, "name": "zzz", "qos": "q"}),
        # then the row that knows more, though the other has the greater values
        ({"account": "a", "qos": "a"}, {"account": "zzz", "qos": None}),
        ({"name": "a", "exit_code": 0}, {"user": "zoe", "exit_code": None}),
    ],
)  # fmt: skip
def test_which_row_is_kept(
    tmp_path: Path, con: Any, kept: dict[str, Any], lost: dict[str, Any]
) -> None:
    expected = {**dict.fromkeys(JOBS.names), **job(1, **kept)}
    other = job(1, **lost)
    for i, batches in enumerate(
        ([[expected, other]], [[expected], [other]], [[other], [expected]])
    ):
        lake = Lake.create(tmp_path / str(i))
        for batch in batches:
            lake.put_rows(con, JOBS, batch)
        assert rows(lake, con)["1"] == expected
