"""A run written to files, played from them, and read again: nothing of it is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hakaru.sim.schedule import Schedule
from hakaru.sim.whatif import read, tasks
from hakaru.sim.whatif.variants import Prepared, prepare
from tests.sim._jobs import workload

TEXT = """
[machine]
nodes = 3
size = 2
[[variant]]
name = "urgent"
policy = "multifactor"
weights = { age = 0, size = 0, fair_share = 0, queue = { urgent = 500 } }
[[variant]]
name = "yield"
policy = "preempting"
low_queues = ["low"]
[[variant]]
name = "limit"
limits = ["user=ann:running-gpus=4"]
"""


@pytest.fixture(scope="module")
def runs() -> list[Prepared]:
    """Six PEs; two jobs of the log were left out before, and one is larger than the machine."""
    jobs = workload(
        (0, 500, 6, {"queue": "low"}),
        (10, 100, 4, {"user": "bob", "span_nodes": 2}),
        (20, 100, 7),
        (30, 100, 4, {"queue": "urgent", "span_nodes": 2}),
        (40, 50, 2, {"queue": "urgent"}),
    )
    return prepare(read(TEXT), replace(jobs, left_out={"no size": 2}))


def through_files(run: Prepared, folder: Path, number: int) -> Schedule:
    tasks.save(run, folder, number)
    assert tasks.play(folder, number) == 4
    return tasks.load(run, folder, number)


@pytest.mark.parametrize("number", range(4))
def test_files_give_the_schedule_that_is_played_here(
    runs: list[Prepared], number: int, tmp_path: Path
) -> None:
    here, there = tasks.play_here(runs[number]), through_files(runs[number], tmp_path, number)
    for name in tasks.RESULTS:
        assert getattr(here, name).tolist() == getattr(there, name).tolist(), name
    assert here.totals == there.totals
    assert here.workload.table.equals(there.workload.table)
    assert (here.machine, here.policy) == (there.machine, there.policy)


def test_starts_worked_by_hand(runs: list[Prepared], tmp_path: Path) -> None:
    """As they come; the urgent ones before bob's; low jobs yield to all; ann's widest never begins."""
    starts = [
        through_files(run, tmp_path, number).start.tolist() for number, run in enumerate(runs)
    ]
    assert starts == [
        [0, 500, 600, 500],
        [0, 600, 500, 500],
        [210, 10, 110, 40],
        [-1, 10, 110, 40],
    ]


def test_jobs_left_out_before_and_in_the_run_are_both_counted(
    runs: list[Prepared], tmp_path: Path
) -> None:
    got = through_files(runs[0], tmp_path, 0).workload
    assert got.left_out == {"no size": 2, "larger than the machine": 1}
    assert got.table["job_id"].to_pylist() == ["0", "1", "3", "4"]


def test_what_is_half_written_is_not_there(runs: list[Prepared], tmp_path: Path) -> None:
    """Nobody takes a schedule that is still being written for one that is done."""
    tasks.save(runs[0], tmp_path, 7)
    tasks.play(tmp_path, 7)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "run-7.in.npz",
        "run-7.in.pickle",
        "run-7.out.npz",
    ]
