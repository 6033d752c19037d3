"""The partition, worked by hand: which jobs are one cell, and which cells a question gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hakaru.analyses import Branch, Check, Selection
from hakaru.errors import FilterError
from hakaru.lake import Lake
from hakaru.web.privacy import partition_of
from hakaru.web.privacy._partition import Chosen, size_bounds
from hakaru.web.readers import Readers
from tests.conftest import job, put_jobs, utc
from tests.web.privacy._ask import jobs_of

JANUARY = 2018 * 12


def readers_of(tmp_path: Path, rows: list[dict[str, Any]], facts: str = "{}") -> Readers:
    return Readers(put_jobs(Lake.create(tmp_path), rows, facts))


def ids_of(readers: Readers, *branches: Branch) -> set[int]:
    selection = Selection(clusters=("c",), branches=branches)
    return {int(row["job_id"]) for row in readers.rows("SELECT job_id FROM jobs", selection)}


def chosen(readers: Readers, wanted: dict[str, Any], keys: tuple[str, ...] = ()) -> set[int]:
    """The jobs of the cells that lie inside; each condition is the values that are wanted."""
    partition = partition_of(readers, "c")
    assert partition is not None
    tests = {name: set(values).__contains__ for name, values in wanted.items()}
    found = partition.choose(tests, keys)
    return ids_of(readers, *found.branches()) if found else set()


def cells(readers: Readers) -> list[set[int]]:
    """The jobs of each cell, the one with the first job first."""
    partition = partition_of(readers, "c")
    assert partition is not None
    each = np.eye(partition.tree.last, dtype=bool)
    found = [ids_of(readers, *Chosen(partition, inside, False).branches()) for inside in each]
    return sorted(found, key=min)


def test_a_value_of_few_people_joins_the_smallest_of_many(tmp_path: Path) -> None:
    """`rare` is one person's: with `short`, of six people, it makes one cell; `normal` has eight."""
    rows = (
        jobs_of("01234567", 0, queue="normal")
        + jobs_of("012345", 10, queue="short")
        + jobs_of("0", 20, queue="rare")
    )
    readers = readers_of(tmp_path, rows)
    partition = partition_of(readers, "c")
    assert partition is not None and partition.tree.last == 2
    assert partition.values_of("queue") == ["normal"]
    assert chosen(readers, {"queue": ["normal"]}) == set(range(8))
    assert chosen(readers, {"queue": ["short"]}) == set()
    assert chosen(readers, {"queue": ["short", "rare"]}) == set()
    assert cells(readers) == [set(range(8)), {*range(10, 16), 20}]


def test_values_of_few_people_are_put_together_until_they_are_six(tmp_path: Path) -> None:
    """Queues of three people each: the last two are six people, the first joins the smaller cell, theirs."""
    rows = [
        *jobs_of("01234567", 0, queue="z"),
        *jobs_of("012", 10, queue="a"),
        *jobs_of("345", 20, queue="b"),
        *jobs_of("678", 30, queue="c"),
    ]
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {"queue": ["z"]}) == set(range(8))
    a, b, c = {10, 11, 12}, {20, 21, 22}, {30, 31, 32}
    assert cells(readers) == [set(range(8)), a | b | c]
    six = readers_of(tmp_path / "six", [*rows, *jobs_of("345", 40, queue="a")])
    assert cells(six) == [set(range(8)), a | {40, 41, 42}, b | c]


def test_what_a_cell_measures_is_of_six_people_or_nobody(tmp_path: Path) -> None:
    """Six people failed, but only u0's job of them ran: their hours would be u0's."""
    rows = (
        jobs_of("0123456", 0)
        + jobs_of("12345", 10, state="failed", run_s=None)
        + jobs_of("0", 20, state="failed")
    )
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {"state": ["failed"]}) == set()
    nothing = [row | {"run_s": None} for row in rows[:12]] + rows[12:]
    partition = partition_of(readers_of(tmp_path / "other", nothing), "c")
    assert partition is not None  # hours of one person in all: never shown, and they split nothing
    assert partition.measures == {"waits"} and partition.values_of("state") == [
        "completed",
        "failed",
    ]


def test_jobs_of_nobody_known_are_no_people(tmp_path: Path) -> None:
    rows = jobs_of("012345", 0) + [job(10 + i, user=None, queue="ghost") for i in range(9)]
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {"queue": ["ghost"]}) == set()
    few = readers_of(tmp_path / "few", rows[1:])
    assert partition_of(few, "c") is None


@pytest.mark.parametrize(("facts", "split"), [("{}", True), ('{"users_per_file": true}', False)])
def test_people_of_a_log_that_numbers_them_anew_are_those_of_the_fullest_file(
    tmp_path: Path, facts: str, split: bool
) -> None:
    """`short` has three names in each of two files: six people at most, three at least."""
    rows = [job(i, user=f"{'ab'[i % 2]}/{i // 2}", queue="normal") for i in range(12)]
    rows += [job(20 + i, user=f"{'ab'[i % 2]}/{i // 2}", queue="short") for i in range(6)]
    assert bool(chosen(readers_of(tmp_path, rows, facts), {"queue": ["short"]})) == split


