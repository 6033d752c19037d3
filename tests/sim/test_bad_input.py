"""What a log may hold that cannot be simulated: counted or refused in words, never a hang."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from hakaru.settings import Cluster
from tests.sim._jobs import play, table, workload

FOUR = sim.Machine.flat(4)
EVERY = pytest.mark.parametrize("policy", [each.id for each in sim.POLICIES])
MACHINES = pytest.mark.parametrize(
    "machine", [FOUR, sim.Machine.of_nodes(2, 2)], ids=["flat", "nodes"]
)


@EVERY
@MACHINES
def test_an_empty_log(policy: str, machine: sim.Machine) -> None:
    got = play([], machine, policy)
    assert len(got.start) == got.table().num_rows == 0
    assert got.totals["capacity_s"] == got.totals["num_events"] == 0


@EVERY
@MACHINES
def test_one_job(policy: str, machine: sim.Machine) -> None:
    got = play([(1000, 50, 2)], machine, policy)
    assert (got.start.tolist(), got.end.tolist()) == ([1000], [1050])
    assert got.totals["busy_s"] == 100
    assert got.totals["capacity_s"] == 200


@EVERY
@MACHINES
def test_larger_than_the_machine(policy: str, machine: sim.Machine) -> None:
    got = play([(0, 10, 5), (1, 10, 4), (2, 10, 400)], machine, policy)
    assert got.start.tolist() == [1]
    assert got.workload.left_out == {"larger than the machine": 2}
    assert got.table()["job_id"].to_pylist() == ["1"]


@EVERY
@MACHINES
def test_many_jobs_of_no_length_in_one_second(policy: str, machine: sim.Machine) -> None:
    got = play([(0, 0, 2)] * 300 + [(0, 0, 4)] * 300, machine, policy)
    assert got.start.tolist() == got.end.tolist() == [0] * 600
    assert got.workload.notes == {"run for no time at all": 600}


@EVERY
def test_unknown_users(policy: str) -> None:
    got = play([(0, 10, 3, {"user": None}), (1, 10, 3, {"user": None})], FOUR, policy)
    assert got.start.tolist() == [0, 10]
    assert got.workload.notes == {"have no user: no limit of a user holds them": 2}


def test_what_cannot_be_known_is_left_out_and_counted() -> None:
    got = workload(
        (None, 10, 1), (0, None, 1), (0, -5, 1), (0, 10, None), (0, 10, 0), (-60, 10, 1), (0, 10, 1),
        (0, float("nan"), 1), (None, None, None),
    )  # fmt: skip
    assert len(got) == 1
    assert got.left_out == {
        "no submission time": 2,  # one has neither a run time nor a size, and counts once
        "submitted before 1970": 1,
        "no run time (never started, or still running)": 2,
        "a negative run time": 1,
        "no size": 2,
    }


def test_what_is_assumed_is_counted() -> None:
    jobs = table(
        (0, 10, 1, {"requested_s": None}), (0, 10, 1, {"requested_s": -1}), (0, 10, 1, {"requested_s": 4}),
        (0, 10.6, 1, {"requested_s": 1e15}),
    )  # fmt: skip
    got = sim.Workload.of(jobs, "run")
    assert got.run.tolist() == [10, 10, 4, 11]
    assert got.request.tolist() == [10, 10, 4, 2**33]
    assert got.notes == {
        "ask for no time: taken to know their run time": 2,
        "ran longer than they asked: ended at what they asked for": 1,
    }


def test_who_asks_for_no_time_is_taken_to_ask_for_what_the_queue_allows() -> None:
    asks = [
        ("long", None),
        ("long", 50),
        ("short", None),
        ("short", 30),
        ("short", 20),
        ("odd", None),
    ]
    asks += [(None, None), (None, 70)]
    jobs = [(0, 10, 1, {"queue": queue, "requested_s": asked}) for queue, asked in asks]
    jobs += [(0, 90, 1, {"queue": "short", "requested_s": None})]
    got = sim.Workload.of(table(*jobs), walltimes={"long": 60.0})
    # By the settings 60, by the others 30, by nobody: its own 10. Who ran longer than that is not cut.
    assert got.request.tolist() == [60, 50, 30, 30, 20, 10, 10, 70, 90]
    assert got.run.tolist() == [10] * 8 + [90]
    assert got.notes == {
        "ask for no time: taken to ask for their queue's longest walltime": 1,
        "ask for no time: taken to ask for the most that is asked for in their queue": 2,
        "ask for no time: taken to know their run time": 2,
    }


@EVERY
def test_requests_without_bound(policy: str) -> None:
    # Slurm's word for "no limit" in minutes is 2^32 - 1.
    endless = {"requested_s": (2**32 - 1) * 60.0}
    got = play([(1_700_000_000 + j, 10, 3, endless) for j in range(4)], FOUR, policy)
    assert (got.start - 1_700_000_000).tolist() == [0, 10, 20, 30]


def test_an_estimate_may_be_a_function_and_even_nonsense() -> None:
    def guess(jobs: sim.Workload) -> Any:
        return np.array([-5, 2**60, 3])

    # The first is expected at once and, being passed, at 10; the others are as good as endless or short.
    jobs = [(0, 10, 3), (1, 10, 4), (2, 3, 1)]
    assert play(jobs, FOUR, "easy", estimates=guess).start.tolist() == [0, 10, 2]


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        (lambda jobs: jobs.run[:-1], r"for each of 2 jobs, found int64 of shape \(1,\)"),
        (lambda jobs: 5, r"of shape \(\)"),
        (lambda jobs: ["1", "2"], "found <U1"),
        (lambda jobs: [None, 2], "found object"),
        (lambda jobs: [float("nan"), 2], r"1 of 2 is not finite"),
        (lambda jobs: [float("inf"), float("nan")], r"2 of 2 are not finite"),
    ],
)  # fmt: skip
def test_an_estimate_that_is_no_number(guess: Any, message: str) -> None:
    with pytest.raises(HakaruError, match=message):
        play([(0, 10, 3), (1, 10, 4)], FOUR, "easy", estimates=guess)


@EVERY
def test_nobody_begins_before_a_submission_within_a_second(policy: str) -> None:
    got = play([(10.0, 5, 4), (20.7, 5, 4)], FOUR, policy)
    assert got.start.tolist() == [10, 21]
    assert got.table()["wait_s"].to_pylist() == [0, 0]


@EVERY
@MACHINES
def test_centuries_from_now_it_is_as_today(policy: str, machine: sim.Machine) -> None:
    jobs = [(0, 100, 2), (10, 100, 4, {"span_nodes": 2}), (20, 50, 1), (60, 70, 2)]
    late = [(20_000_000_000 + submit, *others) for submit, *others in jobs]
    today = play(jobs, machine, policy)
    got = play(late, machine, policy)
    assert (got.start - 20_000_000_000).tolist() == today.start.tolist()
    assert (got.end - 20_000_000_000).tolist() == today.end.tolist()
    assert got.totals == today.totals


def test_changes_and_hours_of_limits_are_moved_along() -> None:
    # The log begins at 06:00 UTC; the node comes at 07:00, the limit ends at 08:00.
    machine = sim.Machine.of_nodes(2, 4, closed=(1,), changes=(sim.Change(25200, 1, "up"),))
    jobs = [(21600, 9000, 4), (21601, 100, 4), (21602, 100, 4)]
    assert play(jobs, machine, "easy").start.tolist() == [21600, 25200, 25300]
    limits = [sim.Limit("user", "running-jobs", 1, hours=(0, 8))]
    assert play(jobs, machine, "easy", limits=limits).start.tolist() == [21600, 28800, 28900]


@EVERY
def test_more_time_than_can_be_counted(policy: str) -> None:
    with pytest.raises(HakaruError, match="years on this machine: at most 544 years are simulated"):
        play([(0, 2**33, 4)] * 6, FOUR, policy)
    with pytest.raises(HakaruError, match="in milliseconds"):
        play([(0, 10, 4), (36_000_000_000, 10, 4)], FOUR, policy)


def test_a_run_time_beyond_measure_is_cut() -> None:
    assert workload((0, 1e30, 1), (0, float("inf"), 1)).run.tolist() == [2**33, 2**33]


@pytest.mark.parametrize("text", ["", "twice", "scaled:", "scaled:0", "scaled:-1", "scaled:x"])
def test_estimates_that_are_not_known(text: str) -> None:
    with pytest.raises(HakaruError, match=r"use request, perfect, or scaled:FACTOR"):
        sim.estimates_of(text)


def test_a_table_must_hold_the_columns_of_one_cluster() -> None:
    with pytest.raises(HakaruError, match="lacks the columns user, queue"):
        sim.Workload.of(table((0, 1, 1)).drop_columns(["user", "queue"]))
    two = pa.concat_tables([table((0, 1, 1)), table((0, 1, 1, {"cluster": "d"}))])
    with pytest.raises(HakaruError, match="one cluster is simulated at a time, found c, d"):
        sim.Workload.of(two)


def test_a_policy_must_be_known() -> None:
    with pytest.raises(HakaruError, match="fcfs"):
        sim.POLICIES.get("fcsf")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sim.Machine.flat(0), "at least one node with at least one PE"),
        (lambda: sim.Machine(()), "at least one node with at least one PE"),
        (lambda: sim.Machine.of_nodes(2, -8), "at least one node with at least one PE"),
        (lambda: sim.Machine.of_nodes(2, 8, changes=(sim.Change(0, 2, "up"),)), "nodes are 0 to 1"),
        (lambda: sim.Machine.of_nodes(2, 8, closed=(-1,)), "nodes are 0 to 1"),
        (
            lambda: sim.Machine.of_nodes(2, 8, changes=(sim.Change(0, 1, "gone"),)),  # type: ignore[arg-type]
            "up, drain, down, not 'gone'",
        ),
        (lambda: sim.Machine.of_nodes(2, 8, switch_size=0), "at least one node, not 0"),
        (lambda: sim.Machine.over_time([], 8), "at least one"),
        (
            lambda: sim.Machine.of_cluster("aaic", Cluster(), "gpu"),
            r"under \[clusters\.aaic\]: nodes = COUNT and gpus_per_node = SIZE",
        ),
    ],
)
def test_a_machine_says_what_is_wrong(build: Any, message: str) -> None:
    with pytest.raises(HakaruError, match=message):
        build()


def test_the_table_of_a_schedule_is_a_log() -> None:
    jobs = [(0, 10, 3, {"started_at": None, "wait_s": 77.0}), (1, 10, 4, {"requested_s": 4})]
    got = play(jobs, FOUR, "easy").table()
    assert got.column_names == [*sim.COLUMNS, "ended_at", "why_waited"]
    assert got["wait_s"].to_pylist() == [0, 9]
    assert got["run_s"].to_pylist() == [10, 4]  # killed at what it asked for
    assert [at.timestamp() for at in got["started_at"].to_pylist()] == [0, 10]
    assert [at.timestamp() for at in got["ended_at"].to_pylist()] == [10, 14]
    assert got["why_waited"].to_pylist() == ["none", "resources"]
    assert got["user"].to_pylist() == ["ann", "ann"]