def test_names_of_several_files_are_known_without_a_setting(tmp_path: Path) -> None:
    """As in AAIC: the file's name stands before the ids of users and of jobs."""
    rows = []
    for i in range(12):
        log = "ab"[i % 2]
        rows.append(job(0, user=f"{log}/{i // 2}", queue="normal") | {"job_id": f"{log}/{i}"})
    for i in range(6):
        log = "ab"[i % 2]
        rows.append(job(0, user=f"{log}/{i // 2}", queue="short") | {"job_id": f"{log}/{20 + i}"})
    partition = partition_of(readers_of(tmp_path, rows), "c")
    assert partition is not None and partition.tree.last == 1


@pytest.mark.parametrize("column", ["queue", "application"])
def test_names_of_few_people_are_one_value(tmp_path: Path, column: str) -> None:
    """A thousand names of one person each, and an unknown one: the tree knows three names and the rest."""
    rows = [row for name in "abc" for row in jobs_of("012345", 100 * ord(name), **{column: name})]
    rare = [job(i, user=f"u{i % 8}", **{column: f"own-{i}" if i else None}) for i in range(1000)]
    readers = readers_of(tmp_path, rows + rare)
    partition = partition_of(readers, "c")
    assert partition is not None and len(partition.values[column]) == 4
    assert partition.values_of(column) == ["a", "b", "c"]
    assert set(range(1000)) in cells(readers)
    for name in ("own-7", "nobody's", None):
        assert chosen(readers, {column: [name]}) == set()
    assert chosen(readers, {}, keys=(column,)) == {int(row["job_id"]) for row in rows}
    assert len(ids_of(readers)) == len(rows) + 1000


def test_the_rest_joins_a_name_where_it_is_of_few_people(tmp_path: Path) -> None:
    rows = jobs_of("01234567", 0, queue="a") + jobs_of("012345", 10, queue=None)
    rows += [job(20 + i, user=f"u{i}", queue=f"own-{i}") for i in range(3)]
    readers = readers_of(tmp_path, rows)
    assert cells(readers) == [set(range(8)), {*range(10, 16), 20, 21, 22}]
    assert chosen(readers, {"queue": [None]}) == set()


def test_two_columns_at_once(tmp_path: Path) -> None:
    """Each queue and each state is of six people, but only u0 failed in `short`."""
    rows = (
        jobs_of("012345", 0, queue="normal")
        + jobs_of("012345", 10, queue="normal", state="failed")
        + jobs_of("012345", 20, queue="short")
        + jobs_of("0", 30, queue="short", state="failed")
    )
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {"queue": ["short"]}) == {*range(20, 26), 30}
    assert chosen(readers, {"state": ["failed"]}) == set(range(10, 16))
    assert chosen(readers, {"queue": ["short"], "state": ["completed"]}) == set()
    assert chosen(readers, {}, keys=("state",)) == {*range(6), *range(10, 16)}
    assert chosen(readers, {}, keys=("queue",)) == {*range(6), *range(10, 16), *range(20, 26), 30}


def test_months_are_those_of_the_site(tmp_path: Path) -> None:
    """23:30 in UTC on the last of January is February in Tokyo."""
    rows = jobs_of("012345", 0, submitted_at=utc("2018-01-31T14:59:59"))
    rows += jobs_of("012345", 10, submitted_at=utc("2018-01-31T15:00:00"))
    readers = readers_of(tmp_path, rows, '{"zone": "Asia/Tokyo"}')
    assert chosen(readers, {"month": [JANUARY]}) == set(range(6))
    assert chosen(readers, {"month": [JANUARY + 1]}) == set(range(10, 16))
    assert chosen(readers, {}, keys=("quarter",)) == {*range(6), *range(10, 16)}


def test_a_cell_over_two_quarters_has_no_quarter(tmp_path: Path) -> None:
    """March and April have four people each: one cell."""
    rows = jobs_of("0123", 0, submitted_at=utc("2018-03-10"))
    rows += jobs_of("4567", 10, submitted_at=utc("2018-04-10"))
    rows += jobs_of("012345", 20, submitted_at=utc("2018-05-10"))
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {}, keys=("quarter",)) == set(range(20, 26))


@pytest.mark.parametrize(
    ("size", "number"), [(0, -1), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (16, 4), (17, 5)]
)  # fmt: skip
def test_classes_of_sizes(tmp_path: Path, size: int, number: int) -> None:
    rows = jobs_of("012345", 0, num_gpus=size) + jobs_of("012345", 10, num_gpus=64)
    readers = readers_of(tmp_path, rows)
    assert chosen(readers, {"size_class": [number]}) == set(range(6))
    least, most = size_bounds(number)
    assert least <= size <= most


def test_neighbouring_classes_touch_and_do_not_overlap() -> None:
    bounds = [size_bounds(number) for number in range(-1, 6)]
    assert bounds == [(0, 0), (1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32)]


def test_unknown_sizes_and_names_are_values_of_their_own(tmp_path: Path) -> None:
    rows = jobs_of("012345", 0, num_gpus=None, queue=None) + jobs_of("012345", 10)
    readers = readers_of(tmp_path, rows)
    assert (
        chosen(readers, {"queue": [None]})
        == chosen(readers, {"size_class": [None]})
        == set(range(6))
    )


def test_all_cells_need_no_condition(tmp_path: Path) -> None:
    partition = partition_of(readers_of(tmp_path, jobs_of("012345", 0)), "c")
    assert partition is not None
    assert partition.choose({}).branches() == ()
    assert not partition.choose({"queue": {"x"}.__contains__})


def test_a_list_is_of_columns_that_have_one(tmp_path: Path) -> None:
    readers = readers_of(tmp_path, jobs_of("01", 0, queue="{0}") + jobs_of("2", 10, queue=None))
    assert ids_of(readers, Branch((Check("queue", ("{0}", "it's"), "in"),))) == {0, 1}
    assert ids_of(readers, Branch((Check("queue", (None, "x"), "in"),))) == {10}
    assert ids_of(readers, Branch((Check("queue", (), "in"),))) == set()
    assert ids_of(readers, Branch((Check("queue", ("{0}", "it's"), "not in"),))) == {10}
    assert ids_of(readers, Branch((Check("queue", (None, "x"), "not in"),))) == {0, 1}
    assert ids_of(readers, Branch((Check("queue", (), "not in"),))) == {0, 1, 10}
    for wrong in (
        Check("run_s", (1,), "in"),
        Check("queue", "x", "in"),
        Check("queue", ("x",), "="),
    ):
        with pytest.raises(FilterError):
            ids_of(readers, Branch((wrong,)))


def test_jobs_left_out_tell_nothing_of_one_persons_job(tmp_path: Path) -> None:
    """Three cells: `normal`, `short` on one GPU, and `short` with two states and months, as u0 makes it.

    Which of the combinations of that last cell u0 has must not be told by whether jobs are left out.
    """
    base = jobs_of("123456", 0, queue="normal") + jobs_of("123456", 10, queue="short")
    february = utc("2018-02-10")
    base += jobs_of("12345", 20, queue="short", num_gpus=2)
    alike = {"queue": "short", "num_gpus": 2}
    told = []
    for name, (one, other) in {
        "both": ({"state": "failed", "submitted_at": february}, {}),
        "each": ({"state": "failed"}, {"submitted_at": february}),
    }.items():
        rows = base + jobs_of("0", 30, **alike, **one) + jobs_of("0", 40, **alike, **other)
        partition = partition_of(readers_of(tmp_path / name, rows), "c")
        assert partition is not None and partition.tree.last == 3
        wanted = {"state": {"failed"}.__contains__, "month": {JANUARY}.__contains__}
        told.append(partition.choose(wanted).is_partial)
    assert told == [True, True]


def test_an_empty_name_is_a_name(tmp_path: Path) -> None:
    readers = readers_of(tmp_path, jobs_of("012345", 0, queue="") + jobs_of("012345", 10))
    assert chosen(readers, {"queue": [""]}) == set(range(6))


def test_six_people_in_all_are_enough_and_nobody_known_is_none_of_them(tmp_path: Path) -> None:
    """Two queues of three people each are one cell; with nobody known in place of one they are not."""
    normal = jobs_of("01234567", 0, queue="normal")
    small = jobs_of("012", 10, queue="a") + jobs_of("345", 20, queue="b")
    both = [set(range(8)), {10, 11, 12, 20, 21, 22}]
    assert cells(readers_of(tmp_path, normal + small)) == both
    small[0]["user"] = None
    assert len(cells(readers_of(tmp_path / "five", normal + small))) == 1


@pytest.mark.parametrize("own", [16, 128])
def test_which_value_one_person_has_is_not_found_by_refusals(tmp_path: Path, own: int) -> None:
    """Seven people failed on one GPU, and u7 on more, in one cell: no range of sizes short of all gets it."""
    rows = jobs_of("01234567", 0, num_gpus=4) + jobs_of("01234567", 20, num_gpus=256)
    rows += jobs_of("0123456", 40, state="failed") + jobs_of("7", 50, state="failed", num_gpus=own)
    readers = readers_of(tmp_path, rows)
    failed = {*range(40, 47), 50}
    partition = partition_of(readers, "c")
    assert partition is not None
    for least, most in ((0, 0), (0, 2), (0, 4), (0, 7), (4, 7), (1, 8), (0, 8)):
        sizes = range(least, most + 1)
        assert chosen(readers, {"state": ["failed"], "size_class": sizes}) == set(), sizes
        both = {"state": {"failed"}.__contains__, "size_class": sizes.__contains__}
        assert partition.choose(both).is_partial
    assert chosen(readers, {"state": ["failed"]}) == failed
